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
			require.Equal(t, 1, n, "the two queues' receives are of one set")
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
