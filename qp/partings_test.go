package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// parting is a way to end a stream that is not an attack, and what has to follow.
// The work is that of an attack: see arrange.
type parting struct {
	name  string
	fault streamFault
	set   setup
	idle  bool // no work on the queue pair's Send Queue
	do    func(*rig)
	code  int         // of the Terminate; none: no Terminate goes out
	end   rawpeer.End // what the peer sees; "": not looked at
	state wr.State
	event wr.EventID // 0: no event at all
	sends []comp     // nil: all flushed
	after func(*rig)
}

const none = -1

func (p parting) run(t *testing.T) {
	r := newRig(t, p.set)
	r.arrange(p.idle)
	p.do(r)
	if p.code != none {
		require.Equal(t, terminate(uint16(p.code), echoNone, nil), r.next(), "the Terminate Message")
	}
	if p.end != "" {
		r.requireEnd(p.end)
	}
	if p.end == rawpeer.FIN {
		require.NoError(t, r.peer.Close())
	}
	if p.event == 0 {
		r.requireSettled(p.state)
	} else {
		r.requireSettled(p.state, p.event)
	}
	if p.code != none {
		sent := r.q.Query().Terminate
		require.NotNil(t, sent)
		assert.True(t, sent.Sent)
	}
	if p.sends == nil && !p.idle {
		p.sends = flushed(10, 11)
	}
	assert.Equal(t, p.sends, r.all(r.scq), "Send Queue")
	assert.Equal(t, flushed(1, 2), r.all(r.rcq), "Receive Queue")
	if p.after != nil {
		p.after(r)
	}
	r.requireMemory()
	if p.state == wr.StateError {
		r.requireReusable()
	}
}

func modifyTo(s wr.State) func(*rig) {
	return func(r *rig) { require.NoError(r.t, r.q.Modify(Modify{Next: s})) }
}

func peerCloses(r *rig) { require.NoError(r.t, r.peer.CloseWrite()) }

// toldReset looks whether the stream's end is called the peer's reset.
func toldReset(want bool) func(*rig) {
	return func(r *rig) {
		end, over := r.q.LLPStream().End()
		require.True(r.t, over)
		assert.Equal(r.t, want, end.Reset(), end.Reason()+"; "+end.Then())
	}
}

func peerResets(r *rig) { require.NoError(r.t, r.peer.Reset()) }

// whileClosing has the queue pair close, and the peer do something when it sees that.
func whileClosing(do func(*rig)) func(*rig) {
	return func(r *rig) {
		modifyTo(wr.StateClosing)(r)
		r.requireEnd(rawpeer.FIN)
		do(r)
	}
}

// whileTerminating does the same with a Terminate Message.
func whileTerminating(do func(*rig)) func(*rig) {
	return func(r *rig) {
		modifyTo(wr.StateTerminate)(r)
		require.Equal(r.t, terminate(0, echoNone, nil), r.next())
		do(r)
	}
}

func peerSends(u func(*rig) []byte) func(*rig) {
	return func(r *rig) { r.send(u(r)) }
}

func someWrite(r *rig) []byte {
	return rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(4)).Octets()
}

// short is a setup in which the LLP gives up soon.
var short = setup{closeTimeout: 30 * time.Millisecond}

var partings = []parting{
	// Verbs draft 6.2.2.2 to 6.2.2.4.
	{name: "FIN", fault: faultPeerClosed, idle: true, do: peerCloses, code: none, end: rawpeer.FIN, state: wr.StateIdle, event: wr.EventLLPCloseComplete},
	{name: "FIN with work", fault: faultPeerClosedBusy, do: peerCloses, code: 0x0207, end: rawpeer.FIN, state: wr.StateError, event: wr.EventBadLLPClose},
	{
		name: "FIN in a FPDU", fault: faultLLPLost, idle: true,
		do: func(r *rig) {
			b := r.peer.Frame(rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(100)).Octets())
			require.NoError(r.t, r.peer.Raw(b[:60]))
			peerCloses(r)
		},
		code: none, end: rawpeer.Reset, state: wr.StateError, event: wr.EventLLPLost,
	},
	{
		name: "FIN in a length", fault: faultLLPLost, idle: true,
		do: func(r *rig) {
			require.NoError(r.t, r.peer.Raw([]byte{0}))
			peerCloses(r)
		},
		code: none, end: rawpeer.Reset, state: wr.StateError, event: wr.EventLLPLost,
	},
	{name: "RST", fault: faultLLPReset, idle: true, do: peerResets, code: none, state: wr.StateError, event: wr.EventLLPReset, after: toldReset(true)},
	{name: "RST with work", fault: faultLLPReset, do: peerResets, code: none, state: wr.StateError, event: wr.EventLLPReset},
	{name: "verb", fault: faultModifyClosing, idle: true, do: modifyTo(wr.StateClosing), code: none, end: rawpeer.FIN, state: wr.StateIdle, event: wr.EventLLPCloseComplete},
	{name: "verb", fault: faultModifyTerminate, do: modifyTo(wr.StateTerminate), code: 0, end: rawpeer.FIN, state: wr.StateError}, // 6.6.2.2
	{name: "verb, idle", fault: faultModifyTerminate, idle: true, do: modifyTo(wr.StateTerminate), code: 0, end: rawpeer.FIN, state: wr.StateError},
	{name: "verb", fault: faultModifyError, do: modifyTo(wr.StateError), code: none, end: rawpeer.Reset, state: wr.StateError}, // 6.6.2.3

	// Verbs draft 6.2.5, figure 11.
	{
		name: "flushed before the peer closes", fault: faultClosed, idle: true,
		do: whileClosing(func(r *rig) {
			require.Eventually(r.t, func() bool { return r.rcq.Len() == 2 }, patience, time.Millisecond)
			peerCloses(r)
		}),
		code: none, state: wr.StateIdle, event: wr.EventLLPCloseComplete,
	},
	{name: "work left", fault: faultClosingWork, do: modifyTo(wr.StateClosing), code: none, end: rawpeer.Reset, state: wr.StateError, event: wr.EventBadClose},
	{name: "data", fault: faultClosingSegment, idle: true, do: whileClosing(peerSends(someWrite)), code: none, state: wr.StateError, event: wr.EventBadClose},
	{
		name: "one octet", fault: faultClosingSegment, idle: true,
		do:   whileClosing(func(r *rig) { require.NoError(r.t, r.peer.Raw([]byte{0})) }),
		code: none, state: wr.StateError, event: wr.EventBadClose,
	},
	{
		name: "no segment", fault: faultClosingSegment, idle: true, do: whileClosing(peerSends(octets(1, 0xC1))),
		code: none, state: wr.StateError, event: wr.EventBadClose,
	},
	{
		name: "Terminate", fault: faultClosingTerminate, idle: true,
		do:   whileClosing(func(r *rig) { r.send(terminate(0x0207, echoNone, nil)) }),
		code: none, state: wr.StateError, event: wr.EventBadClose,
		after: func(r *rig) {
			require.Equal(r.t, &TerminateMessage{Code: 0x0207, Raw: []byte{2, 7, 0, 0}}, r.q.Query().Terminate)
		},
	},
	{
		name: "bad Terminate", fault: faultClosingSegment, idle: true,
		do:   whileClosing(func(r *rig) { r.send(terminate(0x0207, echoNone, nil)[:20]) }),
		code: none, state: wr.StateError, event: wr.EventBadClose,
		after: func(r *rig) { require.Nil(r.t, r.q.Query().Terminate) },
	},
	{
		name: "RST while closing", fault: faultClosingReset, idle: true, do: whileClosing(peerResets),
		code: none, state: wr.StateError, event: wr.EventLLPLost, after: toldReset(true),
	},
	{
		name: "peer never closes", fault: faultLLPLost, set: short, idle: true, do: modifyTo(wr.StateClosing),
		code: none, state: wr.StateError, event: wr.EventLLPLost, after: toldReset(false),
	},

	// Verbs draft 6.2.3: told to who has not been told by an event.
	{name: "RST, behind the verb", fault: faultLLPTerminating, idle: true, do: whileTerminating(peerResets), code: none, state: wr.StateError, event: wr.EventBadClose},
	{name: "timeout, behind the verb", fault: faultLLPTerminating, set: short, idle: true, do: modifyTo(wr.StateTerminate), code: 0, state: wr.StateError, event: wr.EventBadClose},
	{
		name: "timeout, behind an event", fault: faultLLPTerminating, set: short, idle: true,
		do: func(r *rig) {
			bad := rawpeer.Send(9, nil).Octets()
			r.send(bad)
			require.Equal(r.t, terminate(0x1203, echoDDP, bad), r.next())
		},
		code: none, state: wr.StateError, event: wr.EventRQMSNRange,
	},
	{
		name: "timeout, behind a completion", fault: faultLLPTerminating, set: short, idle: true,
		do:   func(r *rig) { r.postSend(wr.Request{ID: 5, SGL: []wr.SGE{{STag: r.gone, Length: 1}}}) },
		code: 0, state: wr.StateError, event: wr.EventBadClose, sends: []comp{{5, wr.StatusInvalidSTag, 0}},
	},

	// Figures 24 and 25: what only a program provokes (RV-6.2.3-M14).
	{
		name: "idle", fault: faultLocal, idle: true, do: func(r *rig) { r.q.Fail() },
		code: 0x0207, end: rawpeer.FIN, state: wr.StateError, event: wr.EventLocalQPCatastrophic,
	},
	{
		name: "at a Read", fault: faultLocal, do: func(r *rig) { r.q.Fail() }, code: 0x0207, end: rawpeer.FIN, state: wr.StateError,
		sends: []comp{{10, wr.StatusLocalQPCatastrophic, 0}, {11, wr.StatusFlushed, 0}},
	},
	{name: "idle", fault: faultGlobal, idle: true, do: func(r *rig) { r.q.FailGlobal() }, code: 0x0208, end: rawpeer.FIN, state: wr.StateError},
	{name: "at work", fault: faultGlobal, do: func(r *rig) { r.q.FailGlobal() }, code: 0x0208, end: rawpeer.FIN, state: wr.StateError},
	{
		name: "while closing", fault: faultLocal, idle: true, do: whileClosing(func(r *rig) { r.q.Fail() }),
		code: none, state: wr.StateError, event: wr.EventLocalQPCatastrophic,
	},
	{name: "while closing", fault: faultGlobal, idle: true, do: whileClosing(func(r *rig) { r.q.FailGlobal() }), code: none, state: wr.StateError},
}
