package verbs_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// counter is eight octets of n that peers may change, as a number of the program.
func (n *node) counter(t testing.TB) (*uint64, verbs.Remote) {
	word := new([1]uint64)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(word)), 8)
	mr, err := n.pd.Register(mem, localRights|verbs.RemoteAtomic)
	require.NoError(t, err)
	return &word[0], mr.Remote(0)
}

// TestAtomicCounter: what several peers, over queue pairs of their own, and the program itself
// add is all there, and no two have been told of the same number.
func TestAtomicCounter(t *testing.T) {
	const clients, each = 3, 400
	extended := verbs.QPConfig{Extensions: true}
	server := newNode(t, extended)
	word, at := server.counter(t)
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for i := range clients {
		c := newNode(t, extended)
		qp := server.qp
		if i > 0 {
			qp = server.newQP(t, extended)
		}
		join(t, c.qp, qp, i%2 == 0)
		wg.Go(func() {
			add := verbs.Request{Op: verbs.OpFetchAdd, Remote: at, Atomic: verbs.FetchAdd(1 << 20)}
			var done [16]verbs.Completion
			for posted, got := 0, 0; got < each; {
				for ; posted < each && posted-got < len(done); posted++ {
					_, err := c.qp.PostSend(add)
					assert.NoError(t, err)
				}
				n, err := c.cq.Wait(t.Context(), done[:])
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				for _, d := range done[:n] {
					assert.NoError(t, d.Err())
					assert.False(t, seen[d.Value>>20], "told twice")
					seen[d.Value>>20] = true
				}
				mu.Unlock()
				got += n
			}
		})
	}
	for range each {
		atomic.AddUint64(word, 1)
	}
	wg.Wait()
	assert.EqualValues(t, clients*each<<20|each, atomic.LoadUint64(word))
	assert.Len(t, seen, clients*each)
}

// TestAtomicSwaps: each operation, over each kind of connection.
func TestAtomicSwaps(t *testing.T) {
	for name, connect := range map[string]func(t testing.TB, a, b *verbs.QP){
		"TCP":      func(t testing.TB, a, b *verbs.QP) { join(t, a, b, false) },
		"with CRC": func(t testing.TB, a, b *verbs.QP) { join(t, a, b, true) },
		"pipe":     joinPipe,
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newNode(t, verbs.QPConfig{Extensions: true}), newNode(t, verbs.QPConfig{Extensions: true})
			connect(t, a.qp, b.qp)
			word, at := b.counter(t)
			do := func(op verbs.Op, r *verbs.AtomicRequest) uint64 {
				_, err := a.qp.PostSend(verbs.Request{Op: op, Remote: at, Atomic: r})
				require.NoError(t, err)
				c := waitOne(t, a.cq)
				require.NoError(t, c.Err())
				require.Equal(t, op, c.Op)
				return c.Value
			}
			assert.EqualValues(t, 0, do(verbs.OpSwap, verbs.Swap(7)))
			assert.EqualValues(t, 7, do(verbs.OpCompareSwap, verbs.CompareSwap(6, 1)))
			assert.EqualValues(t, 7, do(verbs.OpCompareSwap, verbs.CompareSwap(7, 8)))
			assert.EqualValues(t, 8, do(verbs.OpFetchAdd, verbs.FetchAdd(^uint64(0))))
			assert.EqualValues(t, 7, do(verbs.OpSwap, &verbs.AtomicRequest{Data: 0xFF, Mask: 0xF0}))
			assert.EqualValues(t, 0xF7, do(verbs.OpFetchAdd, verbs.FetchAdd(0)))
			assert.EqualValues(t, 0xF7, atomic.LoadUint64(word))
		})
	}
}

// TestAtomicWindow: a window may open memory for Atomics whose region does not.
func TestAtomicWindow(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{Extensions: true}), newNode(t, verbs.QPConfig{Extensions: true})
	join(t, a.qp, b.qp, false)
	under, err := b.pd.Register(make([]byte, 64), localRights|verbs.BindWindow)
	require.NoError(t, err)
	mw, err := b.pd.AllocateWindow()
	require.NoError(t, err)
	bind := mw.BindRequest(under, 8, 16, verbs.RemoteAtomic, 1)
	require.NoError(t, second(b.qp.PostSend(verbs.Request{Op: verbs.OpBind, Bind: bind})))
	require.NoError(t, second(a.qp.PostSend(verbs.Request{Op: verbs.OpWrite}))) // the Initiator begins
	a.wait(t, 1)
	b.wait(t, 1)
	buffer := verbs.BindBuffer(bind)
	require.NoError(t, second(a.qp.PostSend(verbs.Request{Op: verbs.OpFetchAdd, Remote: buffer.Remote(8), Atomic: verbs.FetchAdd(1)})))
	a.wait(t, 1)
	require.NoError(t, second(a.qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, 8), Remote: buffer.Remote(8)})))
	c := waitOne(t, a.cq)
	require.Equal(t, verbs.StatusRemoteTermination, c.Status, "it is not the right to read")

	only := newNode(t, verbs.QPConfig{Extensions: true})
	half, err := only.pd.Register(make([]byte, 64), verbs.LocalRead|verbs.BindWindow)
	require.NoError(t, err)
	w, err := only.pd.AllocateWindow()
	require.NoError(t, err)
	join(t, newNode(t, verbs.QPConfig{}).qp, only.qp, false)
	require.NoError(t, second(only.qp.PostSend(verbs.Request{Op: verbs.OpBind, Bind: w.BindRequest(half, 0, 8, verbs.RemoteAtomic, 1)})))
	require.Equal(t, verbs.StatusAccess, waitOne(t, only.cq).Status, "of memory that may not be written")
}

// TestNoInboundAtomic refuses them, and Query tells.
func TestNoInboundAtomic(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{Extensions: true}), newNode(t, verbs.QPConfig{Extensions: true, NoInboundAtomic: true})
	q, err := b.qp.Query()
	require.NoError(t, err)
	require.True(t, q.NoInboundAtomic && q.Extensions)
	events := make(chan verbs.Event, 4)
	require.NoError(t, b.nic.SetEventHandler(func(e verbs.Event) { events <- e }))
	join(t, a.qp, b.qp, false)
	word, at := b.counter(t)
	require.NoError(t, second(a.qp.PostSend(verbs.Request{Op: verbs.OpSwap, Remote: at, Atomic: verbs.Swap(1)})))
	require.Equal(t, verbs.StatusRemoteTermination, waitOne(t, a.cq).Status)
	require.Equal(t, verbs.Event{ID: verbs.EventAtomicNotEnabled, QP: b.qp.ID()}, bare(<-events))
	require.Zero(t, atomic.LoadUint64(word))
}

// joinPipe is join over a connection whose reads and writes block.
func joinPipe(t testing.TB, a, b *verbs.QP) {
	x, y := net.Pipe()
	start(t, b, y, mpa.Responder, true)
	start(t, a, x, mpa.Initiator, true)
}
