package run

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tree is the folder of a device's files. It is locked as long as this process lives, so that those of killed ones can
// be told from it. Its marker is locked by every process that uses it (the preload library has it mapped with the lock, which
// no closing of descriptors ends): so the folder outlives `rnic run` where a program has left a daemon behind.
//
// A folder of another run is removed only if it has all that newTree gives it: name, owner, mode, and a marker that
// says which folder it is of, so that a copy is none. The marker comes behind the lock and goes last: a folder with a
// marker that nobody has locked is a dead run's, and one that was made and is not locked yet has no marker. No link
// is followed.
type tree struct {
	path string
	root *os.Root
	lock *os.File
}

const (
	treePrefix = "rnic-run."
	markerName = ".rnic-run"
	// treeMode lets a program that has changed its user before it opens the device read its files. None is secret.
	treeMode = 0o755
)

// treeFolders are where the folder may be, the best first. A container with a read-only root has shared memory to write to, and
// maybe nothing else.
func treeFolders() []string { return []string{os.TempDir(), "/dev/shm"} }

// newTreeIn is newTree in the first of dirs where it can be made.
func newTreeIn(dirs []string) (*tree, error) {
	var errs []error
	for _, dir := range dirs {
		t, err := newTree(dir)
		if err == nil {
			return t, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("%w; TMPDIR may name one that you may write to", errors.Join(errs...))
}

// newTree makes a folder in dir, and removes what killed processes of this user left there.
func newTree(dir string) (*tree, error) {
	sweep(dir)
	path, err := os.MkdirTemp(dir, treePrefix)
	if err != nil {
		return nil, err
	}
	return begin(path)
}

// begin locks a folder that has just been made, and marks it.
func begin(path string) (*tree, error) {
	if err := os.Chmod(path, treeMode); err != nil {
		return nil, err
	}
	t, err := openTree(path)
	if err == nil {
		if err = t.hold(); err == nil {
			err = t.mark()
		}
		if err != nil {
			t.close()
		}
	}
	if err != nil {
		_ = unix.Rmdir(path)
		return nil, err
	}
	return t, nil
}

// dyingTime is how long a process may take to end at a signal.
var dyingTime = time.Second

// remove removes the folder when the program has ended, unless a process that it left behind has the device still. If a signal
// has ended it, others that had the same one may be about to end.
func (t *tree) remove(signaled bool) {
	by := time.Now().Add(dyingTime)
	left := t.used() || t.named()
	for ; signaled && left && time.Now().Before(by); left = t.used() || t.named() {
		time.Sleep(10 * time.Millisecond)
	}
	if !left {
		_ = t.clear()
	}
	t.close()
}

// used reports whether a process has the marker locked.
func (t *tree) used() bool {
	f, err := t.root.Open(markerName)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// named reports whether a process that this user may look into was started for the folder: in its first moments it has not
// come to lock the marker.
func (t *tree) named() bool {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	variable := []byte(envTree + "=" + t.path)
	return err == nil && slices.ContainsFunc(all, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && slices.ContainsFunc(bytes.Split(text, []byte{0}), func(v []byte) bool { return bytes.Equal(v, variable) })
	})
}

func (t *tree) close() {
	_ = t.lock.Close()
	_ = t.root.Close()
}

var errNotOurs = errors.New("not a folder that this user alone may write to")

// openTree opens a folder of this user's, not a link to one.
func openTree(path string) (*tree, error) {
	there, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	st, ok := there.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() || !there.IsDir() || there.Mode().Perm() != treeMode {
		return nil, errNotOurs
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(".")
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	t := &tree{path, root, f}
	if is, err := f.Stat(); err != nil || !os.SameFile(is, there) { // a link has taken its place
		t.close()
		return nil, errors.Join(err, errNotOurs)
	}
	return t, nil
}

// hold locks the folder. Errors: EWOULDBLOCK if another run has.
func (t *tree) hold() error {
	return syscall.Flock(int(t.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// marker is what the marker of this folder says.
func (t *tree) marker() (string, error) {
	info, err := t.lock.Stat()
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.ErrUnsupported
	}
	return fmt.Sprintf("The files of a device of `rnic run`, folder %d: removed when no process uses it.\n", st.Ino), nil
}

func (t *tree) mark() error {
	text, err := t.marker()
	if err == nil {
		err = t.root.WriteFile(markerName, []byte(text), 0o444)
	}
	if err == nil {
		err = t.root.Chmod(markerName, 0o444) // whatever the umask is
	}
	if err != nil {
		_ = t.root.Remove(markerName)
	}
	return err
}

// marked is whether newTree has marked the folder.
func (t *tree) marked() bool {
	want, err := t.marker()
	if err != nil {
		return false
	}
	info, err := t.root.Lstat(markerName)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(want)) {
		return false
	}
	text, err := t.root.ReadFile(markerName)
	return err == nil && string(text) == want
}

// clear removes what is in the folder, the marker last, and the folder.
func (t *tree) clear() error {
	entries, err := fs.ReadDir(t.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == markerName {
			continue
		}
		if err := t.root.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	if err := t.root.Remove(markerName); err != nil {
		return err
	}
	return unix.Rmdir(t.path)
}

// sweep removes the folders in dir that runs of this user have left behind.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), treePrefix) {
			continue
		}
		t, err := openTree(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		// Without a marker it is not even locked: it may be of a run that is about to do that. With one, the run that had
		// it locked, and has let go of it, may have removed it meanwhile.
		if t.marked() && t.hold() == nil && t.marked() && !t.used() {
			_ = t.clear()
		}
		t.close()
	}
}
