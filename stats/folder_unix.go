//go:build unix

package stats

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Folder is where a process of this user puts its socket: softrnic below XDG_RUNTIME_DIR, else softrnic-UID in the folder
// for temporary files.
func Folder() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "softrnic")
	}
	return filepath.Join(os.TempDir(), "softrnic-"+strconv.Itoa(os.Getuid()))
}

// suffix ends the names of sockets.
const suffix = ".sock"

// ownPath is this process' socket in Folder, which it makes, or finds to be this user's alone.
func ownPath() (string, error) {
	dir := Folder()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("stats: %w", err)
	}
	if err := private(dir); err != nil {
		return "", err
	}
	Tidy()
	return filepath.Join(dir, strconv.Itoa(os.Getpid())+suffix), nil
}

// private reports a folder that somebody else could have made, or may look into.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("stats: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm() != 0o700 || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("stats: %s has to be a folder of this user with mode 0700: remove it", dir)
	}
	return nil
}

// Sockets are the paths of those in Folder, which may have been left by processes that are gone; none
// if there is no folder. It fails if the folder is not this user's alone.
func Sockets() ([]string, error) {
	dir := Folder()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("stats: %w", err)
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if e.Type() == os.ModeSocket && strings.HasSuffix(e.Name(), suffix) {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	return list, nil
}

// Tidy removes the sockets in Folder that nobody has open any more: of processes that were killed, and C programs that have ended.
func Tidy() {
	left, _ := Sockets() // a folder that is not this user's alone is not touched
	for _, path := range left {
		_ = removeStale(path) // others stay
	}
}

// listen makes the socket, with mode 0600: in a folder that others may look into, nobody may connect before that is set,
// since it is made under another name in a folder of its own and moved.
func listen(path string) (*net.UnixListener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
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
		l.Close()
		return nil, err
	}
	return l, nil
}

func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
