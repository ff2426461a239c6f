package cases

import (
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// What wire cases play in: a raw peer, and at the other end of its stream a queue pair under test,
// which an upper tester drives. Only the peer's octets and the upper tester are used: the target
// may be anywhere.
//
//	case -- raw peer ==== FPDUs ==== queue pair -- upper tester -- case

// setup says what a rig is made of. The zero value is a good stream with CRC.
type setup struct {
	// qp is the queue pair under test. A zero CloseTimeout stands for an hour here: the
	// peer ends Closing and Terminate, however slow the machine is.
	qp uppertester.OpenArgs
	// play is the side of the MPA startup that the raw peer takes; Either leaves
	// it to the target.
	play conformance.Role
	// far is what the queue pair's side wants of the connection, and near what
	// the raw peer's frame says; a zero near is revision 2 with CRC, enhanced,
	// with IRD 64 and ORD 64 of a Request, and what the Request asks for of a
	// Reply.
	far  uppertester.ConnectArgs
	near startup
	// flags are added to those of the raw peer's frame of revision 1, which has C unless noCRC.
	flags byte
	noCRC bool
	// quiet sends nothing before the case does. Otherwise an Initiator begins
	// with an RDMA Write of nothing: the Responder under test may send then
	// (RFC 5044 7.1.2).
	quiet bool
	// narrow makes the peer's TCP receive buffer small, so that little is under
	// way while the peer does not read.
	narrow bool
	// raw leaves the startup to the case.
	raw bool
}

// rig is a raw peer, whose octets are in the trace, and a queue pair under test.
type rig struct {
	uppertester.Opened
	*peer
	t    *conformance.T
	up   uppertester.Tester
	play conformance.Role // the raw peer's side
	// itsFrame is the startup frame that the queue pair's side sent, and told what its program
	// is told of the startup.
	itsFrame startup
	told     uppertester.Connection
}

// onRig is a case on a rig, and onTwoCQs on one with a completion queue for each queue.
func onRig(run func(*conformance.T, *rig)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, open(t, setup{})) }
}

func onTwoCQs(run func(*conformance.T, *rig)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, open(t, twoCQs())) }
}

func twoCQs() setup { return setup{qp: uppertester.OpenArgs{SendCQ: 1, RecvCQ: 2}} }

// withTester is a case that makes its queue pairs by itself, on one RNIC.
func withTester(run func(*conformance.T, uppertester.Tester)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, tester(t)) }
}

// tester begins a session with the target's upper tester.
func tester(t *conformance.T) uppertester.Tester {
	u := must(t.Target().Upper(t.Context()))(t, "the upper tester")
	t.Cleanup(func() { _ = u.Close() })
	return u
}

// open makes a rig: the startup is over and the queue pair is in RTS. openWith also registers n
// octets that the peer may read and write.
func open(t *conformance.T, s setup) *rig { return openIn(t, tester(t), s) }

func openWith(t *conformance.T, s setup, n int) (*rig, *buffer) {
	r := open(t, s)
	b := r.region(n, allRights)
	return r, b
}

// beside makes a rig of another queue pair of the same RNIC.
func (r *rig) beside(s setup) *rig { return openIn(r.t, r.up, s) }

func openIn(t *conformance.T, u uppertester.Tester, s setup) *rig {
	if s.qp.CloseTimeout == 0 {
		s.qp.CloseTimeout = hour
	}
	r := openQP(t, u, s.qp)
	r.play = either(s.play == conformance.Either, t.Target().Role(), s.play)
	r.connect(s)
	if !s.raw {
		r.start(s)
	}
	return r
}

// openQP makes a rig that has no peer yet.
func openQP(t *conformance.T, u uppertester.Tester, a uppertester.OpenArgs) *rig {
	r := &rig{t: t, up: u}
	require.NoError(t, u.Open(a, &r.Opened), "Create QP")
	return r
}

// connect makes the TCP connection, on which the queue pair's side begins its part
// of the startup.
func (r *rig) connect(s setup) {
	far := s.far
	far.QP = r.QP
	var nc net.Conn
	var err error
	if r.play == conformance.Responder {
		nc, err = r.beDialed(far)
	} else {
		var at uppertester.Listening
		require.NoError(r.t, r.up.Listen(far, &at), "listening")
		var d net.Dialer
		nc, err = d.DialContext(r.t.Context(), "tcp", at.Addr)
	}
	require.NoError(r.t, err, "the TCP connection")
	r.t.Cleanup(func() { _ = nc.Close() })
	if s.narrow {
		require.NoError(r.t, nc.(*net.TCPConn).SetReadBuffer(64<<10))
	}
	r.over(nc)
}

// over gives the rig its peer.
func (r *rig) over(c net.Conn) {
	r.peer = newPeer(r.t, r.t.Trace().Conn(c), framing{})
	r.closes = true
}

func (r *rig) beDialed(far uppertester.ConnectArgs) (net.Conn, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(r.t.Target().Here(), "0"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	if deadline, ok := r.t.Context().Deadline(); ok {
		_ = l.(*net.TCPListener).SetDeadline(deadline)
	}
	far.Addr = l.Addr().String()
	if err := r.up.Dial(far, &uppertester.None{}); err != nil {
		return nil, err
	}
	return l.Accept()
}

// start is the startup, with a queue pair in RTS at its end.
func (r *rig) start(s setup) {
	near := s.near
	if r.play == conformance.Initiator {
		r.initiate(near)
	} else {
		r.readFrame()
		if near.Rev == 0 {
			near = replyTo(r.itsFrame)
		}
		near.Reply = true
		r.raw(near.octets())
		r.adopt(near, r.itsFrame)
	}
	r.started(s.quiet)
}

func (r *rig) initiate(near startup) {
	if near.Rev == 0 {
		near = startup{CRC: true, Rev: 2, Enhanced: true, IRD: 64, ORD: 64}
	}
	r.raw(near.octets())
	r.readFrame()
	require.False(r.t, r.itsFrame.Reject, "the MPA startup was rejected")
	r.adopt(near, r.itsFrame)
}

// started says that the startup is over for the queue pair's side too, and has it send.
func (r *rig) started(quiet bool) {
	r.ready()
	if r.play == conformance.Initiator && !quiet {
		r.send(aWrite(0, 0, nil))
	}
}

// readFrame reads the startup frame of the queue pair's side.
func (r *rig) readFrame() { r.itsFrame = must(parseStartup(r.frame()))(r.t, "the MPA startup frame") }

// connected is what the queue pair's side says of the startup, ready that it succeeded, and
// established begins with FPDUs too.
func (r *rig) connected() (c uppertester.Connection) {
	require.NoError(r.t, r.up.Connected(uppertester.Wait{Of: r.QP, Timeout: r.patience()}, &c))
	return c
}

func (r *rig) established(f framing) uppertester.Connection {
	r.setFraming(f)
	return r.ready()
}

func (r *rig) ready() uppertester.Connection {
	r.told = r.connected()
	require.Empty(r.t, r.told.Failed, "the queue pair's side of the MPA startup")
	return r.told
}

// patience is how long to wait for something at most: half of the time that the case has left, so
// that it can say what is missing.
func (r *rig) patience() time.Duration { return patience(r.t) }

func patience(t *conformance.T) time.Duration {
	if d, ok := t.Context().Deadline(); ok {
		return time.Until(d) / 2
	}
	return 10 * time.Second
}

// post posts to the Send Queue, in one call. All has to be taken.
func (r *rig) post(sends ...verbs.Request) {
	n := must(r.tryPost(sends...))(r.t, "PostSQ")
	require.Len(r.t, sends, n, "posted")
}

// tryPost is post, with its result.
func (r *rig) tryPost(sends ...verbs.Request) (int, error) {
	var p uppertester.Posted
	err := r.up.PostSend(uppertester.PostSendArgs{QP: r.QP, Sends: sends}, &p)
	return p.N, err
}

// refusesPost says that requests are refused, all of them.
func (r *rig) refusesPost(want error, sends ...verbs.Request) {
	n, err := r.tryPost(sends...)
	require.ErrorIs(r.t, err, want, "PostSQ")
	require.Zero(r.t, n, "posted")
}

// posts has the queue pair send octets of a buffer, as Sends of these lengths, all in one list.
func (r *rig) posts(b *buffer, lengths ...int) {
	var list []verbs.Request
	for i, n := range lengths {
		list = append(list, verbs.Request{ID: uint64(i + 1), SGL: b.sgl(0, n)})
	}
	r.post(list...)
}

// recv posts n receives of size octets each, with the IDs 1 to n, and returns their
// buffers, one for each.
func (r *rig) recv(n, size int) []*buffer {
	buffers := make([]*buffer, n)
	for i := range buffers {
		buffers[i] = r.region(max(size, 1), verbs.LocalRead|verbs.LocalWrite)
		r.postRecv(verbs.Recv{ID: uint64(i + 1), SGL: buffers[i].sgl(0, size)})
	}
	return buffers
}

// postRecv posts receives. All have to be taken.
func (r *rig) postRecv(recvs ...verbs.Recv) {
	var p uppertester.Posted
	require.NoError(r.t, r.up.PostRecv(uppertester.PostRecvArgs{QP: r.QP, Recvs: recvs}, &p), "PostRQ")
	require.Len(r.t, recvs, p.N, "posted")
}

// completions waits for these completions on the send CQ, which is that of receives
// too unless the case has said otherwise. The QP need not be given. The zero Status
// is Success, the zero Op Send.
func (r *rig) completions(want ...verbs.Completion) { r.completionsOf(r.SendCQ, want...) }

// completionsOf is completions on any CQ.
func (r *rig) completionsOf(cq int, want ...verbs.Completion) {
	got := r.poll(cq, len(want), r.patience())
	for i := range want {
		if want[i].QP == 0 {
			want[i].QP = r.ID
		}
	}
	require.Equal(r.t, want, got, "the completions")
}

// got is the completion of a receive, and flushedRecvs those of receives that nothing came for.
func (r *rig) got(id uint64, octets int) verbs.Completion {
	return verbs.Completion{ID: id, Op: verbs.OpRecv, Bytes: uint32(octets)}
}

func flushedRecvs(ids ...uint64) (list []verbs.Completion) {
	for _, id := range ids {
		list = append(list, verbs.Completion{ID: id, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	}
	return list
}

// poll takes up to n completions, waiting d for them.
func (r *rig) poll(cq, n int, d time.Duration) []verbs.Completion {
	var c uppertester.Completions
	require.NoError(r.t, r.up.Poll(uppertester.PollArgs{CQ: cq, N: n, Timeout: d}, &c), "Poll")
	if len(c.Completions) == 0 {
		return nil
	}
	return defined(c.Completions)
}

// incomplete says that there is no completion at this moment. What the queue pair
// has not processed yet may add one: see settled.
func (r *rig) incomplete() {
	require.Empty(r.t, r.poll(r.SendCQ, 1, 0), "completions")
	if r.RecvCQ != r.SendCQ {
		require.Empty(r.t, r.poll(r.RecvCQ, 1, 0), "completions of receives")
	}
}

// idle says that everything which was sent is processed, and that nothing completed.
func (r *rig) idle() {
	r.settled()
	r.incomplete()
}

// notify arms a CQ.
func (r *rig) notify(cq int, n verbs.NotifyType) {
	require.NoError(r.t, r.up.Notify(uppertester.NotifyArgs{CQ: cq, Type: n}, &uppertester.None{}), "Request Completion Notification")
}

// notified takes a CQ's notification, if there is one at this moment.
func (r *rig) notified(cq int) bool {
	var a uppertester.Answer
	require.NoError(r.t, r.up.Notified(uppertester.Wait{Of: cq}, &a))
	return a.Yes
}

// events waits for these events of the queue pair, which have to be all that the
// RNIC has raised for it so far.
func (r *rig) events(want ...verbs.EventID) {
	var e uppertester.Events
	var mine []verbs.EventID
	for n := len(want); ; n = len(e.Events) + 1 {
		require.NoError(r.t, r.up.Events(uppertester.EventsArgs{N: n, Timeout: r.patience()}, &e))
		mine = mine[:0]
		for _, x := range e.Events {
			if x.QP == r.ID {
				mine = append(mine, x.ID)
			}
		}
		if len(mine) >= len(want) || len(e.Events) < n {
			break
		}
	}
	if len(want) == 0 {
		require.Empty(r.t, mine, "the queue pair's events")
		return
	}
	require.Equal(r.t, want, mine, "the queue pair's events")
}

// once is the one event of a kind that is among the first n of the RNIC.
func (r *rig) once(n int, id verbs.EventID) (one verbs.Event) {
	var e uppertester.Events
	require.NoError(r.t, r.up.Events(uppertester.EventsArgs{N: n, Timeout: r.patience()}, &e))
	count := 0
	for _, x := range e.Events {
		if x.ID == id {
			one = x
			count++
		}
	}
	require.Equal(r.t, 1, count, "%v in %v", id, e.Events)
	return one
}

// query is Query QP.
func (r *rig) query() (q uppertester.QPState) {
	require.NoError(r.t, r.up.Query(r.QP, &q), "Query QP")
	return q
}

// state says what state the queue pair is in at this moment.
func (r *rig) state(want verbs.State) { require.Equal(r.t, want, r.query().State, "the state") }

// ended waits until the stream is gone, and says what state it left; finishedIn says before that
// the stream ends in order.
func (r *rig) ended(want verbs.State) (q uppertester.QPState) {
	require.NoError(r.t, r.up.Ended(uppertester.Wait{Of: r.QP, Timeout: r.patience()}, &q))
	require.Equal(r.t, want, q.State, "the state after the stream")
	return q
}

func (r *rig) finishedIn(s verbs.State) uppertester.QPState {
	r.finished()
	return r.ended(s)
}

// tornDown is terminated, with the queue pair in Error then, and refuses sends a segment for that.
func (r *rig) tornDown(code uint16, fault []byte, readToo bool) {
	r.terminated(code, fault, readToo)
	r.ended(verbs.StateError)
}

func (r *rig) refuses(code uint16, u []byte, readToo bool) {
	r.send(u)
	r.tornDown(code, u, readToo)
}

// failed says that the queue pair ends in Error with this event, and that its
// receives, so many, are flushed.
func (r *rig) failed(event verbs.EventID, receives int) {
	r.ended(verbs.StateError)
	r.events(event)
	if receives > 0 {
		r.completionsOf(r.RecvCQ, flushedRecvs(upTo(1, uint64(receives))...)...)
	}
	r.incomplete()
}

// modify is Modify QP.
func (r *rig) modify(a uppertester.ModifyArgs) error {
	a.QP = r.QP
	return r.up.Modify(a, &uppertester.None{})
}

// close is Modify QP to Closing, from RTS.
func (r *rig) close() {
	require.NoError(r.t, r.modify(uppertester.ModifyArgs{Next: verbs.StateClosing}), "Modify QP to Closing")
}

// unharmed says that the queue pair is in RTS, and that no event was raised for it.
func (r *rig) unharmed() {
	r.state(verbs.StateRTS)
	r.events()
}

// fetch has the peer read a buffer.
func (r *rig) fetch(b *buffer, off, n int) []byte { return r.fetched(b.tag(), b.at(off), n) }

// delivers sends a whole Send, the next one, which completes the receive with this ID.
func (r *rig) delivers(id uint64, text string) {
	r.sendMessage([]byte(text))
	r.completions(r.got(id, len(text)))
}

// outstandingRead posts an RDMA Read of 8 octets, the first of the stream, which the
// peer gets.
func (r *rig) outstandingRead(id uint64) *buffer {
	b := r.region(8, allRights)
	r.post(b.aReadOf(id, 0, 8))
	r.expect(b.asksFor(1, 0, 8))
	return b
}
