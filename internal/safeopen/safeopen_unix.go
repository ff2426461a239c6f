//go:build unix

package safeopen

import (
	"fmt"
	"os"
	"syscall"
)

// open opens path, and reports whether it was a link.
func open(path string, how int, mode os.FileMode) (f *os.File, linked bool, err error) {
	const flags = os.O_WRONLY | os.O_CREATE
	f, err = os.OpenFile(path, flags|how|syscall.O_NOFOLLOW, mode)
	if err == nil {
		return f, false, nil
	}
	// For a link it is ELOOP, FreeBSD's is EMLINK, and Linux says EACCES where the link is another's in a folder with
	// the sticky bit.
	info, look := os.Lstat(path)
	if look != nil || info.Mode().Type() != os.ModeSymlink {
		return nil, false, err
	}
	if uid := owner(info); uid != os.Geteuid() && uid != 0 {
		return nil, true, errLink(path)
	}
	// In a folder with the sticky bit nobody else can put another in its place; in one without, anything can be.
	f, err = os.OpenFile(path, flags|how, mode)
	return f, true, err
}

// own reports a file or pipe that another user reads, or whose other name is one that the user does not mean.
// Terminals and other devices are nobody's.
func own(path string, info os.FileInfo) error {
	const remedy = "remove it, or name another"
	st, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular() && info.Mode().Type() != os.ModeNamedPipe:
	case owner(info) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user: %s", path, remedy)
	case info.Mode().IsRegular() && st != nil && st.Nlink > 1:
		return fmt.Errorf("%s has another name as well (a hard link): %s", path, remedy)
	}
	return nil
}

// owner is -1 if that is not to be known.
func owner(info os.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
