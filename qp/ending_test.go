package qp

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/wire"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// requireEnd checks how the peer sees the stream end, with no FPDU before.
func (r *rig) requireEnd(want wire.End) {
	r.t.Helper()
	end, n, err := r.peer.End()
	require.NoError(r.t, err)
	require.Equal(r.t, want, end)
	require.Zero(r.t, n, "FPDUs before the end")
}

// TestTerminateReceived has a Terminate come in while a Read and a Send behind
// its fence are outstanding. None is sent back (verbs draft 6.2.2.3).
func TestTerminateReceived(t *testing.T) {
	request := ddp.AppendUntagged(nil, true, 0x41, 0, ddp.QNReadRequest, 1, 0)
	whole := rdmap.TerminateHeader{
		Code: rdmap.CodeProtSTag, SegmentLength: 46, DDPHeader: request, ReadRequest: make([]byte, 28),
	}
	other := whole
	other.DDPHeader = ddp.AppendUntagged(nil, true, 0x41, 0, ddp.QNReadRequest, 9, 0)
	send := rdmap.TerminateHeader{
		Code: rdmap.TermCode(ddp.CodeNoBuffer), SegmentLength: 18,
		DDPHeader: ddp.AppendUntagged(nil, true, 0x43, 0, ddp.QNSend, 1, 0),
	}
	lost := comp{10, wr.StatusRemoteTermination, 0}
	for name, c := range map[string]struct {
		payload []byte
		read    comp
	}{
		"no headers":              {[]byte{0x20, 0x02, 0, 0}, flushed(10)[0]},
		"the Read's headers":      {whole.Append(nil), lost},
		"headers of no Read here": {other.Append(nil), flushed(10)[0]},
		"headers of a Send":       {send.Append(nil), flushed(10)[0]},
		"headers cut short":       {whole.Append(nil)[:20], flushed(10)[0]},
		"only the length":         {[]byte{0x12, 0x05, 0x80, 0, 0, 18}, flushed(10)[0]},
		// Layer and type, and the bits of M and D, in siw's places.
		"siw's layout":     {append([]byte{0x21, 0x05, 0x03, 0, 0, 0}, make([]byte, 18)...), flushed(10)[0]},
		"an undefined one": {[]byte{0xFF, 0xFF, 0x1F, 0xFF}, flushed(10)[0]},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{})
			r.arrange(false)
			r.send(wire.Segment{Op: rdmap.Terminate, QN: 2, MSN: 1, Payload: c.payload}.Octets())
			r.requireEnd(wire.FIN)
			require.NoError(t, r.peer.Close())
			r.over()
			got := r.q.Query()
			require.Equal(t, Error, got.State)
			require.NotNil(t, got.Terminate)
			assert.False(t, got.Terminate.Sent)
			assert.Equal(t, c.payload, got.Terminate.Raw)
			assert.NotNil(t, r.events.query[0].Terminate, "it can be queried when the event comes")
			r.requireEvents(wr.EventTerminateReceived)
			assert.Equal(t, append([]comp{c.read}, flushed(11)...), r.all(r.scq))
			assert.Equal(t, flushed(1, 2), r.all(r.rcq))
			r.requireMemory()
			r.requireReusable()
		})
	}
}

// TestPeerEnds are the ways a peer may leave (verbs draft 6.2.2.2 to 6.2.2.4).
func TestPeerEnds(t *testing.T) {
	fin := func(r *rig) { require.NoError(r.t, r.peer.CloseWrite()) }
	for name, c := range map[string]struct {
		idle  bool
		do    func(*rig)
		code  uint16 // of a Terminate; 0: none
		end   wire.End
		state State
		fault Fault
		event wr.EventID
	}{
		"FIN":           {true, fin, 0, wire.FIN, Idle, NoFault, wr.EventLLPCloseComplete},
		"FIN with work": {false, fin, 0x0207, wire.FIN, Error, FaultNoFaultYet, wr.EventBadLLPClose},
		"FIN in a FPDU": {true, func(r *rig) {
			b := r.peer.Frame(wire.Write(uint32(r.full.stag), r.full.at(0), filled(100)).Octets())
			require.NoError(r.t, r.peer.Raw(b[:60]))
			fin(r)
		}, 0, wire.Reset, Error, FaultLLPLost, wr.EventLLPLost},
		"FIN in a length": {true, func(r *rig) {
			require.NoError(r.t, r.peer.Raw([]byte{0}))
			fin(r)
		}, 0, wire.Reset, Error, FaultLLPLost, wr.EventLLPLost},
		"RST":           {true, func(r *rig) { require.NoError(r.t, r.peer.Reset()) }, 0, "", Error, FaultLLPReset, wr.EventLLPReset},
		"RST with work": {false, func(r *rig) { require.NoError(r.t, r.peer.Reset()) }, 0, "", Error, FaultLLPReset, wr.EventLLPReset},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{})
			r.arrange(c.idle)
			c.do(r)
			if c.code != 0 {
				require.Equal(t, terminate(c.code, echoNone, nil), r.next())
			}
			if c.end != "" {
				r.requireEnd(c.end)
			}
			r.over()
			assert.Equal(t, c.state, r.q.State())
			if c.fault != FaultNoFaultYet {
				assert.Equal(t, c.fault, r.s.cause.fault)
			}
			r.requireEvents(c.event)
			assert.Equal(t, flushed(1, 2), r.all(r.rcq))
			if !c.idle {
				assert.Equal(t, flushed(10, 11), r.all(r.scq))
			}
			r.requireMemory()
			if c.state == Error {
				r.requireReusable()
			}
		})
	}
}

// FaultNoFaultYet stands for what finish decides after the cause is recorded.
const FaultNoFaultYet = numFaults

// TestPeerClosesWithReadsToAnswer is the other half of "work left": the IRRQ.
func TestPeerClosesWithReadsToAnswer(t *testing.T) {
	r := newRig(t, setup{})
	r.arrange(true)
	r.s.tx.mu.Lock() // the transmit side answers nothing
	r.send(goodRead(1)(r))
	require.NoError(t, r.peer.CloseWrite())
	<-r.s.stop
	r.s.tx.mu.Unlock()
	require.Equal(t, terminate(0x0207, echoNone, nil), r.next())
	r.requireEnd(wire.FIN)
	r.over()
	require.Equal(t, Error, r.q.State())
	r.requireEvents(wr.EventBadLLPClose)
}

// TestTooManyReads has one Read Request more come than IRD allows to wait.
func TestTooManyReads(t *testing.T) {
	r := newRig(t, setup{ird: 2})
	r.arrange(false)
	r.s.tx.mu.Lock()
	bad := goodRead(3)(r)
	r.send(goodRead(1)(r), goodRead(2)(r), bad)
	<-r.s.stop
	r.s.tx.mu.Unlock()
	require.Equal(t, terminate(0x1202, echoDDP, bad), r.next())
	r.requireEnd(wire.FIN)
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireEvents(wr.EventIRRQTooMany)
	assert.Equal(t, FaultReadTooMany, r.s.cause.fault)
	r.requireReusable()
}

// TestReadFaultBehindAnAnswer has the second of two Reads fail: the first is
// answered ahead of the Terminate (RFC 5040 6.2.1).
func TestReadFaultBehindAnAnswer(t *testing.T) {
	r := newRig(t, setup{})
	r.arrange(true)
	r.s.tx.mu.Lock()
	bad := readRequest(2, 9, r.gone, 3).Octets()
	r.send(goodRead(1)(r), bad)
	require.Eventually(t, func() bool { return r.s.irrq.len() == 2 }, patience, time.Millisecond)
	r.s.tx.mu.Unlock()
	r.s.kick()
	require.Equal(t, wire.ReadResponse(0x5151, 0x6262, r.full.mem()[:4]).Octets(), r.next())
	require.Equal(t, terminate(0x0100, echoRead, bad), r.next())
	r.requireEnd(wire.FIN)
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireEvents(wr.EventIRRQSTag)
}

// TestGate has a Responder keep silent until it has a good FPDU (RFC 5044 7.1.2
// rule 6), the Terminate included.
func TestGate(t *testing.T) {
	c := setup{role: mpa.Responder, crc: true}
	t.Run("opens with the first FPDU", func(t *testing.T) {
		r := newRig(t, c)
		r.postSend(wr.Send{ID: 1})
		require.True(t, r.peer.Silent(20*time.Millisecond))
		require.Empty(t, r.all(r.scq))
		r.openGate()
		require.Equal(t, wire.Send(1, nil).Octets(), r.next())
		require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.scq, 1))
	})
	t.Run("bad first FPDU", func(t *testing.T) {
		r := newRig(t, c)
		r.postSend(wr.Send{ID: 1})
		b := r.peer.Frame(wire.Send(1, nil).Octets())
		b[len(b)-1] ^= 1
		require.NoError(t, r.peer.Raw(b))
		r.requireEnd(wire.FIN)
		require.NoError(t, r.peer.Close())
		r.over()
		r.requireEvents(wr.EventBadCRC)
		assert.Equal(t, flushed(1), r.all(r.scq))
		r.set.role = mpa.Initiator
		r.requireReusable()
	})
	t.Run("Modify to Terminate", func(t *testing.T) {
		r := newRig(t, c)
		require.NoError(t, r.q.Modify(Modify{Next: Terminate}))
		r.requireEnd(wire.FIN)
		require.NoError(t, r.peer.Close())
		r.over()
		r.requireEvents()
	})
	t.Run("FIN with work", func(t *testing.T) {
		r := newRig(t, c)
		r.postSend(wr.Send{ID: 1})
		require.NoError(t, r.peer.CloseWrite())
		r.requireEnd(wire.FIN)
		r.over()
		r.requireEvents(wr.EventBadLLPClose)
		assert.Equal(t, flushed(1), r.all(r.scq))
	})
}

// TestModifyTerminate is the ULP's own termination (verbs draft 6.6.2.2).
func TestModifyTerminate(t *testing.T) {
	r := newRig(t, setup{})
	r.arrange(false)
	require.NoError(t, r.q.Modify(Modify{Next: Terminate}))
	assert.Contains(t, []State{Terminate, Error}, r.q.State())
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	r.requireEnd(wire.FIN)
	for _, s := range []State{Idle, RTS, Closing, Terminate, Error} {
		require.ErrorIs(t, r.q.Modify(Modify{Next: s, Stream: streamFor(s)}), wr.ErrInvalidState, "6.2.3: any Modify")
	}
	r.send(wire.Send(1, filled(9)).Octets()) // ignored, figure 9
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireEvents()
	assert.Equal(t, flushed(10, 11), r.all(r.scq))
	assert.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireMemory()
	r.requireReusable()
}

func streamFor(s State) *mpa.Stream {
	if s == RTS {
		return &mpa.Stream{}
	}
	return nil
}

// TestModifyTerminateMeetsReset: an LLP error in the Terminate state that a verb
// led to is a Bad Close (verbs draft 6.2.3).
func TestModifyTerminateMeetsReset(t *testing.T) {
	r := newRig(t, setup{})
	r.arrange(true)
	require.NoError(t, r.q.Modify(Modify{Next: Terminate}))
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	require.NoError(t, r.peer.Reset())
	r.over()
	r.requireEvents(wr.EventBadClose)
	r.requireReusable()
}

// TestClosing are the ends of the Closing state (verbs draft 6.2.5, figure 11).
func TestClosing(t *testing.T) {
	t.Run("good", func(t *testing.T) {
		r := newRig(t, setup{})
		r.arrange(true)
		require.NoError(t, r.q.Modify(Modify{Next: Closing}))
		r.requireEnd(wire.FIN)
		require.Equal(t, Closing, r.q.State())
		require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2), "flushed before the peer closes")
		for _, s := range []State{Idle, RTS, Closing, Terminate, Error} {
			require.ErrorIs(t, r.q.Modify(Modify{Next: s, Stream: streamFor(s)}), wr.ErrInvalidState)
		}
		_, err := r.q.PostSend(wr.Send{})
		require.ErrorIs(t, err, wr.ErrInvalidState)
		_, err = r.q.PostRecv(wr.Recv{})
		require.ErrorIs(t, err, wr.ErrInvalidState)
		require.NoError(t, r.peer.Close())
		r.over()
		require.Equal(t, Idle, r.q.State())
		r.requireEvents(wr.EventLLPCloseComplete)
	})
	for name, c := range map[string]struct {
		set   setup
		idle  bool
		do    func(*rig)
		event wr.EventID
	}{
		"work left": {idle: false, do: func(*rig) {}, event: wr.EventBadClose},
		"data comes": {idle: true, do: func(r *rig) {
			r.requireEnd(wire.FIN)
			r.send(wire.Write(uint32(r.full.stag), r.full.at(0), filled(4)).Octets())
		}, event: wr.EventBadClose},
		"a Terminate comes": {idle: true, do: func(r *rig) {
			r.requireEnd(wire.FIN)
			r.send(terminate(0, echoNone, nil))
		}, event: wr.EventBadClose},
		"RST comes": {idle: true, do: func(r *rig) {
			r.requireEnd(wire.FIN)
			require.NoError(r.t, r.peer.Reset())
		}, event: wr.EventLLPReset},
		"peer never closes": {set: setup{closeTimeout: 30 * time.Millisecond}, idle: true, do: func(*rig) {}, event: wr.EventLLPLost},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.set)
			r.arrange(c.idle)
			require.NoError(t, r.q.Modify(Modify{Next: Closing}))
			c.do(r)
			r.over()
			require.Equal(t, Error, r.q.State())
			r.requireEvents(c.event)
			assert.Equal(t, flushed(1, 2), r.all(r.rcq))
			if !c.idle {
				assert.Equal(t, flushed(10, 11), r.all(r.scq))
			}
			r.requireMemory()
			r.requireReusable()
		})
	}
}

// TestClosingWithinAnFPDU: the peer has begun an FPDU when this side closes, which
// is incoming data (verbs draft 6.2.5).
func TestClosingWithinAnFPDU(t *testing.T) {
	r := newRig(t, setup{})
	b := r.peer.Frame(readRequest(1, 0, 0, 0).Octets())
	require.NoError(t, r.peer.Raw(append(b, 0, 18, 0x41)))
	require.Equal(t, wire.ReadResponse(0x5151, 0x6262, nil).Octets(), r.next())
	require.NoError(t, r.q.Modify(Modify{Next: Closing}))
	r.over()
	require.Equal(t, Error, r.q.State())
	r.requireEvents(wr.EventBadClose)
}

// TestTerminateTimeout has a peer that reads the Terminate and never closes.
func TestTerminateTimeout(t *testing.T) {
	r := newRig(t, setup{closeTimeout: 30 * time.Millisecond})
	r.arrange(true)
	bad := wire.Send(9, nil).Octets()
	r.send(bad)
	require.Equal(t, terminate(0x1203, echoDDP, bad), r.next())
	r.over()
	r.requireEvents(wr.EventRQMSNGap) // one event: the fault was reported
	r.requireReusable()
}

// slowClose is a connection whose Close blocks, from the second call on.
type slowClose struct {
	net.Conn
	calls chan struct{}
	free  chan struct{}
}

func (c *slowClose) Close() error {
	err := c.Conn.Close()
	select {
	case c.calls <- struct{}{}:
	default:
		<-c.free
	}
	return err
}

// TestStillFlushing asks for Idle while the way to Error is not over yet (verbs
// draft 6.2.4).
func TestStillFlushing(t *testing.T) {
	r := newIdleRig(t, setup{})
	a, b, err := wire.Pair()
	require.NoError(t, err)
	c := &slowClose{a, make(chan struct{}, 1), make(chan struct{})}
	free := sync.OnceFunc(func() { close(c.free) })
	t.Cleanup(free)
	r.start(c, b)
	r.postRecv(wr.Recv{ID: 1})
	done := make(chan error)
	go func() { done <- r.q.Modify(Modify{Next: Error}) }()
	<-r.s.decided
	require.Equal(t, Error, r.q.State())
	require.ErrorIs(t, r.q.Modify(Modify{Next: Idle}), wr.ErrStillFlushing)
	require.Equal(t, Error, r.q.State())
	free()
	require.NoError(t, <-done)
	require.Equal(t, flushed(1), r.all(r.rcq))
	r.requireReusable()
}

// TestModifyError is the abortive teardown (verbs draft 6.6.2.3): reset, flushed
// and quiet when the verb returns.
func TestModifyError(t *testing.T) {
	r := newRig(t, setup{})
	r.arrange(false)
	require.NoError(t, r.q.Modify(Modify{Next: Error}))
	require.Equal(t, Error, r.q.State())
	require.Equal(t, flushed(10, 11), r.all(r.scq))
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireEnd(wire.Reset)
	r.requireEvents()
	r.requireReusable()
}

// TestIdleToError flushes what was posted in Idle (verbs draft 6.2.1.3).
func TestIdleToError(t *testing.T) {
	r := newIdleRig(t, setup{})
	r.postSend(wr.Send{ID: 1}, wr.Send{ID: 2, Flags: wr.Unsignaled})
	r.postRecv(wr.Recv{ID: 3})
	require.NoError(t, r.q.Modify(Modify{Next: Error}))
	require.Equal(t, flushed(1, 2), r.all(r.scq), "an error is reported unasked")
	require.Equal(t, flushed(3), r.all(r.rcq))
	r.requireEvents()
	r.requireReusable()
}

// TestPostedInIdle is sent once there is a stream, behind the last message of
// streaming mode; what came early is received (verbs draft 6.2.1.2, 6.6.1).
func TestPostedInIdle(t *testing.T) {
	r := newIdleRig(t, setup{})
	r.postSend(wr.Send{ID: 1})
	r.postRecv(wr.Recv{ID: 2, SGL: r.full.sgl(0, 9)})
	a, b, err := wire.Pair()
	require.NoError(t, err)
	r.peer = wire.New(b, wire.Options{})
	early := r.peer.Frame(wire.Send(1, filled(9)).Octets())
	require.NoError(t, r.peer.Raw(early[20:]))
	require.NoError(t, r.q.Modify(Modify{
		Next: RTS, LastMessage: []byte("last words"),
		Stream: &mpa.Stream{Conn: a, Role: mpa.Initiator, Early: early[:20]},
	}))
	r.s = r.q.session.Load()
	last := make([]byte, 10)
	_, err = io.ReadFull(b, last)
	require.NoError(t, err)
	require.Equal(t, "last words", string(last))
	require.Equal(t, wire.Send(1, nil).Octets(), r.next())
	require.Equal(t, []comp{{2, 0, 9}}, r.wait(r.rcq, 1))
	r.full.expect(0, filled(9))
	r.requireMemory()
}
