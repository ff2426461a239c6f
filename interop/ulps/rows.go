//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

func rows() []row {
	stream := func(options string, size, transfers, iterations int) []row {
		x := exchange{size: size, transfers: transfers, iterations: iterations}
		options = fmt.Sprintf("-S %d -C %d -I %d -T v%s", size, transfers, iterations, options)
		return []row{
			{command: "rstream -p PORT " + options + " -s HOST", client: true, half: x.server},
			{command: "rstream -p PORT " + options, half: x.client},
		}
	}
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
		x := mapping{size: size, transfers: 10, iterations: 100}
		options := fmt.Sprintf("-S %d -C 10 -I 100 -T v", size)
		c := rsocket.Config{Mapped: 1}
		all = append(all,
			row{command: "riostream -p PORT " + options + " -s HOST", client: true, half: x.server, config: c},
			row{command: "riostream -p PORT " + options, half: x.client, config: c})
	}
	return append(all,
		row{command: "rcopy original HOST:copy -p PORT", client: true, half: copyServer},
		row{command: "rcopy -p PORT", half: copyClient})
}

// run runs a row, and returns what the program has printed.
func (r row) run(ctx context.Context, rnic string) (printed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "ulps-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(dir+"/original", octets(fileSize), 0o600); err != nil {
		return "", err
	}
	var l *rsocket.Listener
	port := 0
	if r.client {
		if l, err = r.config.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", err
		}
		defer l.Close()
		port = l.Addr().(*net.TCPAddr).Port
	} else if port, err = freePort(); err != nil {
		return "", err
	}
	words := append([]string{"run"}, strings.Fields(r.flags)...)
	words = append(words, "--addr", "127.0.0.1", "--")
	words = append(words, strings.Fields(strings.NewReplacer("PORT", strconv.Itoa(port), "HOST", "127.0.0.1").Replace(r.command))...)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, rnic, words...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	failed := r.meet(ctx, l, port, dir)
	stays := strings.HasPrefix(r.command, "rcopy -p")
	if failed != nil || stays {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
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
func (r row) meet(ctx context.Context, l *rsocket.Listener, port int, dir string) error {
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
	err = r.half(nc.(*rsocket.Conn), dir)
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
