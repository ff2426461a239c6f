package run

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// tree is the folder of a device's files. It is locked as long as this process lives, so that those of killed ones can
// be told from it.
type tree struct {
	path string
	lock *os.File
}

const (
	treePrefix = "softrnic-"
	// treeAge is how old a folder that nobody holds is at least when it is removed: one that has just been made is not locked yet.
	treeAge = time.Minute
)

// newTree makes a folder in dir, and removes what killed processes of this user left there.
func newTree(dir string) (*tree, error) {
	sweep(dir, time.Now().Add(-treeAge))
	path, err := os.MkdirTemp(dir, treePrefix)
	if err != nil {
		return nil, err
	}
	f, err := locked(path)
	if err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return &tree{path, f}, nil
}

func (t *tree) remove() {
	_ = os.RemoveAll(t.path)
	_ = t.lock.Close()
}

// locked opens a folder that nobody else has locked. Errors: EWOULDBLOCK if somebody has; those of open(2) and flock(2).
func locked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes the folders of this user's that nobody holds, made before a time.
func sweep(dir string, before time.Time) {
	left, _ := filepath.Glob(filepath.Join(dir, treePrefix+"*"))
	for _, path := range left {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || info.ModTime().After(before) {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if f, err := locked(path); err == nil {
			_ = os.RemoveAll(path)
			_ = f.Close()
		}
	}
}
