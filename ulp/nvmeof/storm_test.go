package nvmeof

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// anything is a command of any kind for namespaces 0 to 2, each field at its extremes or at random.
func (q *rawQueue) anything(r *rand.Rand) command {
	opcodes := []byte{0, 1, 2, 5, 6, 8, 9, 0xa, 0xc, 0x18, 0x80, fabricsCommand, fabricsCommand}
	extremes := []uint32{
		0, 1, 2, 7, 0xff, 0x100, 0x7fff, 0xffff, 0x10000, 1 << 20, 1<<20 + 1, 0x7fffffff, 0x80000000, 0xffffffff,
		regCC, 0x00460001,
	}
	c := q.entry(opcodes[r.IntN(len(opcodes))], extremes[r.IntN(3)])
	for dw := 10; dw < 16; dw++ {
		v := extremes[r.IntN(len(extremes))]
		if r.IntN(8) == 0 {
			v = r.Uint32()
		}
		le.PutUint32(c[4*dw:], v)
	}
	switch r.IntN(8) {
	case 0:
		inline(c, r.IntN(64))
	case 1: // no data
	default:
		length := []int{0, 512, 1024, 4096, 8192, maxTransfer}[r.IntN(6)]
		plain(keyed(c, q.data, length))
		if r.IntN(2) == 0 {
			le.PutUint16(c[48:], uint16(max(length/blockSize, 1)-1))
		}
	}
	if q.id == 0 && c.opcode() == adminAsyncEvent {
		c[0] = adminAbort // an event request has no answer to wait for
	}
	return c
}

// storm sends commands, up to a dozen at once, until it has sent enough or the target ends the queue.
func (q *rawQueue) storm(r *rand.Rand, rounds int) {
	for range rounds {
		var posts []verbs.Request
		for i := range 1 + r.IntN(12) {
			copy(q.out.Bytes()[i*commandSize:], q.anything(r))
			posts = append(posts, verbs.Request{SGL: q.out.SGL(i*commandSize, commandSize)})
		}
		if _, err := q.qp.PostSend(posts...); err != nil {
			return
		}
		for range posts {
			if _, err := q.qp.SendCQ().WaitOne(q.t.Context()); err != nil {
				return
			}
			c, err := q.qp.RecvCQ().WaitOne(q.t.Context())
			if err != nil || c.Err() != nil {
				return
			}
			at := int(c.ID) * completionSize
			if _, err := q.qp.PostRecv(verbs.Recv{ID: c.ID, SGL: q.in.SGL(at, completionSize)}); err != nil {
				return
			}
		}
	}
}

// Hosts that send anything, in any order and many at once, cost others nothing, and all that they had comes back.
func TestHostileStorm(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(2<<20), Memory(2<<20), Memory(1<<20)))
	honest := associate(t, addr, 1).io[0]
	var hosts sync.WaitGroup
	for i := range 4 {
		a := associate(t, addr, 2)
		for k, q := range append(a.io, a.admin) {
			hosts.Go(func() {
				q.storm(rand.New(rand.NewPCG(uint64(i), uint64(k))), 40)
				_ = q.conn.Abort()
			})
		}
	}
	ended := make(chan struct{})
	go func() { hosts.Wait(); close(ended) }()
	for round, more := 0, true; more; round++ {
		select {
		case <-ended:
			more = false
		default:
		}
		want := pattern(round, 8192)
		require.Equal(t, Success, honest.give(honest.entry(cmdWrite, 3).onBlocks(0, 16), want).status)
		got, a := honest.fetch(honest.entry(cmdRead, 3).onBlocks(0, 16), 8192)
		require.Equal(t, Success, a.status)
		require.True(t, bytes.Equal(want, got))
	}
	require.Eventually(t, func() bool {
		target.mu.Lock()
		defer target.mu.Unlock()
		return len(target.controllers) == 1 && target.places.held() == 2
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return target.memory.TryAcquire(memoryOfAll) }, time.Minute, time.Millisecond)
	require.True(t, target.calls.TryAcquire(callsOfAll))
	require.True(t, target.clearing.TryAcquire(1))
}
