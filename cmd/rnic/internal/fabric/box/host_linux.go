package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// host holds the namespaces of one: network, name and mounts, by descriptor alone.
type host struct {
	net, uts, mnt *os.File
	nl            *netlink.Handle
}

// onThread runs f on a thread that ends with it, since it enters other namespaces. The first thread is none: it stays as
// long as the process, and what is known of it is taken for the process's.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread() // others have it again when f has been on one of theirs
			done <- onThread(f)
			return
		}
		done <- f() // and no unlock: the thread ends with the goroutine
	}()
	return <-done
}

// newHost makes a host. etc is what its /etc/hosts says, for which there is a file of that name.
func newHost(name, file, etc string) (h *host, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(etc), 0o644); err != nil { //nolint:gosec // programs of other users read it, as any /etc/hosts
		return nil, err
	}
	h = &host{}
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("new namespaces: %w", err)
		}
		if err := unix.Sethostname([]byte(name)); err != nil {
			return err
		}
		// Where the system has no such file, names are not found. The folder of sysfs shows the network of who has mounted it;
		// where the system does not let that, programs see the switches there.
		if err := unix.Mount(file, "/etc/hosts", "", unix.MS_BIND, ""); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("putting /etc/hosts in place: %w", err)
		}
		if unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV, "") != nil {
			_ = unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV|unix.MS_RDONLY, "")
		}
		for _, s := range sysctls {
			_ = os.WriteFile("/proc/sys/net/"+s[0], []byte(s[1]), 0) // some kernels have fewer
		}
		if err := h.open(); err != nil {
			return err
		}
		lo, err := h.nl.LinkByName("lo")
		if err != nil {
			return err
		}
		return h.nl.LinkSetUp(lo)
	})
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// sysctls of a host: link-local addresses are there at once, each NIC answers for its own addresses alone and by whatever way
// the question came, and everybody may ping.
var sysctls = [][2]string{
	{"ipv6/conf/default/accept_dad", "0"},
	{"ipv4/conf/all/arp_ignore", "1"},
	{"ipv4/conf/all/arp_announce", "2"},
	{"ipv4/conf/all/rp_filter", "0"},
	{"ipv4/conf/default/rp_filter", "0"},
	{"ipv4/ping_group_range", "0 2147483647"},
}

// open takes descriptors of the namespaces of this thread.
func (h *host) open() (err error) {
	for _, ns := range []struct {
		to   **os.File
		name string
	}{{&h.net, "net"}, {&h.uts, "uts"}, {&h.mnt, "mnt"}} {
		if *ns.to, err = os.Open("/proc/thread-self/ns/" + ns.name); err != nil {
			return err
		}
	}
	h.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
	return err
}

func (h *host) close() {
	for _, f := range []*os.File{h.net, h.uts, h.mnt} {
		if f != nil {
			_ = f.Close()
		}
	}
	if h.nl != nil {
		h.nl.Close()
	}
}

// enter brings this thread into the host.
func (h *host) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // no other thread may have this one's root
		return err
	}
	for _, ns := range []struct {
		f    *os.File
		kind int
	}{{h.net, unix.CLONE_NEWNET}, {h.uts, unix.CLONE_NEWUTS}, {h.mnt, unix.CLONE_NEWNS}} {
		if err := unix.Setns(int(ns.f.Fd()), ns.kind); err != nil {
			return fmt.Errorf("entering the namespaces of the host: %w", err)
		}
	}
	return nil
}

// Start starts a program on host i, as syscall.ForkExec does, without the rights that this process has in its namespaces,
// and calls started with its number before anybody else can have seen its end.
func (b *Box) Start(i int, path string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	err = onThread(func() error {
		if err := b.hosts[i].enter(); err != nil {
			return err
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return fmt.Errorf("giving up rights: %w", err)
		}
		var err error
		pid, err = syscall.ForkExec(path, args, attr)
		return err
	})
	return pid, err
}
