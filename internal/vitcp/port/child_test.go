//go:build linux

package port

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// childEnv has the address and the discriminator of a server that another process is: it echoes what its clients say.
const childEnv = "SOFTRNIC_TEST_PORT"

func child() {
	addr, called, _ := strings.Cut(os.Getenv(childEnv), " ")
	u, err := Open(context.Background(), netip.MustParseAddrPort(addr), Config{MatchTimeout: long})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	serve(context.Background(), u, segment.Discriminator(called))
}

// serve echoes what all who call say.
func serve(ctx context.Context, u *Use, called segment.Discriminator) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		r, err := u.Wait(ctx, vitcp.Filter{Called: called})
		if err != nil {
			return
		}
		all.Go(func() {
			if a, err := r.Accept(ctx, vitcp.Config{}); err == nil {
				defer context.AfterFunc(ctx, func() { _ = a.Conn.Close() })()
				_, _ = io.Copy(a.Conn, a.Conn)
				_ = a.Conn.Close()
			}
		})
	}
}

// startChild starts such a process.
func startChild(t *testing.T, at netip.AddrPort, called string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%v %s", childEnv, at, called))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { kill(cmd) })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd
}

func kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	}
}

func dial(ctx context.Context, t *testing.T, at netip.AddrPort, called segment.Discriminator) net.Conn {
	t.Helper()
	d := <-dialling(ctx, at, called)
	require.NoError(t, d.err, "%v", called)
	t.Cleanup(func() { _ = d.a.Conn.Close() })
	return d.a.Conn
}

// echo says something, and hears it.
func echo(c net.Conn, n int) error {
	text := fmt.Sprintf("%08d", n)
	if _, err := c.Write([]byte(text)); err != nil {
		return err
	}
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	if string(b) != text {
		return fmt.Errorf("%s came for %s", b, text)
	}
	return nil
}

// talk echoes until stop is closed, and then says how it went.
func talk(c net.Conn, stop <-chan struct{}, count *atomic.Int64) <-chan error {
	ended := make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := echo(c, n); err != nil {
				ended <- err
				return
			}
			count.Add(1)
		}
	}()
	return ended
}

// TestKilled: the process that accepts is killed, and the next one too, while clients talk and others come.
// Connections of the others are not harmed, and no client is refused.
func TestKilled(t *testing.T) {
	at := unused(t)
	a := startChild(t, at, "a")
	b := startChild(t, at, "b")
	startChild(t, at, "c")
	own := open(t, process(), at)
	ctx, cancel := context.WithCancel(bounded(t))
	served := make(chan struct{})
	go func() { defer close(served); serve(ctx, own, "own") }()
	defer func() { cancel(); <-served }()

	stop := make(chan struct{})
	var said [4]atomic.Int64
	var talks [4]<-chan error
	for i, called := range []segment.Discriminator{"a", "b", "c", "own"} {
		talks[i] = talk(dial(ctx, t, at, called), stop, &said[i])
	}
	var comers sync.WaitGroup // clients that come all the time
	for _, called := range []segment.Discriminator{"c", "own"} {
		comers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				select {
				case <-stop:
					return
				default:
				}
				d := <-dialling(ctx, at, called)
				if !assert.NoError(t, d.err, "%v", called) {
					return
				}
				assert.NoError(t, echo(d.a.Conn, n))
				_ = d.a.Conn.Close()
			}
		})
	}
	progress := func(i int) {
		t.Helper()
		before := said[i].Load()
		require.Eventually(t, func() bool { return said[i].Load() > before+10 }, long, 1)
	}
	progress(0)
	kill(a)
	require.Error(t, <-talks[0])
	require.NoError(t, echo(dial(ctx, t, at, "b"), 1), "another one accepts")
	for i := 1; i < 4; i++ {
		progress(i)
	}
	kill(b)
	require.Error(t, <-talks[1])
	for _, called := range []segment.Discriminator{"c", "own"} {
		require.NoError(t, echo(dial(ctx, t, at, called), 1))
	}
	again := startChild(t, at, "a") // and one that comes finds who has the port now
	require.NoError(t, echo(dial(ctx, t, at, "a"), 1))
	kill(again)
	progress(2)
	progress(3)
	close(stop)
	require.NoError(t, <-talks[2])
	require.NoError(t, <-talks[3])
	comers.Wait()
}

// TestStopped: of a process that accepts and stands still, one that comes is told.
func TestStopped(t *testing.T) {
	at := unused(t)
	a := startChild(t, at, "a")
	require.NoError(t, a.Process.Signal(syscall.SIGSTOP))
	_, err := syscall.Wait4(a.Process.Pid, nil, syscall.WUNTRACED, nil) // until it stands still
	require.NoError(t, err)
	_, err = NewPorts(50*1e6).Open(t.Context(), at, Config{})
	require.ErrorIs(t, err, ErrStill)
	require.NoError(t, a.Process.Signal(syscall.SIGCONT))
	open(t, process(), at)
}
