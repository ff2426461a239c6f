//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

// rows are those under `rnic run`.
func rows() []row {
	var all []row
	for _, s := range [][]row{
		stream("", 65536, 10, 100), stream(" -T b", 65536, 10, 100), stream(" -T n", 4096, 10, 100), stream(" -T a", 4096, 10, 100),
		stream(" -T b", 1, 1000, 20), stream(" -T b", 64, 1, 2000), stream(" -T b", 1<<20, 4, 10), stream(" -T b -B 8192", 65536, 10, 10), stream(" -T b", 1000003, 3, 5),
	} {
		all = append(all, s...)
	}
	for _, r := range stream(" -T b", 65536, 10, 100) {
		r.flags, r.config.Immediate = "--as roce", true
		all = append(all, r)
	}
	for _, size := range []int{64, 4096, 65536} {
		all = append(all, oneSided(size, 10, 100)...)
	}
	return append(all, copies()...)
}

// guestRows are those in the guest, whose processors may be emulated.
func guestRows() []row {
	var all []row
	for _, s := range [][]row{
		stream("", 65536, 10, 10), stream(" -T b", 65536, 10, 10), stream(" -T n", 4096, 10, 10), stream(" -T a", 4096, 10, 10),
		stream(" -T b", 1, 1000, 2), stream(" -T b", 64, 1, 200), stream(" -T b", 1<<20, 4, 2), stream(" -T b -B 8192", 65536, 10, 2),
		oneSided(64, 10, 10), oneSided(65536, 10, 10),
	} {
		all = append(all, s...)
	}
	return append(all, copies()...)
}

// stream is rstream with options, in both roles.
func stream(options string, size, transfers, iterations int) []row {
	x := exchange{size: size, transfers: transfers, iterations: iterations}
	options = fmt.Sprintf("-S %d -C %d -I %d -T v%s", size, transfers, iterations, options)
	return []row{
		{command: "rstream -p PORT " + options + " -s HOST", client: true, half: x.server},
		{command: "rstream -p PORT " + options, half: x.client},
	}
}

// oneSided is riostream, in both roles.
func oneSided(size, transfers, iterations int) []row {
	x := mapping{size: size, transfers: transfers, iterations: iterations}
	options := fmt.Sprintf("-S %d -C %d -I %d -T v", size, transfers, iterations)
	c := rsocket.Config{Mapped: 1}
	return []row{
		{command: "riostream -p PORT " + options + " -s HOST", client: true, half: x.server, config: c},
		{command: "riostream -p PORT " + options, half: x.client, config: c},
	}
}

// copies is rcopy, in both roles.
func copies() []row {
	return []row{
		{command: "rcopy original HOST:copy -p PORT", client: true, half: copyServer},
		{command: "rcopy -p PORT", half: copyClient},
	}
}

// place is where the programs of C run.
type place interface {
	// folder makes an empty folder with the file original, and removes it again.
	folder(ctx context.Context) (dir string, remove func(), err error)
	// ports are a port for a program to listen on, and where this machine reaches that.
	ports() (there, here int, err error)
	// command is a row's, in the folder dir.
	command(ctx context.Context, r row, dir string, port int) *exec.Cmd
	// listens waits until a server may be dialled, if nothing but what it prints tells.
	listens(ctx context.Context, o *output) error
	// end ends a program that does not by itself.
	end(cmd *exec.Cmd)
	// sum is the MD5 of a file, in hex.
	sum(ctx context.Context, file string) (string, error)
	// host is the address of this machine's loopback.
	host() string
}

// filled are the words of the command.
func (r row) filled(host string, port int) []string {
	return strings.Fields(strings.NewReplacer("PORT", strconv.Itoa(port), "HOST", host).Replace(r.command))
}

// run runs a row, and returns what the program has printed.
func (r row) run(ctx context.Context, at place) (printed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	dir, remove, err := at.folder(ctx)
	if err != nil {
		return "", err
	}
	defer remove()
	var l *rsocket.Listener
	var there, here int
	if r.client {
		if l, err = r.config.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", err
		}
		defer l.Close()
		there = l.Addr().(*net.TCPAddr).Port
	} else if there, here, err = at.ports(); err != nil {
		return "", err
	}
	out := newOutput()
	cmd := at.command(ctx, r, dir, there)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		out.end()
	}()
	var failed error
	if !r.client {
		failed = at.listens(ctx, out)
	}
	if failed == nil {
		failed = r.meet(ctx, l, here, files{ctx, at, dir})
	}
	stays := strings.HasPrefix(r.command, "rcopy -p")
	if failed != nil || stays {
		at.end(cmd)
	}
	err = <-ended
	if stays || failed != nil || isHangUp(r, err) {
		err = nil
	}
	if ctx.Err() != nil {
		err = errors.New("it did not end in time")
	}
	return out.String(), errors.Join(failed, err)
}

// isHangUp reports whether the client has ended with what its last poll saw beyond data: the server's end together with the last octets.
func isHangUp(r row, err error) bool {
	const pollHUP = 0x10
	var status *exec.ExitError
	return strings.Contains(r.command, "-T a") && errors.As(err, &status) && status.ExitCode() == pollHUP
}

// meet connects with the program, and is its other half.
func (r row) meet(ctx context.Context, l *rsocket.Listener, port int, at files) error {
	var nc net.Conn
	var err error
	if l != nil {
		stop := context.AfterFunc(ctx, func() { _ = l.Close() })
		defer stop()
		nc, err = l.Accept()
	} else {
		nc, err = dialSoon(ctx, r.config, port)
	}
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	err = r.half(nc.(*rsocket.Conn), at)
	return errors.Join(err, nc.Close())
}

// dialSoon connects once the program listens.
func dialSoon(ctx context.Context, c rsocket.Config, port int) (net.Conn, error) {
	for {
		nc, err := c.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nc, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
