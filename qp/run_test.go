package qp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// whileHeld posts, or does whatever else, while nothing can be sent.
func (r *rig) whileHeld(f func()) {
	r.t.Helper()
	r.s.tx.mu.Lock()
	f()
	r.s.tx.mu.Unlock()
	r.s.tx.tryTransmit()
}

// TestRunIsOneBatch: short messages of more than a batch together go out whole and
// in their order, each with its own modifiers.
func TestRunIsOneBatch(t *testing.T) {
	const n, size = 1500, 1000 // a batch and a half
	for _, crc := range []bool{false, true} {
		r := newRig(t, setup{depth: 2048, cqe: 2048, crc: crc})
		r.whileHeld(func() {
			for i := range n {
				r.postSend(r.short(i, size))
			}
		})
		msn := uint32(0)
		for i := range n {
			want := r.short(i, size)
			payload := r.full.mem()[want.SGL[0].TO-r.full.at(0):][:size]
			seg := rawpeer.Write(uint32(want.Remote.STag), want.Remote.TO, payload)
			if want.Op != wr.OpWrite {
				msn++
				seg = rawpeer.Send(msn, payload)
				seg.Op, seg.Inv = sendOpcodes[want.Op], uint32(want.Invalidate)
			}
			require.Equal(t, seg.Octets(), r.next(), "message %d", i)
		}
		for i, c := range r.wait(r.scq, n/2) {
			require.Equal(t, comp{ID: uint64(2*i + 1), Status: wr.StatusSuccess}, c)
		}
	}
}

// short is the request number i: of all kinds in turn, every second one signaled.
func (r *rig) short(i, size int) wr.Request {
	ops := []wr.Op{wr.OpSend, wr.OpWrite, wr.OpSendInvalidate, wr.OpSendSE, wr.OpSendSEInvalidate}
	w := wr.Request{ID: uint64(i), Op: ops[i%len(ops)], SGL: r.full.sgl(i, size), Flags: wr.Unsignaled * wr.Flags(1-i%2)}
	if w.Op == wr.OpWrite {
		w.Remote = wr.Remote{STag: 0x777, TO: uint64(i)}
	}
	if w.Op.Invalidates() {
		w.Invalidate = wr.STag(0x100 + i)
	}
	return w
}

// TestRunIsFair: an RDMA Read Request is answered between short messages, however
// many there are.
func TestRunIsFair(t *testing.T) {
	r := newRig(t, setup{depth: 64})
	r.whileHeld(func() {
		for range 40 {
			r.postSend(wr.Request{Flags: wr.Unsignaled, SGL: r.full.sgl(0, 10)})
		}
		r.send(readRequest(1, 5, r.readable.stag, r.readable.at(0)).Octets())
		require.Eventually(t, func() bool { return r.s.irrq.len() == 1 }, patience, 1e6)
	})
	answer := rawpeer.ReadResponse(0x5151, 0x6262, r.readable.mem()[:5]).Octets()
	assert.Contains(t, [][]byte{r.next(), r.next()}, answer)
}

// TestRunAfterRTR: the ready-to-receive frame is the first, whatever was posted in
// Idle (RFC 6581 9.2).
func TestRunAfterRTR(t *testing.T) {
	r := newIdleRig(t, setup{stream: func(st *mpa.Stream) { st.P2P, st.RTR = true, mpa.RTRWrite }})
	r.postSend(wr.Request{SGL: r.full.sgl(0, 10)}, wr.Request{SGL: r.full.sgl(10, 10)})
	r.connect()
	require.Equal(t, rawpeer.Write(rtrSTag, 0, nil).Octets(), r.next())
	require.Equal(t, rawpeer.Send(1, r.full.mem()[:10]).Octets(), r.next())
	require.Equal(t, rawpeer.Send(2, r.full.mem()[10:20]).Octets(), r.next())
}

// TestRunCompletesWhatIsWritten: what the LLP has not taken is not complete.
func TestRunCompletesWhatIsWritten(t *testing.T) {
	const n, size = 8192, 1000
	r := newIdleRig(t, setup{depth: n, cqe: n})
	r.connectNarrow()
	for i := range n {
		r.postSend(wr.Request{ID: uint64(i), SGL: r.full.sgl(0, size)})
	}
	r.stuck()
	s := &r.q.sq
	assert.Less(t, s.framed.Load(), uint64(n), "nobody reads")
	assert.Less(t, s.done.Load(), s.framed.Load(), "a batch is under way")
	assert.Equal(t, r.s.tx.written.Load()/(2+18+size+4), s.done.Load(), "octets an FPDU")
}

// TestShortLimit: what is sent from where it is, or in several segments, is not
// short.
func TestShortLimit(t *testing.T) {
	for name, c := range map[string]struct {
		mulpdu  int
		crc     bool
		markers bool
		tuning  Tuning
		want    int64
	}{
		"gathered":        {mulpdu: 9000, tuning: Tuning{Gather: 1000, Short: 5000}, want: 999},
		"all is gathered": {mulpdu: 9000, tuning: Tuning{Gather: 0, Short: 5000}, want: -1},
		"copied anyway":   {mulpdu: 9000, tuning: Tuning{Gather: -1, Short: 5000}, want: 5000},
		"with CRC":        {mulpdu: 9000, crc: true, tuning: Tuning{Gather: 1000, Short: 5000}, want: 5000},
		"one segment":     {mulpdu: 128, tuning: Tuning{Gather: 1000, Short: 5000}, want: 110},
		"markers":         {mulpdu: 9000, markers: true, tuning: Tuning{Gather: 1000, Short: 5000}, want: -1},
		"off":             {mulpdu: 9000, tuning: Tuning{Gather: 1000, Short: -1}, want: -1},
	} {
		s := &transmitter{tuning: &c.tuning, mulpdu: c.mulpdu, framer: mpa.NewFramer(c.crc, c.markers)}
		assert.Equal(t, c.want, s.shortLimit(), name)
	}
	assert.Less(t, int64(wr.MaxMessage)*255, int64(math.MaxInt64), "lengths compare as int64")
}

// TestWholeAfterPart: a segment that looks like a whole Send may be the end of one
// that began with an empty segment.
func TestWholeAfterPart(t *testing.T) {
	r := newRig(t, setup{})
	for i := range uint64(3) {
		r.postRecv(wr.Recv{ID: i, SGL: r.full.sgl(100*int(i), 16)})
	}
	begin := rawpeer.Send(1, nil)
	begin.More = true
	r.send(begin.Octets(), rawpeer.Send(1, []byte("one")).Octets(), rawpeer.Send(2, []byte("two")).Octets())
	begin.MSN = 3
	begin.Payload = []byte("thr")
	end := rawpeer.Send(3, []byte("ee"))
	end.MO = 3
	r.send(begin.Octets(), end.Octets())
	want := []comp{{0, wr.StatusSuccess, 3}, {1, wr.StatusSuccess, 3}, {2, wr.StatusSuccess, 5}}
	require.Equal(t, want, r.wait(r.rcq, 3))
	for i, text := range []string{"one", "two", "three"} {
		r.full.expect(100*i, []byte(text))
	}
	r.requireMemory()
}
