package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// part is something that C programs need, or that is good to have.
type part struct {
	name   string
	needed bool
	// files are patterns below the root of the file system, one of which has to be there.
	files []string
	// packages have it, by family of distributions.
	packages packages
}

// packages are the names of a package with Debian, Fedora and SUSE, and those that come from them.
type packages struct{ debian, fedora, suse string }

// parts are what rdma-core's packages have.
var parts = []part{
	{"libibverbs", true, libs("libibverbs.so.1"), packages{"libibverbs1", "libibverbs", "libibverbs1"}},
	{"librdmacm", true, libs("librdmacm.so.1"), packages{"librdmacm1", "librdmacm", "librdmacm1"}},
	{"provider hfi1verbs", true, libs("libibverbs/libhfi1verbs-rdmav*.so"), packages{"ibverbs-providers", "libibverbs", "libibverbs"}},
	{"its registration", true, []string{"etc/libibverbs.d/hfi1verbs.driver"}, packages{"ibverbs-providers", "libibverbs", "libibverbs"}},
	{"ibv_devinfo, ibv_rc_pingpong", false, []string{"usr/bin/ibv_devinfo"}, packages{"ibverbs-utils", "libibverbs-utils", "libibverbs-utils"}},
	{"rping, ucmatose, rstream", false, []string{"usr/bin/rping"}, packages{"rdmacm-utils", "librdmacm-utils", "librdmacm-utils"}},
	{"ib_write_bw, ib_send_lat", false, []string{"usr/bin/ib_write_bw"}, packages{"perftest", "perftest", "perftest"}},
}

// libs are the places where a dynamic library may be.
func libs(name string) []string {
	var list []string
	for _, dir := range []string{"lib64", "usr/lib64", "usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib", "usr/local/lib", "usr/local/lib64"} {
		list = append(list, dir+"/"+name)
	}
	return list
}

// present is whether the part is in the file system at root.
func (p part) present(root string) bool {
	return slices.ContainsFunc(p.files, func(pattern string) bool {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		return len(found) > 0
	})
}

// install is the command that installs packages on the distribution whose os-release this is.
func install(release string, p packages) string {
	debian, fedora, suse := "apt-get install "+p.debian, "dnf install "+p.fedora, "zypper install "+p.suse
	var ids []string
	for line := range strings.Lines(release) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key == "ID" || key == "ID_LIKE" {
			ids = append(ids, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	for _, id := range ids {
		switch {
		case id == "debian" || id == "ubuntu":
			return debian
		case id == "fedora" || id == "rhel" || id == "centos":
			return fedora
		case strings.HasPrefix(id, "suse") || strings.HasPrefix(id, "opensuse") || id == "sles":
			return suse
		}
	}
	return fmt.Sprintf("Debian: %s; Fedora: %s; SUSE: %s", debian, fedora, suse)
}

// row is a line of the table of --check.
type row struct{ what, state, fix string }

// host is the table of what the file system at root has, and whether all that is needed is there.
func host(root string) (rows []row, complete bool) {
	release, err := os.ReadFile(filepath.Join(root, "etc", "os-release"))
	if err != nil {
		release = nil // install names them all
	}
	complete = true
	for _, p := range parts {
		r := row{p.name, "yes", ""}
		if !p.present(root) {
			r.state, r.fix = "no", install(string(release), p.packages)
			if !p.needed {
				r.state = "no, not needed"
			}
			complete = complete && !p.needed
		}
		rows = append(rows, r)
	}
	return rows, complete
}

func printRows(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range append([]row{{"WHAT", "THERE", "WHAT HELPS"}}, rows...) {
		fmt.Fprintln(t, strings.TrimRight(r.what+"\t"+r.state+"\t"+r.fix, "\t"))
	}
	return t.Flush()
}
