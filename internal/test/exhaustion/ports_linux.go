package exhaustion

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Ports runs f, which is all of the test t, in a process in a network of its own, whose loopback has two local ports
// to give away; a connection to server has each. Where no network can be made, the test is skipped.
func Ports(t *testing.T, f func(server string)) {
	t.Helper()
	Alone(t, func() {
		const ports = "/proc/sys/net/ipv4/ip_local_port_range"
		if err := os.WriteFile(ports, []byte("40000 40001"), 0); err != nil {
			t.Skip("networks of a process are not to be had:", err)
		}
		server, err := net.Listen("tcp", "127.0.0.1:7000")
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		for range 2 {
			c, err := net.Dial("tcp", server.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
		}
		f(server.Addr().String())
	})
}

// Alone runs f, which is all of the test t, in a process in a network of its own, which has a loopback. Where no network can be made, the
// test is skipped.
func Alone(t *testing.T, f func()) {
	t.Helper()
	if os.Getenv(childEnv) == t.Name() {
		if err := Loopback(true); err != nil {
			t.Skip("networks of a process are not to be had:", err)
		}
		f()
		return
	}
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	probe := exec.CommandContext(t.Context(), "true")
	probe.SysProcAttr = attr
	if err := probe.Run(); err != nil {
		t.Skip("networks of a process are not to be had:", err)
	}
	again(t, attr)
}

// Loopback has the loopback of a network that is Alone's be up, or down: then nothing comes through it any more.
func Loopback(up bool) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		if up {
			lo.SetUint16(unix.IFF_UP)
		}
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
	}
	if err = errors.Join(err, unix.Close(s)); err != nil {
		return fmt.Errorf("a loopback: %w", err)
	}
	return nil
}
