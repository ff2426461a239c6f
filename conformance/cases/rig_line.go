package cases

import (
	"io"
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// The cases of chapter 6 look at a queue pair from both sides: its states, queues and
// events by verbs, its stream by a peer that is played by hand.
//
//	rig_line.go  that, for cases of the verbs
//	rig*.go      the same through an upper tester, wherever it is
//	rv_6_*.go    the cases

// line is a queue pair with a CQ for each of its queues, and the raw peer at the other
// end of its stream.
type line struct {
	*node
	t      *conformance.T
	qp     *verbs.QP
	id     verbs.QPID
	sq, rq *verbs.CQ
	peer   *rawEnd // nil before join
	veiled bool    // what join connects is no socket to the queue pair
	numbers
}

// newLine and looseLine are line and loose of a node of their own.
func newLine(t *conformance.T, c verbs.QPConfig) *line { return newNode(t, nodeConfig{}).line(c) }

func looseLine(t *conformance.T, c verbs.QPConfig) *line { return newNode(t, nodeConfig{}).loose(c) }

// line makes a queue pair in RTS.
func (n *node) line(c verbs.QPConfig) *line {
	l := n.loose(c)
	l.join()
	return l
}

// loose makes a line whose queue pair is Idle, without a peer.
func (n *node) loose(c verbs.QPConfig) *line {
	if c.SendCQ == nil {
		c.SendCQ = n.newCQ(512)
	}
	if c.RecvCQ == nil {
		c.RecvCQ = n.newCQ(512)
	}
	qp := n.newQP(c)
	return &line{node: n, t: n.t, qp: qp, id: qp.ID(), sq: c.SendCQ, rq: c.RecvCQ}
}

// join brings an Idle queue pair to RTS, as the side that may send first.
func (l *line) join() {
	far, near := tcpPair(l.t)
	if l.veiled {
		near = veil{near.(*net.TCPConn)}
	}
	l.peer = rawPeerAt(l.t, l.qp, asInitiator, far, near)
	l.renumber()
}

// veiledLine is line with a connection of which released can tell.
func (n *node) veiledLine(c verbs.QPConfig) *line {
	l := n.loose(c)
	l.veiled = true
	l.join()
	return l
}

// into makes a line in a state, which lasts until the peer or a verb ends it.
func (n *node) into(s verbs.State, c verbs.QPConfig) *line { return n.loose(c).into(s) }

func (l *line) into(s verbs.State) *line {
	if s != verbs.StateIdle {
		l.join()
	}
	if s != verbs.StateIdle && s != verbs.StateRTS {
		l.modify(s)
	}
	require.Equal(l.t, s, l.qp.State())
	return l
}

// states are those of a queue pair.
var states = []verbs.State{verbs.StateIdle, verbs.StateRTS, verbs.StateClosing, verbs.StateTerminate, verbs.StateError}

// modify is Modify QP, without other attributes.
func (l *line) modify(next verbs.State) {
	require.NoError(l.t, l.qp.Modify(verbs.ModifyQP{Next: next}), "Modify QP to %v", next)
}

// again takes a queue pair that has ended in Error to Idle, and to RTS with a new
// stream.
func (l *line) again() {
	l.modify(verbs.StateIdle)
	l.join()
}

// tell has the peer send ULPDUs.
func (l *line) tell(ulpdus ...[]byte) {
	for _, u := range ulpdus {
		require.NoError(l.t, l.peer.Send(u), "the peer sends")
	}
}

// say has the peer send its next Send.
func (l *line) say(payload []byte) { l.tell(aSend(l.nextSend(), payload)) }

// hear says what ULPDUs the peer gets next, to the octet.
func (l *line) hear(want ...[]byte) {
	for i, w := range want {
		require.Equal(l.t, w, l.heard(), "ULPDU %d of %d", i+1, len(want))
	}
}

// heard is the next ULPDU that the peer gets, valid until the one after it.
func (l *line) heard() []byte { return must(l.peer.Next())(l.t, "waiting for an FPDU") }

// settle waits until all that the peer has sent is dealt with: the answer to an RDMA
// Read of nothing comes behind it (RFC 5040 5.5). Nothing else may come before.
func (l *line) settle() {
	l.tell(aReadRequest(l.nextRead(), read{sinkSTag: nowhere, sinkTO: nowhereTO}))
	l.hear(aReadResponse(nowhere, nowhereTO, nil))
}

// terminated says that next comes a Terminate Message, as aTerminate's, and the end of
// the stream. The peer's half stays open.
func (l *line) terminated(code uint16, fault []byte, readToo bool) {
	l.hear(aTerminate(code, fault, readToo))
	l.finished()
}

// finished says that the stream ends here, in order.
func (l *line) finished() { require.ErrorIs(l.t, second(l.peer.Next()), io.EOF, "after the last FPDU") }

// cut says that the stream is reset, and that no whole FPDU comes before.
func (l *line) cut() {
	end, fpdus, err := l.peer.End()
	require.NoError(l.t, err, "the end of the stream")
	require.Equal(l.t, endReset, end, "the end of the stream")
	require.Zero(l.t, fpdus, "FPDUs before it")
}

// shut ends the peer's half.
func (l *line) shut() { require.NoError(l.t, l.peer.CloseWrite(), "the peer closes") }

// drop has the peer reset the stream.
func (l *line) drop() { require.NoError(l.t, l.peer.Reset(), "the peer resets") }

// remains waits until the stream is gone, and says what state and which events of the
// queue pair that leaves; no others may have come.
func (l *line) remains(s verbs.State, ids ...verbs.EventID) {
	ends(l.t, l.qp, s)
	l.raised(ids...)
	l.quiet()
}

// raised waits for events of the queue pair.
func (l *line) raised(ids ...verbs.EventID) {
	for _, id := range ids {
		l.events.are(verbs.Event{ID: id, QP: l.id})
	}
}

// recv posts receives with these IDs, of 64 octets each.
func (l *line) recv(ids ...uint64) {
	for _, id := range ids {
		postRecv(l.t, l.qp, verbs.Recv{ID: id, SGL: l.mr.SGL(int(64*id), 64)})
	}
}

// sentAs and recvAs are the completions that requests of the line have.
func (l *line) sentAs(id uint64, op verbs.Op, s verbs.Status) verbs.Completion {
	return verbs.Completion{ID: id, QP: l.id, Op: op, Status: s}
}

func (l *line) recvAs(s verbs.Status, ids ...uint64) (list []verbs.Completion) {
	for _, id := range ids {
		list = append(list, verbs.Completion{ID: id, QP: l.id, Op: verbs.OpRecv, Status: s})
	}
	return list
}

// got is the completion of a receive that was used.
func (l *line) got(id uint64, octets int) verbs.Completion {
	return verbs.Completion{ID: id, QP: l.id, Op: verbs.OpRecv, Bytes: uint32(octets)}
}

// a Send of some octets, and an RDMA Read into some, which the peer has to answer.
func (l *line) aSend(id uint64) verbs.Request { return verbs.Request{ID: id, SGL: l.mr.SGL(0, 4)} }

func (l *line) aRead(id uint64) verbs.Request {
	return verbs.Request{ID: id, Op: verbs.OpRead, Local: l.mr.SGE(4096, 8), Remote: theirs}
}

// asks is what the peer gets of aRead, the msn-th of its stream, and answer what it
// says to that.
func (l *line) asks(msn uint32) []byte {
	at := l.mr.Remote(4096)
	return aReadRequest(msn, read{uint32(at.STag), at.TO, 8, uint32(theirs.STag), theirs.TO})
}

func (l *line) answer() []byte {
	at := l.mr.Remote(4096)
	return aReadResponse(uint32(at.STag), at.TO, []byte("response"))
}

// stream is the LLP stream that Query QP reports, or nil.
func (l *line) stream() *verbs.Stream { return attributes(l.t, l.qp).Stream }

// released says that a connection that was the queue pair's, of a line that is veiled, is
// closed on this side.
func released(t *conformance.T, c net.Conn) {
	_, bare := c.(*net.TCPConn)
	require.False(t, bare, "the program's socket tells nothing of the queue pair's")
	require.ErrorIs(t, c.SetDeadline(time.Time{}), net.ErrClosed, "the local socket")
}

// shown is Query QP, for refuses.
func (l *line) shown() any { return attributes(l.t, l.qp) }

// refusesPosts says that neither queue takes a request.
func (l *line) refusesPosts(want error) {
	n, err := l.qp.PostSend(l.aSend(0xDEAD))
	require.ErrorIs(l.t, err, want, "PostSQ")
	require.Zero(l.t, n)
	n, err = l.qp.PostRecv(verbs.Recv{ID: 0xDEAD})
	require.ErrorIs(l.t, err, want, "PostRQ")
	require.Zero(l.t, n)
}

// delivers has the peer send a message, which completes the receive with this ID.
func (l *line) delivers(id uint64, text string) {
	l.say([]byte(text))
	completes(l.t, l.rq, l.got(id, len(text)))
}

// closesTo has the peer close its half, with which the stream ends in that state, and
// closesWith with these events too, and no more.
func (l *line) closesTo(s verbs.State) {
	l.shut()
	ends(l.t, l.qp, s)
}

// keeps has the peer close a stream in Terminate: there and in Error behind it the queue pair tells
// of the Terminate Message in ulpdu, which it has sent or received.
func (l *line) keeps(ulpdu []byte, sent bool) {
	for _, s := range []verbs.State{verbs.StateTerminate, verbs.StateError} {
		if s == verbs.StateError {
			l.closesTo(s)
		}
		a := attributes(l.t, l.qp)
		require.Equal(l.t, s, a.State)
		require.NotNil(l.t, a.Terminate, "the Terminate Message in %v", s)
		require.Equal(l.t, ulpdu[18:], a.Terminate.Raw, "the Terminate Message in %v", s)
		require.Equal(l.t, sent, a.Terminate.Sent, "the Terminate Message in %v", s)
	}
}

func (l *line) closesWith(s verbs.State, ids ...verbs.EventID) {
	l.shut()
	l.remains(s, ids...)
}

// nothing says that neither queue has a completion at this moment.
func (l *line) nothing() {
	empty(l.t, l.sq)
	empty(l.t, l.rq)
}
