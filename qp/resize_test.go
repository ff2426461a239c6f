package qp

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/wr"
)

// slotModel is what verbs draft 8.2.1 says of the slots of a Send Queue, as plain
// lists.
type slotModel struct {
	depth int
	list  []slotState // outstanding, oldest first
	id    uint64
}

type slotState struct {
	id         uint64
	unsignaled bool
	done       bool
	queued     bool // a completion waits
}

// free gives back what is free at the front.
func (m *slotModel) free(reaped uint64) {
	for len(m.list) > 0 {
		e := m.list[0]
		if e.id > reaped && !(e.done && !e.queued) {
			return
		}
		m.list = m.list[1:]
	}
}

// TestSlotModel posts, completes, polls and resizes at random, and compares what
// is refused, and every completion, with the model.
func TestSlotModel(t *testing.T) {
	seed := rand.Uint64()
	if v, err := strconv.ParseUint(os.Getenv("SOFTRNIC_MODEL_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Logf("to replay: SOFTRNIC_MODEL_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	q := cq.New(cq.Config{ID: 1, Entries: 1 << 12})
	var s sendQueue
	s.init(&Config{ID: 1, SendDepth: 8, SendSGE: 3, WriteSGE: 2, SendCQ: q})
	m := slotModel{depth: 8}
	var reaped uint64
	var queued []uint64
	for step := range 20000 {
		switch rng.IntN(7) {
		case 0, 1, 2: // post
			m.free(reaped)
			r := wr.Request{ID: m.id + 1, SGL: make([]wr.SGE, rng.IntN(4))}
			for i := range r.SGL {
				r.SGL[i].Length = rng.Uint32N(1 << 20)
			}
			if rng.IntN(2) == 0 {
				r.Flags = wr.Unsignaled
			}
			err := s.push(&r)
			s.publish()
			if len(m.list) >= m.depth {
				require.ErrorIs(t, err, wr.ErrQueueFull, "step %d", step)
				break
			}
			require.NoError(t, err, "step %d", step)
			m.id++
			m.list = append(m.list, slotState{id: m.id, unsignaled: r.Flags != 0})
			require.Equal(t, r.SGL, append([]wr.SGE{}, s.at(s.tail.Load()-1).sgl...))
		case 3: // complete some
			n := rng.IntN(4)
			for i := range m.list {
				e := &m.list[i]
				if e.done {
					continue
				}
				if n--; n < 0 {
					break
				}
				e.done = true
				if e.queued = !e.unsignaled; e.queued {
					queued = append(queued, e.id)
				}
				s.framed.Store(e.id) // ids count like positions
			}
			require.True(t, s.complete(0))
		case 4, 5: // poll some
			var c [3]wr.Completion
			n := q.Poll(c[:1+rng.IntN(3)])
			for _, got := range c[:n] {
				require.Equal(t, queued[0], got.ID, "step %d", step)
				queued = queued[1:]
				reaped = got.ID
			}
			require.True(t, n > 0 || len(queued) == 0)
		default:
			m.free(reaped)
			depth := 1 + rng.IntN(33)
			require.EqualValues(t, len(m.list), s.reclaim(), "step %d", step)
			if len(m.list) <= depth {
				s.resize(depth)
				m.depth = ringSize(depth)
			}
			require.Equal(t, m.depth, s.slots.depth())
		}
	}
}

// TestResizeUnderTraffic has both queues grow and shrink while Sends go out and
// come in: nothing is lost, doubled or out of order (RV-6.1.3-M7, M9).
func TestResizeUnderTraffic(t *testing.T) {
	const messages = 1000
	r := newRig(t, setup{cqe: 256, depth: 8})
	region := r.full
	binary.BigEndian.PutUint64(region.mem(), 0)
	var work sync.WaitGroup
	defer work.Wait()
	done := make(chan struct{})

	work.Go(func() { // the peer: looks at what comes, answers each message
		for i := range messages {
			seg, err := r.peer.Segment()
			if !assert.NoError(t, err) {
				return
			}
			assert.EqualValues(t, i+1, seg.MSN())
			assert.Len(t, seg.Payload(), i%5*8)
			reply := ddp.AppendUntagged(nil, true, 0x43, 0, ddp.QNSend, uint32(i+1), 0)
			if !assert.NoError(t, r.peer.Send(reply)) {
				return
			}
		}
	})
	work.Go(func() { // receives, posted ahead of what they are for
		next, got := uint64(0), uint64(0)
		var c [8]wr.Completion
		for got < messages {
			for next < messages {
				if _, err := r.q.PostRecv(wr.Recv{ID: next}); err != nil {
					if !assert.ErrorIs(t, err, wr.ErrQueueFull) {
						return
					}
					break
				}
				next++
			}
			n, err := r.rcq.Wait(t.Context(), c[:])
			if !assert.NoError(t, err) {
				return
			}
			for _, x := range c[:n] {
				assert.Equal(t, wr.Completion{ID: got, QP: ownQP, Op: wr.OpRecv}, x)
				got++
			}
		}
	})
	work.Go(func() { // resizes
		rng := rand.New(rand.NewPCG(1, 2))
		resized, refused := 0, 0
		for {
			select {
			case <-done:
				assert.NotZero(t, resized)
				t.Logf("%d resized, %d refused", resized, refused)
				return
			default:
			}
			runtime.Gosched()
			m := Modify{Next: wr.StateRTS, SendDepth: num(1 + rng.IntN(32)), RecvDepth: num(4 + rng.IntN(32)), IRD: num(rng.IntN(8))}
			before := r.q.Query()
			if err := r.q.Modify(m); err != nil {
				assert.ErrorIs(t, err, wr.ErrShrinkFailed)
				assert.Equal(t, before, r.q.Query())
				refused++
			} else {
				assert.Equal(t, ringSize(*m.SendDepth), r.q.Query().SendDepth)
				resized++
			}
		}
	})
	// A receive may come too late for its message: then the stream would end.
	// So a Send is posted only when its answer has somewhere to go.
	var c [8]wr.Completion
	last := uint64(0)
	for i := uint64(0); i < messages; {
		if r.q.rq.tail.Load() <= i {
			runtime.Gosched()
			continue
		}
		w := wr.Request{ID: i + 1, SGL: region.sgl(0, int(i%5)*8)}
		if i%3 != 0 && i != messages-1 {
			w.Flags = wr.Unsignaled
		}
		_, err := r.q.PostSend(w)
		if err == nil {
			i++
			continue
		}
		require.ErrorIs(t, err, wr.ErrQueueFull)
		// Unsignaled ones need no completion to come free.
		runtime.Gosched()
		for _, x := range c[:r.scq.Poll(c[:])] {
			require.Greater(t, x.ID, last)
			require.Equal(t, wr.StatusSuccess, x.Status)
			last = x.ID
		}
	}
	for last < messages {
		n, err := r.scq.Wait(t.Context(), c[:])
		require.NoError(t, err)
		for _, x := range c[:n] {
			require.Greater(t, x.ID, last)
			last = x.ID
		}
	}
	close(done)
	work.Wait()
	require.Equal(t, wr.StateRTS, r.q.State())
	r.requireEvents()
}

// TestResizeKeepsElements: what is outstanding is not touched by a resize, what
// is posted behind it follows.
func TestResizeKeepsElements(t *testing.T) {
	r := newIdleRig(t, setup{depth: 4})
	for id := range uint64(3) {
		r.postSend(wr.Request{ID: id, SGL: r.full.sgl(int(id)*8, 8)})
		r.postRecv(wr.Recv{ID: 10 + id})
	}
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateIdle, SendDepth: num(2)}), wr.ErrShrinkFailed)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateIdle, SendDepth: num(100), RecvDepth: num(3)}))
	require.Equal(t, 128, r.q.Query().SendDepth)
	require.Equal(t, 4, r.q.Query().RecvDepth)
	r.postSend(wr.Request{ID: 3, SGL: r.full.sgl(24, 8)})
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateIdle, SendDepth: num(4)}))
	_, err := r.q.PostSend(wr.Request{})
	require.ErrorIs(t, err, wr.ErrQueueFull)
	r.connect()
	for i := range 4 {
		seg, err := r.peer.Segment()
		require.NoError(t, err)
		require.Equal(t, r.full.mem()[i*8:i*8+8], seg.Payload())
	}
	require.Equal(t, []comp{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}}, r.wait(r.scq, 4))
}
