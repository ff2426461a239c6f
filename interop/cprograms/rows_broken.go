//go:build linux

package main

// brokenRows are programs whose NIC breaks while they run: the port goes down for less than they wait, and for more.
func brokenRows() []row {
	var all []row
	for _, r := range []struct{ pkg, mode string }{{"ibverbs-utils", "asyncwatch"}, {"rdmacm-utils", "rping"}, {"ucx-utils", "ucx"}} {
		all = append(all, row{
			pkg: r.pkg, client: "sh ./broken.sh " + r.mode + " RNIC", plain: both, want: r.mode + ": ok", before: "cp HERE/programs/broken.sh .", checks: true,
		})
	}
	return append(all, row{
		pkg: "ours, in C", client: "sh ./broken.sh port RNIC", plain: both, want: "port: ok", checks: true, newer: true,
		before: "cp HERE/programs/broken.sh . && gcc -O1 -Wall -Wextra -Werror -o port HERE/programs/port.c -lrdmacm -libverbs",
	})
}
