//go:build linux && (amd64 || arm64)

package uverbs

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// reader is a thread that reads a record of a channel, as ibv_get_cq_event does. The thread sleeps when reader returns.
func reader(t *testing.T, fd int) <-chan uint64 {
	got, thread := make(chan uint64, 1), make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- syscall.Gettid()
		var e uabi.CompEventDesc
		n, err := syscall.Read(fd, umem.Bytes(&e))
		for err == syscall.EINTR {
			n, err = syscall.Read(fd, umem.Bytes(&e))
		}
		if n == 8 && err == nil {
			got <- e.CQHandle
		}
	}()
	tid := <-thread
	require.Eventually(t, func() bool {
		call, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
		if err != nil { // a kernel that does not tell
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", tid))
			return bytes.Contains(stat, []byte(") S "))
		}
		return bytes.HasPrefix(call, fmt.Appendf(nil, "%d 0x%x ", syscall.SYS_READ, fd))
	}, time.Minute, time.Millisecond)
	return got
}

// TestChannelWakes has completions come before a thread reads the channel, while one sleeps there, twice, and for two
// threads: each notification that was asked for is told once.
func TestChannelWakes(t *testing.T) {
	p := started(t, Config{})
	fd := p.channel()
	a, b := newSide(p, allRights), onChannel(t, fd, p)
	connect(t, a, b)
	happen := func() {
		_, err := b.recv(1, b.sge(0, 64))
		require.NoError(t, err)
		b.arm(0)
		a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
		a.one()
		b.one() // so the next one asks for a notification of its own
	}
	wakes := func(r <-chan uint64) {
		t.Helper()
		select {
		case user := <-r:
			require.EqualValues(t, 0xc0ffee, user)
		case <-time.After(time.Minute):
			require.Fail(t, "a thread sleeps for ever")
		}
	}
	for range 5 {
		happen()
		await(t, fd, 8)
		event(t, fd)

		r := reader(t, fd)
		happen()
		wakes(r)

		r = reader(t, fd)
		happen()
		happen()
		wakes(r)
		event(t, fd)

		r, other := reader(t, fd), reader(t, fd)
		happen()
		happen()
		wakes(r)
		wakes(other)
		require.Zero(t, pending(fd), "told more often than asked for")
	}
}
