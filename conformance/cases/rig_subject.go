package cases

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// subject is a queue pair under test, through its upper tester.
type subject struct {
	upper.Opened
	t  *conformance.T
	up upper.Tester
}

func newSubject(t *conformance.T, u upper.Tester, a upper.OpenArgs) *subject {
	s := &subject{t: t, up: u}
	require.NoError(t, u.Open(a, &s.Opened), "Create QP")
	return s
}

// patience is how long to wait for something at most.
func (s *subject) patience() time.Duration { return patience(s.t) }

// patience is half of the time that the case has left, so that it can say what is
// missing.
func patience(t *conformance.T) time.Duration {
	if d, ok := t.Context().Deadline(); ok {
		return time.Until(d) / 2
	}
	return 10 * time.Second
}

// buffer is a Memory Region of the queue pair's side, and what it held when it was
// registered.
type buffer struct {
	upper.Region
	s     *subject
	first []byte
}

// region registers n octets in the queue pair's PD, VA-based.
func (s *subject) region(n int, access verbs.Access) *buffer {
	return s.register(upper.RegisterArgs{Len: n, Access: access})
}

// register is Register. The Seed, if 0, is made up.
func (s *subject) register(a upper.RegisterArgs) *buffer {
	b := &buffer{s: s}
	if a.Seed == 0 {
		a.Seed = uint8(s.t.Rand().UintN(255) + 1)
	}
	require.NoError(s.t, s.up.Register(a, &b.Region), "Register")
	b.first = upper.Pattern(a.Seed, a.Len)
	return b
}

// tag and at are the buffer as the peer names it: STag, and TO of octet off.
func (b *buffer) tag() uint32       { return uint32(b.STag) }
func (b *buffer) at(off int) uint64 { return b.Base + uint64(off) }
func (b *buffer) sge(off, n int) verbs.SGE {
	return verbs.SGE{STag: b.STag, Length: uint32(n), TO: b.at(off)}
}
func (b *buffer) sgl(off, n int) []verbs.SGE { return []verbs.SGE{b.sge(off, n)} }

// memory is what the buffer holds now.
func (b *buffer) memory() []byte {
	var o upper.Octets
	require.NoError(b.s.t, b.s.up.Memory(b.Region.Region, &o))
	return o.Octets
}

// holds says that from off on there is what was sent, and all else is as it was.
// Later calls expect it to stay.
func (b *buffer) holds(off int, octets []byte) {
	b.gets(off, octets)
	b.unchanged()
}

// gets notes that from off on there will be what was sent.
func (b *buffer) gets(off int, octets []byte) { copy(b.first[off:], octets) }

// unchanged says that the buffer is as it was, or as holds and gets have said.
func (b *buffer) unchanged() { same(b.s.t, b.first, b.memory(), "region %v", b.STag) }

// same compares many octets, and shows some where they differ.
func same(t *conformance.T, want, got []byte, format string, args ...any) {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			end := min(i+16, len(want), len(got))
			t.Fatalf("%s: octets from %d on are % x, not % x", fmt.Sprintf(format, args...), i, got[i:end], want[i:end])
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%s: %d octets, not %d", fmt.Sprintf(format, args...), len(got), len(want))
	}
}

// query is Query Memory Region.
func (b *buffer) query() verbs.RegionAttributes {
	var q upper.RegionState
	require.NoError(b.s.t, b.s.up.QueryRegion(b.Region.Region, &q), "Query Memory Region")
	return q.RegionAttributes
}

// deregister is Deregister.
func (b *buffer) deregister() {
	require.NoError(b.s.t, b.s.up.Deregister(b.Region.Region, &upper.None{}), "Deregister")
}

// post posts to the Send Queue, in one call. All has to be taken.
func (s *subject) post(sends ...verbs.Request) {
	n := must(s.tryPost(sends...))(s.t, "PostSQ")
	require.Len(s.t, sends, n, "posted")
}

// tryPost is post, with its result.
func (s *subject) tryPost(sends ...verbs.Request) (int, error) {
	var p upper.Posted
	err := s.up.PostSend(upper.PostSendArgs{QP: s.QP, Sends: sends}, &p)
	return p.N, err
}

// recv posts n receives of size octets each, with the IDs 1 to n, and returns their
// buffers, one for each.
func (s *subject) recv(n, size int) []*buffer {
	buffers := make([]*buffer, n)
	for i := range buffers {
		buffers[i] = s.region(max(size, 1), verbs.LocalRead|verbs.LocalWrite)
		s.postRecv(verbs.Recv{ID: uint64(i + 1), SGL: buffers[i].sgl(0, size)})
	}
	return buffers
}

// postRecv posts receives. All have to be taken.
func (s *subject) postRecv(recvs ...verbs.Recv) {
	var p upper.Posted
	require.NoError(s.t, s.up.PostRecv(upper.PostRecvArgs{QP: s.QP, Recvs: recvs}, &p), "PostRQ")
	require.Len(s.t, recvs, p.N, "posted")
}

// completions waits for these completions on the send CQ, which is that of receives
// too unless the case has said otherwise. The QP need not be given. The zero Status
// is Success, the zero Op Send.
func (s *subject) completions(want ...verbs.Completion) { s.completionsOf(s.SendCQ, want...) }

// completionsOf is completions on any CQ.
func (s *subject) completionsOf(cq int, want ...verbs.Completion) {
	got := s.poll(cq, len(want), s.patience())
	for i := range want {
		if want[i].QP == 0 {
			want[i].QP = s.ID
		}
	}
	require.Equal(s.t, want, got, "the completions")
}

// poll takes up to n completions, waiting d for them.
func (s *subject) poll(cq, n int, d time.Duration) []verbs.Completion {
	var c upper.Completions
	require.NoError(s.t, s.up.Poll(upper.PollArgs{CQ: cq, N: n, Timeout: d}, &c), "Poll")
	if len(c.Completions) == 0 {
		return nil
	}
	return defined(c.Completions)
}

// incomplete says that there is no completion at this moment. What the queue pair
// has not processed yet may add one: see rig.settled.
func (s *subject) incomplete() {
	require.Empty(s.t, s.poll(s.SendCQ, 1, 0), "completions")
	if s.RecvCQ != s.SendCQ {
		require.Empty(s.t, s.poll(s.RecvCQ, 1, 0), "completions of receives")
	}
}

// notify arms a CQ.
func (s *subject) notify(cq int, n verbs.NotifyType) {
	require.NoError(s.t, s.up.Notify(upper.NotifyArgs{CQ: cq, Type: n}, &upper.None{}), "Request Completion Notification")
}

// notified takes a CQ's notification, if there is one at this moment.
func (s *subject) notified(cq int) bool {
	var a upper.Answer
	require.NoError(s.t, s.up.Notified(upper.Wait{Of: cq}, &a))
	return a.Yes
}

// events waits for these events of the queue pair, which have to be all that the
// RNIC has raised for it so far.
func (s *subject) events(want ...verbs.EventID) {
	var e upper.Events
	var mine []verbs.EventID
	for n := len(want); ; n = len(e.Events) + 1 {
		require.NoError(s.t, s.up.Events(upper.EventsArgs{N: n, Timeout: s.patience()}, &e))
		mine = mine[:0]
		for _, x := range e.Events {
			if x.QP == s.ID {
				mine = append(mine, x.ID)
			}
		}
		if len(mine) >= len(want) || len(e.Events) < n {
			break
		}
	}
	if len(want) == 0 {
		require.Empty(s.t, mine, "the queue pair's events")
		return
	}
	require.Equal(s.t, want, mine, "the queue pair's events")
}

// query is Query QP.
func (s *subject) query() upper.QPState {
	var q upper.QPState
	require.NoError(s.t, s.up.Query(s.QP, &q), "Query QP")
	return q
}

// state says what state the queue pair is in at this moment.
func (s *subject) state(want verbs.State) { require.Equal(s.t, want, s.query().State, "the state") }

// ended waits until the stream is gone, and says what state it left.
func (s *subject) ended(want verbs.State) upper.QPState {
	var q upper.QPState
	require.NoError(s.t, s.up.Ended(upper.Wait{Of: s.QP, Timeout: s.patience()}, &q))
	require.Equal(s.t, want, q.State, "the state after the stream")
	return q
}

// modify is Modify QP.
func (s *subject) modify(a upper.ModifyArgs) error {
	a.QP = s.QP
	return s.up.Modify(a, &upper.None{})
}

// close is Modify QP to Closing, from RTS.
func (s *subject) close() {
	require.NoError(s.t, s.modify(upper.ModifyArgs{Next: verbs.StateClosing}), "Modify QP to Closing")
}

// unharmed says that the queue pair is in RTS, and that no event was raised for it.
func (s *subject) unharmed() {
	s.state(verbs.StateRTS)
	s.events()
}
