//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/softrnic/softrnic/interop/internal/procnet"
)

// space is a network of its own, with its own processes, mounts and users too where the caller is not root. Its first process ends
// with this program, whatever ends this program, and the kernel then ends all that ran inside: nothing is left.
type space struct {
	first *exec.Cmd
	hold  io.Closer // the first process reads it until it is closed
}

// firstProcess makes the space fit to live in, says so, and waits. It is bash since that reaps what others leave.
const firstProcess = `mount --make-rprivate / && mount -t proc proc /proc && ip link set lo up && echo ready && read -r _`

// newSpace makes a space with a loopback interface.
func newSpace() (*space, error) {
	first := exec.Command("bash", "-c", firstProcess)
	first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC,
		Setpgid:    true,
	}
	if os.Geteuid() != 0 {
		first.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		first.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		first.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	var stderr strings.Builder
	first.Stderr = &stderr
	in, err := first.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := first.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := first.Start(); err != nil {
		return nil, fmt.Errorf("making namespaces: %w; run it as root, or allow user namespaces", err)
	}
	s := &space{first: first, hold: in}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		s.end()
		return nil, fmt.Errorf("making namespaces: %s", strings.TrimSpace(stderr.String()))
	}
	return s, nil
}

// command prepares words to run in the space, in the folder dir.
func (s *space) command(ctx context.Context, dir string, words ...string) *exec.Cmd {
	args := []string{"--target", strconv.Itoa(s.first.Process.Pid), "--net", "--pid", "--mount", "--ipc", "--wdns=" + dir}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--preserve-credentials")
	}
	return exec.CommandContext(ctx, "nsenter", append(append(args, "--"), words...)...)
}

// do runs a shell script in the space.
func (s *space) do(ctx context.Context, script string) (string, error) {
	out, err := s.command(ctx, "/", "sh", "-ec", script).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// listens tells whether a socket of the space listens on a port.
func (s *space) listens(port int) bool { return procnet.Listens(s.first.Process.Pid, port) }

// end ends all processes of the space, and with them the space.
func (s *space) end() {
	_ = s.hold.Close()
	_ = s.first.Process.Kill()
	_ = s.first.Wait()
}

// Addresses of two joined spaces.
const (
	serverAddr = "10.99.0.1"
	clientAddr = "10.99.0.2"
)

// alone gives a space an interface with an address, as a host has: libfabric, say, does not look at the loopback's.
const alone = `
ip link add wire type veth peer name end
ip addr add ` + serverAddr + `/24 dev wire
ip link set end up
ip link set wire up`

// lossy drops one of a hundred packets that arrive, and counts them. A packet is one of the wire's, not a batch of them.
const lossy = `
ip addr add %s/24 dev wire
ip link set wire gso_max_segs 1 up
nft add table inet wire
nft add chain inet wire in '{ type filter hook input priority 0; }'
nft add rule inet wire in iif wire numgen random mod 100 0 counter drop`

// join lays a wire between two spaces, of which each loses one of a hundred packets that it receives.
func join(ctx context.Context, server, client *space) error {
	pid := func(s *space) string { return strconv.Itoa(s.first.Process.Pid) }
	lay := exec.CommandContext(ctx, "ip", "link", "add", "wire", "netns", pid(server), "type", "veth",
		"peer", "name", "wire", "netns", pid(client))
	if out, err := lay.CombinedOutput(); err != nil {
		return fmt.Errorf("laying a veth pair: %w: %s", err, out)
	}
	_, err := server.do(ctx, fmt.Sprintf(lossy, serverAddr))
	_, err2 := client.do(ctx, fmt.Sprintf(lossy, clientAddr))
	return errors.Join(err, err2)
}

// lost counts the packets that a joined space dropped.
func (s *space) lost(ctx context.Context) (int, error) {
	text, err := s.do(ctx, "nft list table inet wire")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(text, "counter packets ")
	number, _, _ := strings.Cut(rest, " ")
	return strconv.Atoi(number)
}
