package qp

import (
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// TestEndsBeforeItBegins: a post of Idle may be what first kicks the session that a
// Modify to RTS is just making known, and finds an element at fault. What ends the
// session waits until it has begun.
func TestEndsBeforeItBegins(t *testing.T) {
	for range 20 {
		r := newIdleRig(t, setup{})
		r.postSend(wr.Request{ID: 1, SGL: []wr.SGE{{STag: r.gone, Length: 5}}})
		mine, theirs, err := rawpeer.Pair()
		require.NoError(t, err)
		r.peer = rawpeer.New(theirs, rawpeer.Options{Patience: patience})

		r.q.mu.Lock() // as QP.start does
		r.s, err = r.q.prepare(&Modify{Stream: &mpa.Stream{Conn: mine}})
		require.NoError(t, err)
		r.q.session.Store(r.s)
		r.q.last.Store(r.s)
		r.s.tx.posted(1, 5) // the second half of PostSend
		require.True(t, r.s.stopping.Load())
		for range 100 { // let finish come as far as it can
			runtime.Gosched()
		}
		r.q.setState(wr.StateRTS)
		r.s.start()
		r.q.mu.Unlock()

		require.Equal(t, terminate(uint16(faults[faultSQSTag].Code), echoNone, nil), r.next())
		require.NoError(t, r.peer.Close())
		r.over()
		require.Equal(t, []comp{{1, faults[faultSQSTag].Status, 0}}, r.all(r.scq))
		require.Equal(t, wr.StateError, r.q.State())
	}
}

// TestBlockingDescriptor: os.File.Fd, by which programs set options, makes a socket
// a blocking one. The data path does not come to rest in a system call for that.
func TestBlockingDescriptor(t *testing.T) {
	r := newIdleRig(t, setup{})
	mine, theirs, err := rawpeer.Pair()
	require.NoError(t, err)
	f, err := mine.(*net.TCPConn).File()
	require.NoError(t, err)
	_ = f.Fd()
	require.NoError(t, f.Close())
	r.start(mine, theirs)
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 16)})
	require.Empty(t, r.all(r.rcq))
	r.send(rawpeer.Send(1, []byte("hello")).Octets())
	r.full.expect(0, []byte("hello"))
	require.Equal(t, []comp{{1, wr.StatusSuccess, 5}}, r.wait(r.rcq, 1))
	r.requireMemory()
}
