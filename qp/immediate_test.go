package qp

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// immediateSetups are the ways a message can go: each of them a queue pair that speaks
// RFC 7306.
func immediateSetups() map[string]setup {
	list := map[string]setup{
		"plain": {}, "crc": {crc: true}, "markers": {markers: true, crc: true}, "pipe": {pipe: true}, "pipe, crc": {pipe: true, crc: true},
		"responder": {role: mpa.Responder},
	}
	for name, c := range list {
		extended(&c)
		list[name] = c
	}
	return list
}

// octetsOf are those of a text in hexadecimal.
func octetsOf(text string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// reap takes n completions as they are.
func (r *rig) reap(q *cq.Queue, n int) []wr.Completion {
	r.t.Helper()
	list := make([]wr.Completion, n)
	got := 0
	require.Eventually(r.t, func() bool {
		got += q.Poll(list[got:])
		return got == n
	}, patience, 1e5)
	return list
}

// Frames by hand (RFC 7306 6.2 figure 7, A.3): Immediate Data 00000000deadbeef behind two
// Sends; and an RDMA Write of 01020304 to 0x100:0x1000 with 0102030405060708 behind it, with
// a Solicited Event. CRC32C at the end.
const (
	goldenSend1  = `00 12 41 43 00000000 00000000 00000001 00000000 58 7b e8 c4`
	goldenImm3   = `00 1a 41 48 00000000 00000000 00000003 00000000 00000000deadbeef 8e 23 96 17`
	goldenWrite  = `00 12 c1 40 00000100 0000000000001000 01 02 03 04 09 87 8c 44`
	goldenImmSE1 = `41 49 00000000 00000000 00000001 00000000 0102030405060708`
)

// TestImmediateGoldenOut has what is sent octet for octet.
func TestImmediateGoldenOut(t *testing.T) {
	r := newRig(t, setup{crc: true, config: func(c *Config) { c.Extensions = true }})
	r.postSend(wr.Request{}, wr.Request{}, wr.Request{Op: wr.OpImmediate, Immediate: 0xdeadbeef, SGL: r.full.sgl(0, 9)})
	var got [24 + 24 + 32]byte
	_, err := io.ReadFull(r.peer.Conn, got[:])
	require.NoError(t, err)
	require.Equal(t, octetsOf(goldenSend1), got[:24])
	require.Equal(t, octetsOf(goldenImm3), got[48:], "the list of a request without one is not looked at")

	r = newRig(t, setup{crc: true, config: func(c *Config) { c.Extensions = true }})
	copy(r.full.mem(), []byte{1, 2, 3, 4})
	r.full.expect(0, []byte{1, 2, 3, 4})
	r.postSend(wr.Request{
		ID: 5, Op: wr.OpWriteImmediateSE, SGL: r.full.sgl(0, 4), Remote: wr.Remote{STag: 0x100, TO: 0x1000}, Immediate: 0x0102030405060708,
	})
	_, err = io.ReadFull(r.peer.Conn, got[:24])
	require.NoError(t, err)
	require.Equal(t, octetsOf(goldenWrite), got[:24])
	require.Equal(t, octetsOf(goldenImmSE1), r.next())
	require.Equal(t, []wr.Completion{{ID: 5, QP: ownQP, Op: wr.OpWriteImmediateSE}}, r.reap(r.scq, 1), "one completion for both")
	require.Empty(t, r.all(r.scq))
	r.requireMemory()
}

// TestImmediateGoldenIn has frames by hand come in.
func TestImmediateGoldenIn(t *testing.T) {
	r := newRig(t, setup{crc: true, config: func(c *Config) { c.Extensions = true }})
	r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2}, wr.Recv{ID: 3})
	require.NoError(t, r.peer.Raw(octetsOf(goldenSend1)))
	r.send(rawpeer.Send(2, nil).Octets())
	require.NoError(t, r.peer.Raw(octetsOf(goldenImm3)))
	require.Equal(t, []wr.Completion{
		{ID: 1, QP: ownQP, Op: wr.OpRecv}, {ID: 2, QP: ownQP, Op: wr.OpRecv},
		{ID: 3, QP: ownQP, Op: wr.OpRecv, Value: 0xdeadbeef, HasImmediate: true},
	}, r.reap(r.rcq, 3))
}

// TestImmediateOut posts all that sends Immediate Data, alone and behind Writes of every
// size, between Sends: a peer sees each message once and in order.
func TestImmediateOut(t *testing.T) {
	for name, c := range immediateSetups() {
		t.Run(name, func(t *testing.T) {
			c.depth = 32
			r := newRig(t, c)
			r.openGate()
			msn, id := uint32(0), uint64(0)
			var want [][]byte
			sizes := []int{0, 1, 100, 1000, 3000, 4096}
			if c.pipe { // which has short segments
				sizes = sizes[:4]
			}
			for _, size := range sizes {
				r.whileHeld(func() {
					for _, op := range []wr.Op{wr.OpSend, wr.OpImmediate, wr.OpWriteImmediate, wr.OpImmediateSE, wr.OpWriteImmediateSE} {
						id++
						data := 0xA1B2C3D4_00000000 | id
						r.postSend(wr.Request{
							ID: id, Op: op, SGL: r.full.sgl(0, size), Remote: wr.Remote{STag: 0x777, TO: 0x99}, Immediate: data,
							Flags: wr.Unsignaled * wr.Flags(id&1),
						})
						if op.IsWrite() {
							want = append(want, rawpeer.Write(0x777, 0x99, r.full.mem()[:size]).Octets())
						}
						msn++
						seg := rawpeer.Send(msn, r.full.mem()[:size])
						if op.IsImmediate() {
							seg = rawpeer.Immediate(msn, data)
						}
						if op.Solicited() {
							seg.Op = rdmap.ImmediateSE
						}
						want = append(want, seg.Octets())
					}
				})
				for _, w := range want {
					require.Equal(t, w, r.next(), "size %d", size)
				}
				want = nil
			}
			for i, c := range r.wait(r.scq, int(id/2)) {
				require.Equal(t, comp{ID: uint64(2*i + 2), Status: wr.StatusSuccess}, c)
			}
			require.Empty(t, r.all(r.scq))
		})
	}
}

// TestImmediateIn has Immediate Data take receives of all kinds among Sends, each way a
// receive may come from. Its buffers are not looked at, whatever they name.
func TestImmediateIn(t *testing.T) {
	for name, c := range immediateSetups() {
		for _, sharing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, S-RQ=%v", name, sharing), func(t *testing.T) {
				post := (*rig).postRecv
				if sharing {
					s := newShared(t, ownPD)
					c.config = func(c *Config) { c.Extensions, c.SRQ = true, s.Queue }
					post = func(_ *rig, w ...wr.Recv) { s.post(w...) }
				}
				r := newRig(t, c)
				post(r,
					wr.Recv{ID: 1}, wr.Recv{ID: 2, SGL: r.full.sgl(0, 8)}, wr.Recv{ID: 3, SGL: r.full.sgl(100, 8)},
					wr.Recv{ID: 4, SGL: []wr.SGE{{STag: r.gone, Length: 8}, {STag: 0xbad, Length: 1}}}, wr.Recv{ID: 5, SGL: r.full.sgl(200, 3)},
				)
				se := rawpeer.Immediate(4, 1<<63)
				se.Op, se.Inv = rdmap.ImmediateSE, 0xffffffff // RFC 7306 4.1: ignored
				r.send(
					rawpeer.Immediate(1, 1).Octets(), rawpeer.Immediate(2, 2).Octets(), rawpeer.Send(3, filled(8)).Octets(),
					se.Octets(), rawpeer.Immediate(5, ^uint64(0)).Octets(),
				)
				recv := func(id, value uint64) wr.Completion {
					return wr.Completion{ID: id, QP: ownQP, Op: wr.OpRecv, Value: value, HasImmediate: true}
				}
				require.Equal(t, []wr.Completion{
					recv(1, 1), recv(2, 2), {ID: 3, QP: ownQP, Op: wr.OpRecv, Bytes: 8}, recv(4, 1<<63), recv(5, ^uint64(0)),
				}, r.reap(r.rcq, 5))
				r.full.expect(100, filled(8))
				r.requireMemory()
				require.Equal(t, wr.StateRTS, r.q.State())
			})
		}
	}
}

// TestImmediateSolicited: of the two only Immediate Data with a Solicited Event meets a CQ
// that is armed for one.
func TestImmediateSolicited(t *testing.T) {
	c := setup{}
	extended(&c)
	r := newRig(t, c)
	r.postRecv(make([]wr.Recv, 2)...)
	require.NoError(t, r.rcq.Request(wr.NotifySolicited))
	r.send(rawpeer.Immediate(1, 5).Octets())
	r.wait(r.rcq, 1)
	require.Empty(t, r.rcq.Events())
	se := rawpeer.Immediate(2, 6)
	se.Op = rdmap.ImmediateSE
	r.send(se.Octets())
	<-r.rcq.Events()
}

// TestImmediateGraceful: Immediate Data waits for a receive where Sends do.
func TestImmediateGraceful(t *testing.T) {
	for _, sharing := range []bool{false, true} {
		var shared *sharedQueue
		c := setup{}
		extended(&c)
		if sharing {
			shared = newShared(t, ownPD)
		}
		r := newRig(t, graceful(c, shared))
		r.send(rawpeer.Immediate(1, 7).Octets(), rawpeer.Send(2, nil).Octets())
		r.paused()
		post := r.postRecv
		if sharing {
			post = shared.post
		}
		post(wr.Recv{ID: 1}, wr.Recv{ID: 2})
		require.Equal(t, []wr.Completion{
			{ID: 1, QP: ownQP, Op: wr.OpRecv, Value: 7, HasImmediate: true}, {ID: 2, QP: ownQP, Op: wr.OpRecv},
		}, r.reap(r.rcq, 2))
	}
}

// TestImmediateFence: behind a Read Fence neither the Write nor its Immediate Data goes out
// before the Read is answered.
func TestImmediateFence(t *testing.T) {
	for _, op := range []wr.Op{wr.OpImmediate, wr.OpWriteImmediate} {
		c := setup{}
		extended(&c)
		r := newRig(t, c)
		sink := r.full.sge(readTO, 4)
		r.postSend(
			wr.Request{ID: 1, Op: wr.OpRead, Local: sink, Remote: wr.Remote{STag: 0x77}},
			wr.Request{ID: 2, Op: op, Flags: wr.ReadFence, Remote: wr.Remote{STag: 0x88}, Immediate: 9},
		)
		_ = r.next()
		require.Equal(t, uint64(1), r.q.sq.framed.Load(), "held back")
		r.send(rawpeer.ReadResponse(uint32(sink.STag), sink.TO, filled(4)).Octets())
		if op.IsWrite() {
			require.Equal(t, rawpeer.Write(0x88, 0, nil).Octets(), r.next())
		}
		require.Equal(t, rawpeer.Immediate(1, 9).Octets(), r.next())
		require.Equal(t, ok(1, 2), r.wait(r.scq, 2))
	}
}

// TestWriteImmediateAtFault: a Write that cannot be done takes its Immediate Data with it, and
// one that is not all sent when the stream ends is flushed, unsignaled or not.
func TestWriteImmediateAtFault(t *testing.T) {
	for _, flags := range []wr.Flags{0, wr.Unsignaled} {
		c := setup{}
		extended(&c)
		r := newRig(t, c)
		r.postSend(
			wr.Request{ID: 1, Op: wr.OpWriteImmediate, Flags: flags, SGL: []wr.SGE{{STag: r.gone, Length: 4}}, Remote: wr.Remote{STag: 0x88}},
			wr.Request{ID: 2, Op: wr.OpImmediate, Flags: flags},
		)
		require.Equal(t, terminate(0, echoNone, nil), r.next())
		require.NoError(t, r.peer.Close())
		r.over()
		require.Equal(t, []comp{{1, wr.StatusInvalidSTag, 0}, {2, wr.StatusFlushed, 0}}, r.all(r.scq))

		r = newIdleRig(t, c)
		big := r.big(32 << 20)
		r.connectNarrow()
		r.postRecv(wr.Recv{ID: 7})
		r.postSend(
			wr.Request{ID: 1, Op: wr.OpWriteImmediate, Flags: flags, SGL: []wr.SGE{big}, Remote: wr.Remote{STag: 0x88}},
			wr.Request{ID: 2, Op: wr.OpImmediate, Flags: flags},
		)
		r.stuck()
		require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
		require.Equal(t, flushed(1, 2), r.all(r.scq))
		require.Equal(t, flushed(7), r.all(r.rcq))
	}
}

// TestWriteImmediateHalfOut: a Write that is all out does not complete its request while the
// Immediate Data is not.
func TestWriteImmediateHalfOut(t *testing.T) {
	c := setup{}
	extended(&c)
	r := newRig(t, c)
	r.whileHeld(func() {
		r.postSend(wr.Request{ID: 1, Op: wr.OpWriteImmediate, SGL: r.full.sgl(0, 4), Remote: wr.Remote{STag: 0x88}})
		tx, b := &r.s.tx, newBatch()
		tx.short = -1 // the usual way: a message at a time
		started, bad := tx.nextMessage()
		require.True(t, started)
		require.Equal(t, noFault, bad)
		require.Equal(t, noFault, tx.frame(b))
		require.Equal(t, rdmap.Immediate, tx.msg.op, "the Write is framed, and its Immediate Data is next")
		tx.batch = b
		tx.written.Add(uint64(b.Size())) // as if the LLP had taken it
		r.s.completeSQ()
		require.Empty(t, r.all(r.scq))
		tx.written.Store(0)
	})
	require.Equal(t, rawpeer.Write(0x88, 0, r.full.mem()[:4]).Octets(), r.next())
	require.Equal(t, rawpeer.Immediate(1, 0).Octets(), r.next())
	require.Equal(t, ok(1), r.wait(r.scq, 1))
}
