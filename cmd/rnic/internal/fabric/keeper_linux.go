package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/box"
	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"
	"github.com/softrnic/softrnic/cmd/rnic/internal/run"
	"github.com/softrnic/softrnic/internal/ownsock"
)

// keeper is the process that a fabric lives and ends with: the first of its process namespace, so that all programs end
// with it, and the only one that holds the hosts' networks.
type keeper struct {
	spec
	f       *layout.Fabric
	boxed   bool // there are namespaces
	libs    bool // rnic run has what it needs
	began   time.Time
	notes   []string
	ctx     context.Context // ends with the fabric
	end     context.CancelFunc
	stopped chan struct{} // closed when nothing is left
	locked  *os.File      // the lock of its folder
	alone   net.Listener  // without namespaces: has the addresses of the loopback be this fabric's
	starter chan func()   // without namespaces: the thread that programs are started by

	mu       sync.Mutex // of all below, and of calls of box
	box      *box.Box
	programs []*program
	ends     int // how many of programs are over
	running  map[int]*program
}

// keep is the process of a fabric, from its spec on standard input to its end.
func keep(stdin io.Reader, stdout io.Writer) error {
	unix.CloseOnExec(lockDescriptor)
	deaf := make(chan os.Signal, 1) // nobody hears; signals that are ignored the programs would have ignored, too
	signal.Notify(deaf, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGINT)
	k := &keeper{running: map[int]*program{}, stopped: make(chan struct{}), locked: os.NewFile(lockDescriptor, lockFile)}
	if err := json.NewDecoder(stdin).Decode(&k.spec); err != nil {
		return fmt.Errorf("reading what the fabric is to be: %w", err)
	}
	k.ctx, k.end = context.WithCancel(context.Background())
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		k.end()
	}()
	go k.reap()
	l, err := k.begin()
	word := ready{}
	if err == nil {
		word.State = k.state()
	} else {
		word.Error = err.Error()
		word.Denied = errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
	}
	if told := json.NewEncoder(stdout).Encode(word); err == nil && told != nil {
		err = fmt.Errorf("rnic fabric up is gone: %w", told)
	}
	if err != nil {
		k.stop(word.Error == "") // else rnic fabric up may try again
		return err
	}
	if f, ok := stdout.(*os.File); ok {
		_ = f.Close()
	}
	var clients sync.WaitGroup
	clients.Go(func() { k.accept(l, &clients) })
	clients.Go(k.timeline)
	clients.Go(k.watch)
	<-k.ctx.Done()
	k.stop(true)
	_ = l.Close()  // who has come until then hears that the fabric ends
	clients.Wait() // and who has asked for the end that it has come
	return nil
}

// begin makes all that the file asks for.
func (k *keeper) begin() (l *net.UnixListener, err error) {
	if k.f, err = layout.Parse(k.Text); err != nil {
		return nil, err
	}
	k.boxed = k.In != onLoopback
	for _, sub := range []string{logFolder, runFolder, tmpFolder, etcFolder} {
		if err := os.Mkdir(filepath.Join(k.Dir, sub), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	for i := range k.f.Hosts {
		if err := os.Mkdir(filepath.Join(k.Dir, runFolder, k.f.Hosts[i].Name), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	if k.boxed {
		err = k.enclose()
	} else {
		err = k.onLoopback()
	}
	if err != nil {
		return nil, err
	}
	if err := k.writeLaunchers(); err != nil {
		return nil, err
	}
	if err := run.Libraries(); err == nil {
		k.libs = true
	} else {
		k.notes = append(k.notes, "programs have no RDMA device here: "+err.Error())
	}
	if l, err = ownsock.Listen(filepath.Join(k.Dir, socketFile)); err != nil {
		return nil, err
	}
	k.began = time.Now()
	for _, r := range k.f.Runs {
		if err := k.background(r); err != nil {
			return nil, fmt.Errorf("on %s: %w", k.f.Hosts[r.Host].Name, err)
		}
	}
	return l, nil
}

// enclose makes the hosts in namespaces, in which this process is already.
func (k *keeper) enclose() error {
	for _, m := range []struct {
		what, at, kind string
		flags          uintptr
		data           string
		must           bool
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, "", true},
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV, "", false}, // else it shows the numbers of outside
		{"tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777", false},
		{"tmpfs", filepath.Join(k.Dir, tmpFolder), "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=700", true},
	} {
		if err := unix.Mount(m.what, m.at, m.kind, m.flags, m.data); err != nil && m.must {
			return fmt.Errorf("mounting %s: %w", m.at, err)
		}
	}
	b, err := box.New(k.f, filepath.Join(k.Dir, etcFolder))
	if err != nil {
		return err
	}
	k.box = b
	if netem, _ := b.Has(); !netem {
		k.notes = append(k.notes, "this kernel has no netem: rnic itself carries the packets of links with a delay or loss")
	}
	return nil
}

// onLoopback has the hosts be addresses.
func (k *keeper) onLoopback() error {
	for i := range k.f.Links {
		if l := &k.f.Links[i]; l.Properties != (layout.Properties{}) {
			return fmt.Errorf("link %s: %w", l.Name, errNoLinks)
		}
	}
	for _, e := range k.f.Breaks {
		if e.Verb != "" {
			return fmt.Errorf("line %d: %w", e.Line, errNoLinks)
		}
	}
	var err error
	if k.alone, err = net.Listen("unix", loopbackName); errors.Is(err, unix.EADDRINUSE) {
		return errLoopback
	} else if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	k.starter = make(chan func())
	go k.starts()
	return k.f.OnLoopback()
}

// loopbackName is a socket without a file, which the system takes away with the keeper. It is of this network, as the
// addresses are, and of all users.
const loopbackName = "@softrnic-fabric-loopback"

var errLoopback = errors.New("another fabric is on the loopback and has the same addresses (127.64.1.1 and so on), so that programs " +
	"of one would reach those of the other: end that one first by rnic fabric down, unless it is another user's")

var errNoLinks = errors.New("without network namespaces there are no links to slow or break: leave that out, " +
	"run as root, or allow user namespaces (sysctl user.max_user_namespaces)")

var errEnds = errors.New("the fabric ends")

// writeLaunchers makes what MPI starts its processes by: an rsh, and lists of hosts.
func (k *keeper) writeLaunchers() error {
	var mpich, openmpi strings.Builder
	for i := range k.f.Hosts {
		h := &k.f.Hosts[i]
		name := h.Name
		if !k.boxed && len(h.NICs) > 0 {
			name = h.NICs[0].Addr.Addr().String()
		}
		fmt.Fprintln(&mpich, name)
		fmt.Fprintln(&openmpi, name, "slots=1")
	}
	rsh := fmt.Sprintf("#!/bin/sh\nexec %s fabric exec --rsh -- \"$@\"\n", quoted(k.Self))
	for _, f := range []struct {
		name, text string
		mode       os.FileMode
	}{{rshFile, rsh, 0o700}, {"hosts.mpich", mpich.String(), 0o600}, {"hosts.openmpi", openmpi.String(), 0o600}} {
		if err := os.WriteFile(filepath.Join(k.Dir, f.name), []byte(f.text), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// quoted is a word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// timeline makes what the file has happen.
func (k *keeper) timeline() {
	for _, e := range k.f.Breaks {
		select {
		case <-time.After(time.Until(k.began.Add(e.At))):
		case <-k.ctx.Done():
			return
		}
		var err error
		for _, i := range e.Links {
			err = errors.Join(err, k.change(i, e.Change))
		}
		for _, r := range e.Runs {
			err = errors.Join(err, k.background(r))
		}
		k.note(fmt.Sprintf("line %d, after %v: %s", e.Line, e.At, k.f.Describe(&e)), err)
	}
}

// looks is how often the keeper looks whether its folder is there.
const looks = time.Second

// watch ends the fabric when its folder is gone, as at the end of the user's session, or is another fabric's: nobody would
// ever reach it to end it.
func (k *keeper) watch() {
	look := time.NewTicker(looks)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-k.ctx.Done():
			return
		}
		if own, err := holds(k.Dir, k.locked); err == nil && !own {
			k.end()
		}
	}
}

func (k *keeper) change(i int, c layout.Change) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.ctx.Err() != nil:
		return errEnds
	case k.box == nil:
		return errNoLinks
	}
	return k.box.Change(i, c)
}

// note writes down what the fabric has done by itself.
func (k *keeper) note(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	f, failed := os.OpenFile(filepath.Join(k.Dir, logFolder, "fabric"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if failed != nil {
		return
	}
	fmt.Fprintln(f, what)
	_ = f.Close()
}

// state is what there is now.
func (k *keeper) state() *state {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &state{Name: k.Name, Began: k.began, In: k.In, Notes: k.notes}
	for i := range k.f.Links {
		if k.box != nil {
			s.Links = append(s.Links, k.box.State(i))
		} else {
			s.Links = append(s.Links, box.State{Name: k.f.Links[i].Name, Up: true, Medium: box.Plain})
		}
	}
	for h := range k.f.Hosts {
		hs := hostState{Name: k.f.Hosts[h].Name}
		for n, nic := range k.f.Hosts[h].NICs {
			hs.NICs = append(hs.NICs, nicState{nic.Name, nic.Addr.Addr().String(), k.f.LinkOf(layout.End{Host: h, NIC: n})})
		}
		s.Hosts = append(s.Hosts, hs)
	}
	for _, p := range k.programs {
		s.Programs = append(s.Programs, programState{k.f.Hosts[p.host].Name, p.pid, p.command, p.over, p.status})
	}
	return s
}

// stop ends all programs, and removes the files.
func (k *keeper) stop(files bool) {
	k.end()
	k.endPrograms()
	k.mu.Lock()
	if k.box != nil {
		k.box.Close()
	}
	k.mu.Unlock()
	if k.boxed {
		_ = unix.Unmount(filepath.Join(k.Dir, tmpFolder), unix.MNT_DETACH) // it goes with the namespace, but its folder now
	}
	if files {
		_ = removeOwn(k.Dir, k.locked) // else the next command does, which finds the lock free
	}
	close(k.stopped)
}
