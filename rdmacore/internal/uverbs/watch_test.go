//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestWatch: a thread sleeps on the channel and on what Watch tells, as the preload library's read does, and gets its event. It is never
// left with the channel alone: the Write before each Send puts nothing there.
func TestWatch(t *testing.T) {
	var told []int
	p := started(t, Config{Channel: func(fd int) { told = append(told, fd) }})
	fd := p.channel()
	assert.Equal(t, []int{fd}, told)
	a, b := newSide(p, allRights), onChannel(t, fd, p)
	var fds [8]int32
	assert.Zero(t, p.dev.Watch(fd+1000, fds[:]), "no channel")
	assert.Zero(t, p.dev.Watch(fd, fds[:]), "no stream")
	connect(t, a, b)
	v, err := use(&b.file.cqs, b.cq, "completion queue")
	require.NoError(t, err)
	want := p.dev.Watch(fd, fds[:]) // none where queues do not receive for their streams: see make paths
	for want == Received {
		want = p.dev.Watch(fd, fds[:])
	}
	assert.True(t, v.watched())
	assert.False(t, v.watched(), "it has not waited since")
	for i := range uint64(100) {
		_, err := b.recv(i, b.sge(0, 64))
		require.NoError(t, err)
		b.arm(0)
		a.posted(rdma(signaled(uabi.WRRDMAWrite, 1), b, 64), a.sge(0, 8))
		a.one()
		sent := false
		for pending(fd) == 0 {
			n := p.dev.Watch(fd, fds[:])
			if n == Received {
				continue
			}
			require.Equal(t, want, n, "the two queues' receives are of one set")
			if !sent {
				a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
				sent = true
			}
			set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			for _, f := range fds[:n] {
				set = append(set, unix.PollFd{Fd: f, Events: unix.POLLIN})
			}
			_, _ = unix.Poll(set, -1)
		}
		assert.EqualValues(t, 0xc0ffee, event(t, fd).CQHandle)
		b.one()
		a.one()
	}
	must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: b.qp.QPHandle})
	must[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: b.cq})
	assert.Zero(t, p.dev.Watch(fd, fds[:]), "no queue reports there any more")
}

// TestWatchAll: each queue of a channel has its turn, and only those that the thread sleeps for count as watched.
func TestWatchAll(t *testing.T) {
	p := started(t, Config{})
	fd := p.channel()
	var fds [2]int32
	var queues []*cq
	var senders []*side
	for range len(fds) + 1 {
		a, b := newSide(p, allRights), onChannel(t, fd, p)
		connect(t, a, b)
		v, err := use(&b.file.cqs, b.cq, "completion queue")
		require.NoError(t, err)
		require.False(t, v.watched(), "nobody has waited")
		queues, senders = append(queues, v), append(senders, a)
		for i := range uint64(32) {
			_, err := b.recv(i, b.sge(0, 64))
			require.NoError(t, err)
		}
	}
	if p.dev.Watch(fd, fds[:]) == 0 {
		t.Skip("queues do not receive for their streams here: see make paths")
	}
	for received, round := false, 0; !received; round++ {
		require.Less(t, round, 32, "the background poller was faster each time")
		before := queues[1].waits.Load()
		senders[0].posted(signaled(uabi.WRSend, 1), senders[0].sge(0, 8))
		senders[0].one()
		received = p.dev.Watch(fd, fds[:]) == Received
		require.Equal(t, before+1, queues[1].waits.Load(), "the first one's arrivals are no reason to pass over it")
	}
	for _, v := range queues {
		v.watched()
	}
	for p.dev.Watch(fd, fds[:]) == Received {
	}
	assert.True(t, queues[0].watched())
	assert.True(t, queues[1].watched())
	assert.False(t, queues[2].watched(), "there was no room for its descriptor")
}
