package cases

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// What API cases play in that look at a queue pair from both sides: its states, queues and events by
// verbs, its stream by a raw peer.

// link is a queue pair of a host with a CQ for each of its queues, and the raw peer at the other
// end of its stream.
type link struct {
	*host
	*peer  // nil before join
	t      *conformance.T
	qp     *verbs.QP
	id     verbs.QPID
	sq, rq *verbs.CQ
	hidden bool // what join connects is no socket to the queue pair
}

// onLink is a case on a link, and onIdleLink on one whose queue pair is Idle.
func onLink(run func(*conformance.T, *link)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newLink(t, verbs.QPConfig{})) }
}

func onIdleLink(run func(*conformance.T, *link)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newIdleLink(t, verbs.QPConfig{})) }
}

// newLink and newIdleLink are link and idleLink of a host of their own.
func newLink(t *conformance.T, c verbs.QPConfig) *link { return newHost(t, hostConfig{}).link(c) }

func newIdleLink(t *conformance.T, c verbs.QPConfig) *link {
	return newHost(t, hostConfig{}).idleLink(c)
}

// link makes a queue pair in RTS.
func (n *host) link(c verbs.QPConfig) *link {
	l := n.idleLink(c)
	l.join()
	return l
}

// idleLink makes a link whose queue pair is Idle, without a peer.
func (n *host) idleLink(c verbs.QPConfig) *link {
	if c.SendCQ == nil {
		c.SendCQ = n.newCQ(512)
	}
	if c.RecvCQ == nil {
		c.RecvCQ = n.newCQ(512)
	}
	qp := n.newQP(c)
	return &link{host: n, t: n.t, qp: qp, id: qp.ID(), sq: c.SendCQ, rq: c.RecvCQ}
}

// join brings an Idle queue pair to RTS, as the side that may send first, and joinOver does so over
// a connection of the case's.
func (l *link) join() {
	far, near := tcpPair(l.t)
	if l.hidden {
		near = hiddenSocket{near.(*net.TCPConn)}
	}
	l.joinOver(far, verbs.StreamConfig{Conn: near, CRC: true})
}

func (l *link) joinOver(far net.Conn, s verbs.StreamConfig) {
	s.Role = asInitiator
	l.peer = peerOver(l.t, l.qp, far, s)
}

// linkOfEMSS makes a link over TCP segments of that many octets at most, as its LLP says.
func (n *host) linkOfEMSS(emss int, markers bool) *link {
	l := n.idleLink(verbs.QPConfig{})
	far, near := tcpPair(n.t)
	l.joinOver(far, verbs.StreamConfig{Conn: near, CRC: true, MarkersOut: markers, EMSS: emss})
	return l
}

// rawPeer connects an Idle queue pair with a raw peer, whose octets are in the trace. role is the
// queue pair's: a Responder sends nothing before it has received something.
func rawPeer(t *conformance.T, qp *verbs.QP, role side) *peer {
	far, near := tcpPair(t)
	return peerOver(t, qp, far, verbs.StreamConfig{Conn: near, Role: role, CRC: true})
}

// peerOver is rawPeer at the far end of a stream.
func peerOver(t *conformance.T, qp *verbs.QP, far net.Conn, s verbs.StreamConfig) *peer {
	begin(t, qp, s)
	return newPeer(t, t.Trace().Conn(far), framing{crc: s.CRC, markersIn: s.MarkersOut, markersOut: s.MarkersIn})
}

// aStream is a stream that a queue pair could be given, and its other end.
func aStream(t *conformance.T) (*verbs.StreamConfig, *peer) {
	far, near := tcpPair(t)
	return &verbs.StreamConfig{Conn: near, Role: asInitiator, CRC: true}, newPeer(t, t.Trace().Conn(far), withCRC)
}

// hiddenSocket hides that a connection is a socket. Of a socket a queue pair makes a descriptor of its
// own, and closes what it was given at once; this it keeps to the end.
type hiddenSocket struct{ *net.TCPConn }

// hiddenLink is link with a connection of which released can tell: it is closed on this side.
func (n *host) hiddenLink(c verbs.QPConfig) *link {
	l := n.idleLink(c)
	l.hidden = true
	l.join()
	return l
}

func released(t *conformance.T, c net.Conn) {
	_, bare := c.(*net.TCPConn)
	require.False(t, bare, "the program's socket tells nothing of the queue pair's")
	require.ErrorIs(t, c.SetDeadline(time.Time{}), net.ErrClosed, "the local socket")
}

// capture is a connection that keeps the octets which are written to it, and whether it
// was reset.
type capture struct {
	*net.TCPConn
	octets []byte // the writer's; read once the connection is gone
	reset  atomic.Bool
}

func (c *capture) SetLinger(s int) error {
	c.reset.Store(s == 0)
	return c.TCPConn.SetLinger(s)
}

func (c *capture) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	c.octets = append(c.octets, b[:n]...)
	return n, err
}

func (c *capture) SyscallConn() {} // no raw access: all goes through Write

// states are those of a queue pair.
var states = []verbs.State{verbs.StateIdle, verbs.StateRTS, verbs.StateClosing, verbs.StateTerminate, verbs.StateError}

// into makes a link in a state, which lasts until the peer or a verb ends it.
func (n *host) into(s verbs.State, c verbs.QPConfig) *link { return n.idleLink(c).into(s) }

func (l *link) into(s verbs.State) *link {
	if s != verbs.StateIdle {
		l.join()
	}
	if s != verbs.StateIdle && s != verbs.StateRTS {
		l.modify(s)
	}
	require.Equal(l.t, s, l.qp.State())
	return l
}

// modify is Modify QP, without other attributes.
func (l *link) modify(next verbs.State) {
	require.NoError(l.t, l.qp.Modify(verbs.ModifyQP{Next: next}), "Modify QP to %v", next)
}

// again takes a queue pair that has ended in Error to Idle, and to RTS with a new
// stream.
func (l *link) again() {
	l.modify(verbs.StateIdle)
	l.join()
}

// armed makes a queue pair of an S-RQ whose limit Modify QP has armed.
func (n *host) armed(s *verbs.SRQ, limit int) *link {
	l := n.idleLink(verbs.QPConfig{SRQ: s})
	require.NoError(n.t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, RQLimit: ptr(limit), ArmRQLimit: true}))
	l.join()
	return l
}

// closesTo has the peer close its half, with which the stream ends in that state, and closesWith
// with these events too, and no more. remains waits for that end.
func (l *link) closesTo(s verbs.State) {
	l.shut()
	ends(l.t, l.qp, s)
}

func (l *link) closesWith(s verbs.State, ids ...verbs.EventID) {
	l.shut()
	l.remains(s, ids...)
}

func (l *link) remains(s verbs.State, ids ...verbs.EventID) {
	ends(l.t, l.qp, s)
	l.raised(ids...)
	l.quiet()
}

// raised waits for events of the queue pair.
func (l *link) raised(ids ...verbs.EventID) {
	for _, id := range ids {
		l.events.are(verbs.Event{ID: id, QP: l.id})
	}
}

// keeps has the peer close a stream in Terminate: there and in Error behind it the queue pair tells
// of the Terminate Message in ulpdu, which it has sent or received.
func (l *link) keeps(ulpdu []byte, sent bool) {
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

// aReceive is a receive of 64 octets; receives posts some to an S-RQ, and recv to the queue pair.
func (n *host) aReceive(id uint64) verbs.Recv {
	return verbs.Recv{ID: id, SGL: n.mr.SGL(int(64*id), 64)}
}

func (n *host) receives(s *verbs.SRQ, ids ...uint64) {
	for _, id := range ids {
		postRecv(n.t, s, n.aReceive(id))
	}
}

func (l *link) recv(ids ...uint64) {
	for _, id := range ids {
		postRecv(l.t, l.qp, l.aReceive(id))
	}
}

// sentAs, recvAs and got are the completions that requests of the link have: got is that of a
// receive which was used.
func (l *link) sentAs(id uint64, op verbs.Op, s verbs.Status) verbs.Completion {
	return verbs.Completion{ID: id, QP: l.id, Op: op, Status: s}
}

func (l *link) recvAs(s verbs.Status, ids ...uint64) (list []verbs.Completion) {
	for _, id := range ids {
		list = append(list, l.sentAs(id, verbs.OpRecv, s))
	}
	return list
}

func (l *link) got(id uint64, octets int) verbs.Completion {
	return verbs.Completion{ID: id, QP: l.id, Op: verbs.OpRecv, Bytes: uint32(octets)}
}

// aSend is a Send of some octets, and aRead an RDMA Read into some, which the peer has to answer.
func (l *link) aSend(id uint64) verbs.Request { return verbs.Request{ID: id, SGL: l.mr.SGL(0, 4)} }

func (l *link) aRead(id uint64) verbs.Request {
	return verbs.Request{ID: id, Op: verbs.OpRead, Local: l.mr.SGE(4096, 8), Remote: theirs}
}

// asks is what the peer gets of aRead, the msn-th of its stream, and answer what it
// says to that.
func (l *link) asks(msn uint32) []byte {
	at := l.mr.Remote(4096)
	return aReadRequest(msn, read{uint32(at.STag), at.TO, 8, uint32(theirs.STag), theirs.TO})
}

func (l *link) answer() []byte {
	at := l.mr.Remote(4096)
	return aReadResponse(uint32(at.STag), at.TO, []byte("response"))
}

// delivers has the peer send a message, or says a short one, which completes the receive with this ID.
func (l *link) delivers(id uint64, text string) {
	l.sendMessage([]byte(text))
	completes(l.t, l.rq, l.got(id, len(text)))
}

func (l *link) says(id uint64) { l.delivers(id, "\x01\x02\x03") }

// sendsTooMuch has the peer send one message too many: there is no receive for it.
func (l *link) sendsTooMuch() {
	u := l.peer.aSend([]byte{1})
	l.send(u)
	l.terminated(0x1202, u, false)
	l.closesTo(verbs.StateError)
	l.raised(verbs.EventRQMSNRange)
}

// stream is the LLP stream that Query QP reports, or nil, and shown is Query QP for refuses.
func (l *link) stream() *verbs.StreamConfig { return attributes(l.t, l.qp).Stream }
func (l *link) shown() any                  { return attributes(l.t, l.qp) }

// refusesPosts says that neither queue takes a request.
func (l *link) refusesPosts(want error) {
	n, err := l.qp.PostSend(l.aSend(0xDEAD))
	require.ErrorIs(l.t, err, want, "PostSQ")
	require.Zero(l.t, n)
	n, err = l.qp.PostRecv(verbs.Recv{ID: 0xDEAD})
	require.ErrorIs(l.t, err, want, "PostRQ")
	require.Zero(l.t, n)
}

// refusesVerbs says that in this state no Modify QP is taken, and no request.
func (l *link) refusesVerbs(in verbs.State) {
	for _, next := range states {
		for what, m := range map[string]verbs.ModifyQP{
			"alone": {Next: next}, "with attributes": {Next: next, ORD: ptr(1), SendDepth: ptr(20)},
		} {
			refuses(l.t, next.String()+" "+what, verbs.ErrInvalidState, func() error { return l.qp.Modify(m) }, l.shown)
		}
	}
	l.refusesPosts(verbs.ErrInvalidState)
	require.Equal(l.t, in, l.qp.State())
}

// noCompletions says that neither queue has a completion at this moment.
func (l *link) noCompletions() {
	empty(l.t, l.sq)
	empty(l.t, l.rq)
}

// posting posts to both queues, from two goroutines, until refused, does something when
// it has posted a while, and tells what was accepted: a Send has an even ID.
func (l *link) posting(lead int, do func()) map[uint64]bool {
	var (
		mu       sync.Mutex
		accepted = map[uint64]bool{}
		g        sync.WaitGroup
		started  = make(chan struct{}, 2)
	)
	for queue := range uint64(2) {
		g.Go(func() {
			for i := range uint64(400) {
				id := i<<1 | queue
				var err error
				if queue == 0 {
					err = second(l.qp.PostSend(verbs.Request{ID: id, SGL: l.mr.SGL(0, 4)}))
				} else {
					err = second(l.qp.PostRecv(verbs.Recv{ID: id}))
				}
				if int(i) == lead || err != nil && int(i) < lead {
					started <- struct{}{}
				}
				if err != nil {
					assert.ErrorIs(l.t, err, verbs.ErrInvalidState)
					return
				}
				mu.Lock()
				accepted[id] = true
				mu.Unlock()
			}
		})
	}
	<-started
	<-started
	do()
	g.Wait()
	return accepted
}

// accounted says that each of these requests has completed once, as Success or
// Flushed, at its own CQ; but for those, nothing has.
func (l *link) accounted(accepted map[uint64]bool) {
	for queue, cq := range []*verbs.CQ{l.sq, l.rq} {
		c := make([]verbs.Completion, 1024)
		for _, x := range c[:cq.Poll(c)] {
			require.True(l.t, accepted[x.ID], "%+v: not posted, or completed already", x)
			require.Equal(l.t, uint64(queue), x.ID&1, "%+v: the CQ", x)
			require.Contains(l.t, []verbs.Status{verbs.StatusSuccess, verbs.StatusFlushed}, x.Status, "%+v", x)
			delete(accepted, x.ID)
		}
	}
	require.Empty(l.t, accepted, "accepted, and never completed")
}

// shortly is a close timeout that has to be seen to pass.
const shortly = 50 * time.Millisecond

// vast is more than the sockets of a connection hold.
const vast = 16 << 20

// stuff posts what the sockets cannot hold, to a peer that does not read.
func (l *link) stuff() {
	mr := l.register(vast, allRights)
	post(l.t, l.qp, verbs.Request{ID: 80, Op: verbs.OpWrite, SGL: mr.SGL(0, vast), Remote: theirs})
	require.Equal(l.t, []byte{moreTagged, opWrite}, l.next()[:2], "it is under way")
}

// full gives what is being sent the time to fill the sockets: others set up streams
// and take them down meanwhile.
func (l *link) full() {
	for range 3 {
		other := l.link(verbs.QPConfig{})
		other.settled()
		require.NoError(l.t, other.qp.Destroy())
	}
}

// adds has a Send complete, which is on the CQ then.
func (l *link) adds(id uint64) {
	post(l.t, l.qp, l.aSend(id))
	l.next()
	require.NoError(l.t, l.qp.Drain(l.t.Context()))
}

// gets has the peer send, with a control octet, and a receive complete.
func (l *link) gets(control byte) {
	var inv uint32
	if control == opSendInv || control == opSendSEInv {
		inv = uint32(l.register(8, allRights).STag())
	}
	postRecv(l.t, l.qp, verbs.Recv{ID: 7})
	l.send(untagged(lastUntagged, control, inv, 0, l.nextSend(), 0, nil))
	l.settled()
}

// notified is a link both of whose queues have a CQ of a handler.
func (n *host) notified(b *cqHandler) (*link, *verbs.CQ) {
	cq := b.cq(512)
	return n.link(verbs.QPConfig{SendCQ: cq, RecvCQ: cq}), cq
}
