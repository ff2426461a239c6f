package fabric

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"
	"github.com/softrnic/softrnic/internal/ownsock"
)

// lockDescriptor is where the keeper has the lock of its folder.
const lockDescriptor = 3

// claim makes the folder of a new fabric, and locks it.
func claim(ctx context.Context, name string) (dir string, locked *os.File, err error) {
	unlock, err := ownsock.Lock(ctx, patience)
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	names, err := tidy()
	if err != nil {
		return "", nil, err
	}
	if slices.Contains(names, name) {
		return "", nil, fmt.Errorf("the fabric %s is up already: end it by rnic fabric down --name %s, or give this one another --name", name, name)
	}
	dir = place(name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	locked, free, err := lock(dir)
	if err == nil && !free {
		err = fmt.Errorf("another process has locked %s", dir)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, locked, nil
}

// longestPath is that of a socket: sun_path of unix(7) without the octet 0 at its end.
const longestPath = len(unix.RawSockaddrUnix{}.Path) - 1

// socketRoom is what package ownsock puts behind the folder of a host for the sockets of its programs: it makes them under
// another name, which is the longest.
const socketRoom = len("/softrnic/.s4294967295/s")

// checkPaths refuses a fabric in whose folder programs could have no sockets: their counters would be missing without a word.
func checkPaths(dir string, f *layout.Fabric) error {
	for i := range f.Hosts {
		host := f.Hosts[i].Name
		if n := len(filepath.Join(dir, runFolder, host)) + socketRoom; n > longestPath {
			return fmt.Errorf("sockets of programs on %s would have paths of %d octets, below %s, and may have %d: give the fabric (--name) "+
				"or the host a shorter name, or set XDG_RUNTIME_DIR to a folder with a shorter one", host, n, dir, longestPath)
		}
	}
	return nil
}

// attempt is a kind of namespaces, and how a process gets them.
type attempt struct {
	in   string
	attr *syscall.SysProcAttr
}

// attempts are what this user may have a chance with, the best first.
func attempts(loopback bool) []attempt {
	own := func() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
	last := attempt{onLoopback, own()}
	if loopback {
		return []attempt{last}
	}
	const all = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	root, user := own(), own()
	root.Cloneflags = all
	user.Cloneflags = all | syscall.CLONE_NEWUSER
	// Whoever it is outside, it is inside: MPI and others do not like to be root. So it takes its rights along to the keeper.
	user.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	user.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	user.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_CHROOT}
	if os.Geteuid() == 0 {
		return []attempt{{inRoot, root}, {inUser, user}, last}
	}
	return []attempt{{inUser, user}, last}
}

// up starts a fabric, and returns what it is.
func up(ctx context.Context, name, text string, loopback bool) (*state, error) {
	f, err := layout.Parse(text)
	if err == nil {
		err = checkPaths(place(name), f)
	}
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	dir, locked, err := claim(ctx, name)
	if err != nil {
		return nil, err
	}
	defer locked.Close()
	s := spec{Name: name, Dir: dir, Text: text, Env: os.Environ(), Cwd: cwd, Self: self}
	var denied []string
	for _, a := range attempts(loopback) {
		s.In = a.in
		var st *state
		var again bool
		if st, again, err = begin(ctx, s, a.attr, locked); err == nil {
			for _, d := range denied {
				st.Notes = append(st.Notes, "not to be had: "+d)
			}
			return st, nil
		}
		if ctx.Err() != nil || !again {
			break
		}
		denied = append(denied, fmt.Sprintf("%s (%v)", a.in, err))
		if err := os.MkdirAll(dir, 0o700); err != nil { // the keeper has removed it
			return nil, err
		}
	}
	if len(denied) > 0 && !slices.Contains(denied, "") && err != nil {
		err = fmt.Errorf("%w; before that: %s", err, strings.Join(denied, ", "))
	}
	endLeftovers(dir) // of a keeper without namespaces that was killed
	return nil, errors.Join(err, removeOwn(dir, locked))
}

// begin starts a keeper, and waits until the fabric is there. again says that another kind of namespaces may be to be had.
func begin(ctx context.Context, s spec, attr *syscall.SysProcAttr, locked *os.File) (st *state, again bool, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, false, err
	}
	log, err := os.OpenFile(filepath.Join(s.Dir, keeperLog), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	defer log.Close()
	keeper := exec.Command(s.Self) // it outlives ctx
	keeper.Args = []string{"rnic", "fabric", "up", "--" + keepFlag}
	keeper.Stdin, keeper.Stderr, keeper.SysProcAttr = bytes.NewReader(text), log, attr
	keeper.ExtraFiles = []*os.File{locked}
	keeper.Dir = "/"
	stdout, err := keeper.StdoutPipe()
	if err != nil {
		return nil, false, err
	}
	if err := keeper.Start(); err != nil {
		return nil, true, fmt.Errorf("starting the keeper: %w", err)
	}
	told := make(chan struct{})
	defer close(told)
	go func() {
		select {
		case <-ctx.Done():
			_ = keeper.Process.Kill()
		case <-told:
		}
	}()
	var word ready
	err = json.NewDecoder(stdout).Decode(&word)
	if err == nil && word.Error == "" {
		word.State.Keeper = keeper.Process.Pid
		go func() { _ = keeper.Wait() }() // should this process still be there at its end
		return word.State, false, nil
	}
	_ = keeper.Wait()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		said, _ := os.ReadFile(filepath.Join(s.Dir, keeperLog))
		err = fmt.Errorf("the keeper ended without a word: %s", bytes.TrimSpace(said))
	default:
		err = errors.New(word.Error)
	}
	return nil, word.Denied, err
}
