package fabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/ownsock"
)

// A fabric has a folder, fabric-NAME, where this user's sockets are: the keeper's socket, what the hosts' programs put in
// place of theirs, and their output. Its keeper holds a lock on the file lock in it for as long as it lives, so a folder
// whose lock is free is what a crash has left, and the next command removes it.
const (
	placePrefix = "fabric-"
	lockFile    = "lock"
	socketFile  = "socket"
	logFolder   = "log"
	runFolder   = "run" // a folder a host: its XDG_RUNTIME_DIR
	tmpFolder   = "tmp"
	etcFolder   = "etc"
	rshFile     = "rsh"
	keeperLog   = "keeper"
)

// patience is how long another rnic may hold the lock of all fabrics.
const patience = 20 * time.Second

// placeVariable tells programs of a fabric which one theirs is.
const placeVariable = "SOFTRNIC_FABRIC"

func place(name string) string { return filepath.Join(ownsock.Folder(), placePrefix+name) }

// lock takes the lock of a fabric's folder, or says that its keeper has it. The lock of all fabrics is held.
func lock(dir string) (f *os.File, free bool, err error) {
	f, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, false, err
	}
	if free, err = tryLock(f); !free {
		_ = f.Close()
		return nil, false, err
	}
	return f, true, nil
}

// tryLock takes the lock of a file, or says that another process has it.
func tryLock(f *os.File) (free bool, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// holds reports whether the lock in a fabric's folder is that file still, which is open here: so its number is no other's.
func holds(dir string, locked *os.File) (bool, error) {
	there, err := os.Lstat(filepath.Join(dir, lockFile))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	own, err := locked.Stat()
	return err == nil && os.SameFile(own, there), err
}

// clearAway removes what the fabric with this lock has left: programs, if it had no namespaces, and its folder, unless that
// is gone, or has become another's. The lock of all fabrics is held.
func clearAway(dir string, locked *os.File) error {
	if own, err := holds(dir, locked); !own {
		return err
	}
	endLeftovers(dir)
	return os.RemoveAll(dir)
}

// removeOwn removes the folder of the fabric with this lock, unless that is gone, or has become another's, under the lock of
// all fabrics.
func removeOwn(dir string, locked *os.File) error {
	unlock, err := ownsock.Lock(context.Background(), patience)
	if err != nil {
		return err
	}
	defer unlock()
	if own, err := holds(dir, locked); !own {
		return err
	}
	return os.RemoveAll(dir)
}

// tidy removes what crashes have left, and returns the fabrics that there are. The lock of all fabrics is held.
func tidy() (names []string, err error) {
	entries, err := os.ReadDir(ownsock.Folder())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), placePrefix)
		if !ours || !e.IsDir() {
			continue
		}
		dir := place(name)
		f, free, err := lock(dir)
		switch {
		case errors.Is(err, os.ErrNotExist): // somebody else has removed it just now
			continue
		case err != nil:
			return nil, err
		case !free:
			names = append(names, name)
			continue
		}
		err = clearAway(dir, f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("removing what is left of the fabric %s: %w", name, err)
		}
	}
	return names, nil
}

// fabrics are the names of those there are, after what crashes have left is gone.
func fabrics(ctx context.Context) ([]string, error) {
	unlock, err := ownsock.Lock(ctx, patience)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return tidy()
}

// found is the folder of the fabric that a command is for: the one with that name, that of the program it runs in, or the
// only one.
func found(ctx context.Context, name string) (string, error) {
	if dir := os.Getenv(placeVariable); name == "" && filepath.IsAbs(dir) {
		return dir, nil
	}
	names, err := fabrics(ctx)
	switch {
	case err != nil:
		return "", err
	case name != "" && slices.Contains(names, name):
		return place(name), nil
	case len(names) == 0:
		return "", errors.New("no fabric is up: make one by rnic fabric up FILE")
	case name != "":
		return "", fmt.Errorf("there is no fabric %s; there is %s", name, strings.Join(names, ", "))
	case len(names) > 1:
		return "", fmt.Errorf("there are several fabrics: name one by --name, of %s", strings.Join(names, ", "))
	}
	return place(names[0]), nil
}

// endLeftovers ends the programs of a fabric without namespaces whose keeper was killed: those of this user that have its
// folder in their environment, and are neither this process nor one that it has come from.
func endLeftovers(dir string) {
	mine := map[int]bool{}
	for pid := os.Getpid(); pid > 1 && !mine[pid]; pid = parent(pid) {
		mine[pid] = true
	}
	of := []byte(placeVariable + "=" + dir)
	for range 1000 { // until none is found: they start others meanwhile
		found := false
		for _, pid := range processes() {
			env, err := os.ReadFile(processFile(pid, "environ"))
			if err == nil && !mine[pid] && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return bytes.Equal(v, of) }) {
				found = unix.Kill(pid, unix.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// processFile is the path of a file of /proc about a process.
func processFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func processes() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parent is the process that pid is a child of, or 0.
func parent(pid int) int {
	text, err := os.ReadFile(processFile(pid, "stat"))
	if err != nil {
		return 0
	}
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // proc_pid_stat(5): the name before may have anything
	if len(words) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(words[1])
	return n
}
