package stats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/internal/ownsock"
)

var errNoSocket = errors.New("stats: this system has no local sockets that are one user's alone; use stats/expvars or stats/prometheus")

// Folder is where a process of this user puts its socket: softrnic below XDG_RUNTIME_DIR, else softrnic-UID in the folder
// for temporary files.
func Folder() string { return ownsock.Folder() }

// suffix ends the names of sockets.
const suffix = ".sock"

// ownPath is this process' socket in Folder, which it makes, or finds to be this user's alone.
func ownPath() (string, error) {
	dir, err := ownsock.Make()
	if err != nil {
		return "", fmt.Errorf("stats: %w", err)
	}
	Tidy()
	return filepath.Join(dir, strconv.Itoa(os.Getpid())+suffix), nil
}

// Sockets are the paths of those in Folder, which may have been left by processes that are gone; none
// if there is no folder. It fails if the folder is not this user's alone.
func Sockets() ([]string, error) {
	if !ownsock.Supported {
		return nil, errNoSocket
	}
	dir := Folder()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = ownsock.Private(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("stats: %w", err)
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

// removeStale removes a socket that nobody has open any more: of a process that was killed.
func removeStale(path string) error {
	alive, err := ownsock.RemoveStale(path)
	switch {
	case alive:
		return fmt.Errorf("stats: a process offers its counters at %s: choose another name", path)
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("stats: %s is there and no socket: choose another name", path)
	case err != nil:
		return fmt.Errorf("stats: %w", err)
	}
	return nil
}
