package ownsock

import (
	"errors"
	"net"
	"os"
	"time"
)

// patience is how long a connect may take: the other process takes no part in it.
const patience = time.Second

// RemoveStale removes a socket that nobody has open any more, of a process that was killed; nothing if there is no
// file. It reports a process that has it. Errors: one that matches os.ErrExist if the file is no socket; the
// system's.
func RemoveStale(path string) (alive bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode().Type() != os.ModeSocket:
		return false, os.ErrExist
	}
	c, err := Dial(path)
	switch {
	case err == nil:
		return true, c.Close()
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case !Refused(err):
		return false, err
	}
	return false, RemoveIf(path, info)
}

// RemoveIf removes a file, unless there is none, or another by now: somebody has tidied up, and perhaps has put one
// in its place.
func RemoveIf(path string, is os.FileInfo) error {
	now, err := os.Lstat(path)
	if err == nil && same(now, is) {
		err = os.Remove(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// same reports whether two looks at a path found one file. A number alone says too little: the next file may have it again.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime())
}

// Dial connects to the socket at path. Refused tells the error of one that nobody has open.
func Dial(path string) (*net.UnixConn, error) {
	c, err := net.DialTimeout("unix", path, patience)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}
