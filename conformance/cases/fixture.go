package cases

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// What every case is made of: its kind, the parts it goes through one after another, and what it waits
// for. The fixtures, each made from nothing but defaults unless a case says more:
//
//	fixture_host.go     an RNIC in this process with one of everything; two that are connected
//	fixture_link.go     a queue pair of a host and a raw peer
//	fixture_probe.go    access probes: what may be done with an STag
//	fixture_rig.go      a queue pair under test, driven by an upper tester, and a raw peer
//	fixture_buffer.go   its memory; memory of which each octet is watched
//	fixture_startup.go  its MPA startup, played by the case
//	fixture_rping.go    a raw peer of a program that speaks rping's language
//	fixture_paths.go    a fault tried by each way that a segment can take
//	fixture_vi.go       VI NICs, and in fixture_vi_peer.go a raw peer of a VI
//	fixture_nd.go       NetworkDirect adapters
//	fixture_wait.go     ways to wait, and the moments at which it happens
//
// and what they are used with:
//
//	fixture_peer.go       the raw peer, and the messages that it sends and gets
//	fixture_faults.go     tables of faults, and what has to follow
//	fixture_transfers.go  data that has to arrive, the operations matrix, and probes while an operation is under way

// apiCase is a case of the verbs in this process, or of the calls of a VI NIC or a NetworkDirect
// adapter. The keys are those that it asserts.
func apiCase(name string, run func(*conformance.T), keys ...string) conformance.Case {
	return conformance.Case{Name: name, Keys: keys, Need: conformance.NeedAPI, Run: run}
}

// upperCase is a case of a raw peer against a queue pair that an upper tester drives.
func upperCase(name string, run func(*conformance.T), keys ...string) conformance.Case {
	return conformance.Case{Name: name, Keys: keys, Need: conformance.NeedUpper, Run: run}
}

// wireCase is a case of a raw peer against any target.
func wireCase(name string, run func(*conformance.T), keys ...string) conformance.Case {
	return conformance.Case{Name: name, Keys: keys, Need: conformance.NeedWire, Run: run}
}

// strict has a case of SHOULDs run with Options.Strict only.
func strict(c conformance.Case) conformance.Case {
	c.Strict = true
	return c
}

// either is a if cond holds, and b if it does not.
func either[V any](cond bool, a, b V) V {
	if cond {
		return a
	}
	return b
}

// inTurn goes through a list, each entry of which is a part of the case, as T.In makes it: what fails
// within is named by it, and by the part around it; what fails behind the loop is not. format has one verb, for the entry, or for the first field of
// a struct that begins with a string.
func inTurn[V any](t *conformance.T, format string, list []V) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range list {
			if !oneOf(t, fmt.Sprintf(format, nameOf(v)), func() bool { return yield(v) }) {
				return
			}
		}
	}
}

// named goes through a table, in any order. format has one verb, for the key.
func named[V any](t *conformance.T, format string, table map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for k, v := range table {
			if !oneOf(t, fmt.Sprintf(format, k), func() bool { return yield(k, v) }) {
				return
			}
		}
	}
}

// counted goes from 0 to n-1. format has one verb, for the number.
func counted[N int | uint16 | uint32 | uint64](t *conformance.T, format string, n N) iter.Seq[N] {
	return func(yield func(N) bool) {
		for i := N(0); i < n; i++ {
			if !oneOf(t, fmt.Sprintf(format, i), func() bool { return yield(i) }) {
				return
			}
		}
	}
}

// oneOf says whether to go on behind a part.
func oneOf(t *conformance.T, part string, f func() bool) (more bool) {
	t.In(part, func() { more = f() })
	return more
}

// nameOf is what an entry is called.
func nameOf(v any) any {
	if s := reflect.ValueOf(v); s.Kind() == reflect.Struct && s.NumField() > 0 && s.Field(0).Kind() == reflect.String {
		return s.Field(0).String()
	}
	return v
}

// upTo are the numbers from one to another.
func upTo(from, to uint64) (ids []uint64) {
	for ; from <= to; from++ {
		ids = append(ids, from)
	}
	return ids
}

// Waiting for completions, events, states and ends of streams, and comparing them.

// post posts work requests, all of which have to be taken.
func post(t *conformance.T, qp interface {
	PostSend(reqs ...verbs.Request) (int, error)
}, reqs ...verbs.Request) {
	n := must(qp.PostSend(reqs...))(t, "PostSQ")
	require.Len(t, reqs, n, "posted")
}

// postRecv posts receives to a queue pair or an S-RQ, all of which have to be
// taken.
func postRecv(t *conformance.T, q interface {
	PostRecv(reqs ...verbs.Recv) (int, error)
}, reqs ...verbs.Recv) {
	n := must(q.PostRecv(reqs...))(t, "PostRQ")
	require.Len(t, reqs, n, "posted")
}

// await waits for exactly k completions.
func await(t *conformance.T, cq *verbs.CQ, k int) []verbs.Completion {
	got := make([]verbs.Completion, k)
	for have := 0; have < k; {
		n := must(cq.Wait(t.Context(), got[have:]))(t, "waiting for completion %d of %d; so far %+v", have+1, k, got[:have])
		have += n
	}
	return defined(got)
}

// defined are completions without what 9.3.2.1 does not have: the value of a request that failed, the length of a Read.
func defined(list []verbs.Completion) []verbs.Completion {
	for i := range list {
		if list[i].Op.IsRead() {
			list[i].Bytes = 0
		}
		if list[i].Status != verbs.StatusSuccess {
			list[i].Value = 0
		}
	}
	return list
}

// completes waits for these completions, in this order, and for no more. The zero
// Status is Success.
func completes(t *conformance.T, cq *verbs.CQ, want ...verbs.Completion) {
	require.Equal(t, want, await(t, cq, len(want)), "the completions")
}

// completesAny is completes in any order: that of different queues is not fixed.
func completesAny(t *conformance.T, cq *verbs.CQ, want ...verbs.Completion) {
	require.ElementsMatch(t, want, await(t, cq, len(want)), "the completions")
}

// empty says that a CQ has no completion at this moment.
func empty(t *conformance.T, cq *verbs.CQ) {
	c, err := cq.PollOne()
	require.ErrorIs(t, err, verbs.ErrCQEmpty, "there is %+v", c)
}

// run posts one request and waits for its completion, which has to be the next one
// on the queue pair's send CQ, with the request's ID and operation.
func run(t *conformance.T, qp *verbs.QP, req verbs.Request, want verbs.Status) {
	post(t, qp, req)
	completes(t, attributes(t, qp).SendCQ, verbs.Completion{ID: req.ID, QP: qp.ID(), Op: req.Op, Status: want})
}

// attributes is Query QP.
func attributes(t *conformance.T, qp *verbs.QP) verbs.QPAttributes {
	return must(qp.Query())(t, "Query QP")
}

// queried is what a Query returns.
func queried[T any](t *conformance.T, of interface{ Query() (T, error) }) T {
	return must(of.Query())(t, "Query")
}

// qpSnapshot is what Query QP returns, with identifiers in the place of handles, so that
// it can be compared and printed.
type qpSnapshot struct {
	ID                                               verbs.QPID
	PD                                               verbs.PDID
	SendCQ, RecvCQ                                   verbs.CQID
	SRQ                                              verbs.SRQID
	State                                            verbs.State
	SendDepth, RecvDepth, SendSGE, WriteSGE, RecvSGE int
	IRD, ORD                                         int
	NoInboundRead, NoInboundWrite, NoBind            bool
	Privileged, GracefulReceive                      bool
	RQLimit                                          int
	RQLimitArmed                                     bool
	Stream                                           bool // there is one
	Terminate                                        []byte
	TerminateSent                                    bool
}

// snapshot is Query QP as told.
func snapshot(t *conformance.T, qp *verbs.QP) qpSnapshot {
	a := attributes(t, qp)
	v := qpSnapshot{
		ID: a.ID, PD: a.PD.ID(), SendCQ: a.SendCQ.ID(), RecvCQ: a.RecvCQ.ID(), State: a.State,
		SendDepth: a.SendDepth, RecvDepth: a.RecvDepth, SendSGE: a.SendSGE, WriteSGE: a.WriteSGE, RecvSGE: a.RecvSGE,
		IRD: a.IRD, ORD: a.ORD, NoInboundRead: a.NoInboundRead, NoInboundWrite: a.NoInboundWrite, NoBind: a.NoBind,
		Privileged: a.Privileged, GracefulReceive: a.GracefulReceive, RQLimit: a.RQLimit, RQLimitArmed: a.RQLimitArmed,
		Stream: a.Stream != nil,
	}
	if a.SRQ != nil {
		v.SRQ = a.SRQ.ID()
	}
	if a.Terminate != nil {
		v.Terminate, v.TerminateSent = a.Terminate.Raw, a.Terminate.Sent
	}
	return v
}

// snapshotOf is snapshot for refuses.
func snapshotOf(t *conformance.T, qp *verbs.QP) func() any {
	return func() any { return snapshot(t, qp) }
}

// reaches waits until a queue pair is in a state.
func reaches(t *conformance.T, qp *verbs.QP, want verbs.State) {
	eventually(t, func() bool { return qp.State() == want }, "queue pair %d reaches %v", qp.ID(), want)
}

// ends waits until a queue pair's stream is gone, and says what state it left.
func ends(t *conformance.T, qp *verbs.QP, want verbs.State) {
	receive(t, qp.Done(), "the stream of queue pair %d has not ended: %v", qp.ID(), qp.State())
	require.Equal(t, want, qp.State(), "the state after the stream")
}

// eventually waits for what has no event to wait for.
func eventually(t *conformance.T, cond func() bool, format string, args ...any) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		receive(t, tick.C, "it never happened: "+format, args...)
	}
}

// refuses says that a verb fails with an Immediate Error, which tells why, and that what
// the queries tell is the same before and after.
func refuses(t *conformance.T, what string, want error, verb func() error, queries ...func() any) {
	before := make([]any, len(queries))
	for i, q := range queries {
		before[i] = q()
	}
	err := verb()
	if assert.ErrorIs(t, err, want, what) && !errors.Is(err, verbs.ErrCQEmpty) { // which is an answer
		tellsWhy(t, what, err)
	}
	for i, q := range queries {
		assert.Equal(t, before[i], q(), "%s: nothing has changed", what)
	}
}

// tellsWhy says that an Immediate Error has its reason: the verb, what was wrong, the rule,
// and what to do.
func tellsWhy(t *conformance.T, what string, err error) {
	var why *verbs.Reason
	require.ErrorAs(t, err, &why, what)
	var code verbs.ImmediateError
	require.ErrorAs(t, why, &code, what)
	assert.NotEmpty(t, why.Operation, "%s: the verb", what)
	assert.NotEmpty(t, why.What+strings.TrimPrefix(why.Err.Error(), code.Error()), "%s: what was wrong", what)
	assert.NotEmpty(t, why.Rule, "%s: the rule", what)
	assert.NotEmpty(t, why.Remedy, "%s: what to do", what)
	assert.False(t, why.ByPeer, what)
}

// queries makes a Query verb one for refuses; of a queue pair see tells.
func queries[T any](query func() (T, error)) func() any {
	return func() any {
		v, err := query()
		return []any{v, err}
	}
}

// second drops the first of two results.
func second[T any](_ T, err error) error { return err }

// must is what a call returns that has to succeed: must(nic.AllocatePD())(t).
func must[T any](v T, err error) func(t *conformance.T, why ...any) T {
	return func(t *conformance.T, why ...any) T {
		require.NoError(t, err, why...)
		return v
	}
}

// ptr is for modifiers that are pointers.
func ptr[T any](v T) *T { return &v }

// eventLog takes the asynchronous events of an RNIC in the order in which they
// come.
type eventLog struct {
	t      *conformance.T
	events chan verbs.Event
}

// logEvents makes the log the event handler of an RNIC.
func logEvents(t *conformance.T, nic *verbs.RNIC) *eventLog {
	l := &eventLog{t: t, events: make(chan verbs.Event, 4096)}
	require.NoError(t, nic.SetEventHandler(func(e verbs.Event) {
		select {
		case l.events <- bare(e):
		default:
			t.Errorf("too many events: %v", e)
		}
	}))
	return l
}

// bare is an event without its reason, which the draft does not know.
func bare(e verbs.Event) verbs.Event {
	e.Why = nil
	return e
}

// next waits for the next event.
func (l *eventLog) next() verbs.Event {
	select {
	case e := <-l.events:
		return e
	case <-l.t.Context().Done():
		l.t.Fatalf("there is no event")
		return verbs.Event{}
	}
}

// are waits for these events, in this order.
func (l *eventLog) are(want ...verbs.Event) {
	got := make([]verbs.Event, len(want))
	for i := range got {
		got[i] = l.next()
	}
	require.Equal(l.t, want, got, "the events")
}

// quiet says that the host raised no event that was not read from the log. It
// raises one more, with a queue pair of its own: events come in the order in which
// they happened.
func (n *host) quiet() {
	qp := n.newQP(verbs.QPConfig{})
	fault.Provoke(qp)
	n.events.are(verbs.Event{ID: verbs.EventLocalQPCatastrophic, QP: qp.ID()})
	require.NoError(n.t, qp.Destroy())
}

// succeed calls what has to succeed, one after another.
func succeed(t *conformance.T, calls ...func() error) {
	for i, call := range calls {
		require.NoError(t, call(), "call %d of %d", i+1, len(calls))
	}
}

// receive waits for a value of a channel. The text says what is missing if none comes.
func receive[V any](t *conformance.T, from <-chan V, format string, args ...any) (v V) {
	select {
	case v = <-from:
	case <-t.Context().Done():
		t.Fatalf(format, args...)
	}
	return v
}

// receiver is where a queue pair's receives go: to its S-RQ if it has one.
func receiver(qp *verbs.QP, srq *verbs.SRQ) interface {
	PostRecv(reqs ...verbs.Recv) (int, error)
} {
	if srq != nil {
		return srq
	}
	return qp
}

// noCompletions says that neither host has a completion at this moment.
func (w *hostPair) noCompletions() {
	empty(w.t, w.a.cq)
	empty(w.t, w.b.cq)
}

// roomOf is how many completions a CQ holds; 0 once it is destroyed.
func roomOf(c *verbs.CQ) int {
	a, err := c.Query()
	if err != nil {
		return 0
	}
	return a.Entries
}
