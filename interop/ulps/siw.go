//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/softrnic/softrnic/interop/internal/siw"
)

// guest is a place where programs run over the kernel. Its Port leads to guestPort.
type guest struct{ *siw.Guest }

const (
	// guestPort is where servers listen in the guest.
	guestPort = 7471
	// guestFolder is where programs run in the guest.
	guestFolder = "/tmp/ulps"
	// listening is what a server's script prints when it listens.
	listening = "LISTENING"
)

func (g guest) do(ctx context.Context, script string) (printed string, err error) {
	return g.Run(ctx, rowTime, script)
}

func (g guest) folder(ctx context.Context) (dir string, remove func(), err error) {
	_, err = g.do(ctx, fmt.Sprintf("mkdir -p %[1]s && cd %[1]s && head -c %[2]d /dev/urandom >original", guestFolder, fileSize))
	return guestFolder, func() { _, _ = g.do(context.WithoutCancel(ctx), "rm -rf "+guestFolder) }, err
}

func (g guest) ports() (there, here int, err error) { return guestPort, g.Port, nil }

// command has a server's script say when it listens: QEMU takes connections whether it does or not. siw listens with a socket of the kernel's, which
// /proc/net/tcp shows as it does all.
func (g guest) command(ctx context.Context, r row, dir string, port int) *exec.Cmd {
	program := strings.Join(r.filled(g.host(), port), " ")
	if r.client {
		return g.Command(ctx, rowTime, "cd "+dir+" && exec "+program)
	}
	return g.Command(ctx, rowTime, fmt.Sprintf(`
cd %s
%s & program=$!
while ! grep -q ':%04X 00000000:0000 0A ' /proc/net/tcp; do
  kill -0 $program || exit 1
  usleep 20000
done
echo %s
wait $program`, dir, program, port, listening))
}

func (g guest) listens(ctx context.Context, o *output) error { return o.await(ctx, listening) }

// end ends rcopy, of which the guest runs one at most: to end what runs it here is not enough.
func (g guest) end(*exec.Cmd) {
	ctx, cancel := context.WithTimeout(context.Background(), rowTime)
	defer cancel()
	_, _ = g.do(ctx, "killall rstream riostream rcopy 2>/dev/null")
}

func (g guest) sum(ctx context.Context, file string) (string, error) {
	return g.do(ctx, "md5sum <"+file+" | cut -d' ' -f1")
}

// host is how the guest reaches 127.0.0.1 of this machine, through QEMU's user networking.
func (g guest) host() string { return siw.HostAddr }

// siw runs the programs of C in a guest, and returns a table.
func (o options) siw(ctx context.Context) (text string, ok bool, err error) {
	script, err := filepath.Abs("interop/siw-guest")
	if err != nil {
		return "", false, err
	}
	fmt.Fprintln(os.Stderr, "starting the guest; its image takes a few minutes to make the first time")
	booted, err := siw.Start(ctx, script, "ulps", guestPort)
	if err != nil {
		return "", false, err
	}
	g := guest{booted}
	defer func() { err = errors.Join(err, g.Stop()) }()
	kernel, err := g.do(ctx, "uname -r")
	if err != nil {
		return "", false, err
	}
	text, ok, err = o.table(ctx, g, guestRows(), "program of C, in the guest")
	if err != nil {
		return "", false, err
	}
	if log, err := g.do(ctx, "! dmesg | grep -E 'BUG|WARNING|Oops|Call Trace'"); err != nil {
		fmt.Fprintln(os.Stderr, "the guest's kernel:\n"+log)
		ok = false
	}
	return text + fmt.Sprintf("\nLinux %s with siw, in QEMU; rdma-core's programs there, Go outside.\n", kernel), ok, nil
}
