package qp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// TestMixedExchange does some of everything in each combination of role, CRC and
// markers, with messages of several segments.
func TestMixedExchange(t *testing.T) {
	for i := range 8 {
		c := setup{role: mpa.Role(i & 1), crc: i&2 != 0, markers: i&4 != 0}
		t.Run(fmt.Sprintf("%v,crc=%v,markers=%v", c.role, c.crc, c.markers), func(t *testing.T) {
			c.stream = func(s *mpa.Stream) { s.EMSS = 536 }
			r := newRig(t, c)
			r.postRecv(wr.Recv{ID: 1, SGL: []wr.SGE{r.full.sge(0, 300), r.full.sge(400, 300)}})
			data := filled(600)
			parts := func(s rawpeer.Segment) (out [][]byte) {
				for off := 0; off < len(data); off += 200 {
					x := s
					x.Payload, x.More = data[off:off+200], off+200 < len(data)
					x.TO += uint64(off)
					x.MO += uint32(off)
					out = append(out, x.Octets())
				}
				return out
			}
			r.send(parts(rawpeer.Send(1, nil))...)
			r.full.expect(0, data[:300])
			r.full.expect(400, data[300:])
			require.Equal(t, []comp{{1, 0, 600}}, r.wait(r.rcq, 1))

			r.send(parts(rawpeer.Write(uint32(r.writable.stag), r.writable.at(slabSize-600), nil))...)
			r.writable.expect(slabSize-600, data)
			r.postSend(
				wr.Request{ID: 2, Op: wr.OpRead, Local: r.full.sge(1000, 600), Remote: wr.Remote{STag: 5, TO: 6}},
				wr.Request{ID: 3, Op: wr.OpWrite, SGL: r.readable.sgl(0, slabSize), Remote: wr.Remote{STag: 7, TO: 8}},
				wr.Request{ID: 4, Op: wr.OpSendSEInvalidate, Invalidate: 0x1234, SGL: []wr.SGE{r.full.sge(0, 0), r.readable.sge(5, 700)}},
			)
			require.Equal(t, byte(rdmap.ReadRequest), r.next()[1]&0xF)
			r.send(parts(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(1000), nil))...)
			r.full.expect(1000, data)
			require.Equal(t, r.readable.mem(), r.gather(rdmap.Write, func(s ddp.Segment, off int) {
				require.Equal(t, uint32(7), s.STag())
				require.Equal(t, uint64(8+off), s.TO())
			}))
			require.Equal(t, r.readable.mem()[5:705], r.gather(rdmap.SendSEInvalidate, func(s ddp.Segment, off int) {
				require.Equal(t, []uint32{0x1234, 0, 1, uint32(off)}, []uint32{s.RsvdULP32(), s.QN(), s.MSN(), s.MO()})
			}))
			require.Equal(t, []comp{{2, 0, 0}, {3, 0, 0}, {4, 0, 0}}, r.wait(r.scq, 3))

			r.send(readRequest(1, slabSize, r.readable.stag, r.readable.base).Octets())
			require.Equal(t, r.readable.mem(), r.gather(rdmap.ReadResponse, func(s ddp.Segment, off int) {
				require.Equal(t, uint32(0x5151), s.STag())
				require.Equal(t, uint64(0x6262+off), s.TO())
			}))
			r.requireMemory()
			require.NoError(t, r.peer.CloseWrite())
			r.over()
			require.Equal(t, wr.StateIdle, r.q.State())
			r.requireEvents(wr.EventLLPCloseComplete)
		})
	}
}

// gather reads a message of the queue pair, and has each segment checked.
func (r *rig) gather(op rdmap.Opcode, check func(s ddp.Segment, off int)) (b []byte) {
	r.t.Helper()
	for {
		s, err := r.peer.Segment()
		require.NoError(r.t, err)
		require.Equal(r.t, rdmap.Control(op), s.RsvdULP())
		check(s, len(b))
		b = append(b, s.Payload()...)
		if s.Last() {
			return b
		}
	}
}

// TestInvalidate is a peer's good Send with Invalidate, which may come twice: an
// STag that is Invalid already passes (verbs draft 7.8).
func TestInvalidate(t *testing.T) {
	r := newRig(t, setup{})
	r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2}, wr.Recv{ID: 3})
	r.send(sendInvalidate(1, uint32(r.full.stag), nil).Octets(), sendInvalidate(2, uint32(r.full.stag), nil).Octets())
	for id := range uint64(2) {
		var c [1]wr.Completion
		n, err := r.rcq.Wait(t.Context(), c[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		assert.Equal(t, wr.Completion{ID: id + 1, QP: ownQP, Op: wr.OpRecv, Invalidated: r.full.stag, HasInvalidated: true}, c[0])
	}
	bad := rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(1)).Octets()
	r.send(bad)
	require.Equal(t, terminate(0x1100, echoDDP, bad), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireMemory()
}

// TestInvalidateWithOneRight: either right of the queue pair is enough, whichever
// the STag has (RV-7.8-M15).
func TestInvalidateWithOneRight(t *testing.T) {
	for _, c := range []setup{{noRead: true}, {noWrite: true}} {
		r := newRig(t, c)
		r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2})
		r.send(
			sendInvalidate(1, uint32(r.readable.stag), nil).Octets(),
			sendInvalidate(2, uint32(r.writable.stag), nil).Octets(),
		)
		require.Equal(t, []comp{{1, 0, 0}, {2, 0, 0}}, r.wait(r.rcq, 2))
	}
}

// TestRTR is peer-to-peer mode: the Initiator's first frame is the one agreed on,
// before anything posted, and opens the Responder's gate (RFC 6581 9.2).
func TestRTR(t *testing.T) {
	for _, c := range []struct {
		rtr  mpa.RTR
		want []byte
		next uint32 // MSN of the first Send that is posted
	}{
		{mpa.RTRSend, rawpeer.Send(1, nil).Octets(), 2},
		{mpa.RTRWrite, rawpeer.Write(1, 0, nil).Octets(), 1},
		{mpa.RTRRead, rawpeer.ReadRequest(1, rdmap.ReadRequestHeader{SinkSTag: 1}).Octets(), 1},
	} {
		t.Run(c.rtr.String(), func(t *testing.T) {
			p2p := func(s *mpa.Stream) { s.P2P, s.RTR = true, c.rtr }
			r := newIdleRig(t, setup{ord: 1, stream: p2p})
			r.postSend(
				wr.Request{ID: 1, Flags: wr.ReadFence},
				wr.Request{ID: 2, Op: wr.OpRead, Local: r.full.sge(0, 4), Remote: wr.Remote{STag: 5}},
			)
			r.connect()
			require.Equal(t, c.want, r.next())
			read := uint32(1)
			if c.rtr == mpa.RTRRead {
				read = 2
				require.Zero(t, r.scq.Len(), "the fence and ORD 1 wait for the RTR's answer too")
				r.send(rawpeer.ReadResponse(1, 0, nil).Octets())
			}
			require.Equal(t, rawpeer.Send(c.next, nil).Octets(), r.next())
			s, err := r.peer.Segment()
			require.NoError(t, err)
			require.Equal(t, read, s.MSN())
			r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(0), filled(4)).Octets())
			r.full.expect(0, filled(4))
			require.Equal(t, []comp{{1, 0, 0}, {2, 0, 0}}, r.wait(r.scq, 2))
			r.requireMemory()

			r = newRig(t, setup{role: mpa.Responder, stream: p2p})
			r.postRecv(wr.Recv{ID: 1})
			r.postSend(wr.Request{ID: 3})
			r.send(c.want)
			got := map[byte]bool{r.next()[1] & 0xF: true}
			if c.rtr == mpa.RTRRead {
				got[r.next()[1]&0xF] = true // the answer and the Send, either first
				require.True(t, got[byte(rdmap.ReadResponse)])
			}
			require.True(t, got[byte(rdmap.Send)])
			require.Equal(t, []comp{{3, 0, 0}}, r.wait(r.scq, 1))
			if c.rtr == mpa.RTRSend {
				require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.rcq, 1), "an empty Send uses up a receive")
			}
			assert.Equal(t, wr.StateRTS, r.q.State())
		})
	}
}
