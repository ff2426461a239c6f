//go:build amd64 || arm64

package run

import (
	"fmt"
	"io"
	"net/netip"

	"github.com/softrnic/softrnic/rdmacore"
)

// check lists what works on this host, and is an error if programs cannot run.
func check(w io.Writer, asked netip.Addr) error {
	rows, complete := host("/")
	add := func(what string, err error, state, fix string) {
		if err != nil {
			state, complete = "no", false
		} else {
			fix = ""
		}
		rows = append(rows, row{what, state, fix})
	}
	_, err := findLibraries()
	add(rdmacore.EngineLibrary+", "+rdmacore.PreloadLibrary, err, "yes", "rnic of "+releaseArchive()+", or make c")
	a, err := rdmacore.HostAddress(asked)
	add("address of the device", err, fmt.Sprintf("%s (%s)", a.Addr, a.Interface), "--addr with one that `ip addr` lists")
	t, err := newTreeIn(treeFolders())
	if err == nil {
		t.remove(false)
	}
	add("temporary folder", err, "yes", "TMPDIR with a folder that you may write to")
	if err := printRows(w, rows); err != nil {
		return err
	}
	if !complete {
		return failed(1, "C programs cannot run on this host yet: see the table")
	}
	return nil
}
