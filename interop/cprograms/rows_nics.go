//go:build linux

package main

// nicRows are programs that have several devices: one of each name that a provider might claim, and real programs with two.
func nicRows() []row {
	var all []row
	for _, mode := range []string{"names", "address", "places"} {
		all = append(all, row{
			pkg: "ours, in C", client: "./nics " + mode, flags: "--devices nics.txt", want: mode + ": ok", checks: true, newer: true,
			before: "cp HERE/programs/nics.txt . && gcc -O1 -Wall -Wextra -Werror -o nics HERE/programs/nics.c -lrdmacm -libverbs",
		})
	}
	for _, r := range []struct{ pkg, mode string }{
		{"ucx-utils", "ucx"}, {"rdmacm-utils", "rping"}, {"libfabric-bin", "fabric"}, {"hwloc-nox", "lstopo"},
	} {
		all = append(all, row{
			pkg: r.pkg, client: "sh ./rails.sh " + r.mode + " RNIC", plain: both, want: r.mode + ": ok", before: "cp HERE/programs/rails.sh .", checks: r.mode != "lstopo",
		})
	}
	return all
}
