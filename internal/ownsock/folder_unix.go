//go:build unix

package ownsock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/softrnic/softrnic/internal/inventory"
)

// Supported says that there are such sockets.
const Supported = true

// Folder is where processes of this user put their sockets: softrnic below XDG_RUNTIME_DIR, else softrnic-UID in the
// folder for temporary files.
func Folder() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "softrnic")
	}
	return filepath.Join(os.TempDir(), "softrnic-"+strconv.Itoa(os.Getuid()))
}

// Make makes the Folder, or finds it to be this user's alone.
func Make() (dir string, err error) {
	dir = Folder()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return dir, Private(dir)
}

// Private reports a folder that somebody else could have made, or may look into.
func Private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm() != 0o700 || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s has to be a folder of this user with mode 0700: remove it", dir)
	}
	return nil
}

// Listen makes a socket, with mode 0600: in a folder that others may look into, nobody may connect before that is
// set, since it is made under another name in a folder of its own and moved. What is at path goes. Close leaves the
// file.
func Listen(path string) (*net.UnixListener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer inventory.Folder(dir).Close()
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// Refused reports the error of Dial for a socket that nobody has open.
func Refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// Busy reports the error of Dial for a socket where many wait to be accepted.
func Busy(err error) bool { return errors.Is(err, syscall.EAGAIN) }
