package cases

import (
	"io"
	"net"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_5_modify is Modify QP: verbs draft 9.2.5.3.
var rv9_2_5_modify = []conformance.Case{
	apiCase("9.2.5.3/results", modifyQPResults, "RV-9.2.5.3-M1"),
	apiCase("9.2.5.3/cannot-change", modifyQPCannotChange, "RV-9.2.5.3-M1"),
	apiCase("9.2.5.3/still-flushing", onHost(modifyQPStillFlushing), "RV-9.2.5.3-M1"),
	apiCase("9.2.5.3/what-may-be-supplied", onHostPair(modifyQPTable), "RV-9.2.5.3-M2"),
	apiCase("9.2.5.3/stream-message", onHost(modifyQPStreamMessage), "RV-9.2.5.3-M2"),
	apiCase("9.2.5.3/armed-again", onIdleHostPair(modifyQPArmedAgain), "RV-9.2.5.3-M3"),
	apiCase("9.2.5.3/ord", onHost(modifyQPORD), "RV-9.2.5.3-M2", "RV-9.2.5.3-M4"),
	apiCase("9.2.5.3/ord-of-a-pool", modifyQPORDOfPool, "RV-9.2.5.3-M4"),
}

func modifyQPResults(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{
		QPs: 4, WR: 64, IRD: 8, ORD: 8, SharedIRD: 8, SharedORD: 8,
	}}, QP: verbs.QPConfig{SendDepth: 8, RecvDepth: 8, IRD: 2, ORD: 2}})
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	sharing := n.newQP(verbs.QPConfig{SRQ: s, NoReads: true})
	n.newQP(verbs.QPConfig{IRD: 6, ORD: 6}) // the pools are empty
	for range 3 {
		post(t, n.qp, verbs.Request{})
		postRecv(t, n.qp, verbs.Recv{})
	}
	for _, c := range []struct {
		name string
		want error
		qp   *verbs.QP
		m    verbs.ModifyQP
	}{
		{"Idle to Closing", verbs.ErrInvalidState, n.qp, verbs.ModifyQP{Next: verbs.StateClosing}},
		{"Idle to Terminate", verbs.ErrInvalidState, n.qp, verbs.ModifyQP{Next: verbs.StateTerminate}},
		{"no such state", verbs.ErrInvalidState, n.qp, verbs.ModifyQP{Next: 99}},
		{"WRs of the SQ", verbs.ErrTooManyWR, n.qp, verbs.ModifyQP{SendDepth: ptr(65), RecvDepth: ptr(20)}},
		{"WRs of the RQ", verbs.ErrTooManyWR, n.qp, verbs.ModifyQP{SendDepth: ptr(20), RecvDepth: ptr(65)}},
		{"ORD", verbs.ErrORDExceeded, n.qp, verbs.ModifyQP{ORD: ptr(9), SendDepth: ptr(20)}},
		{"IRD", verbs.ErrIRDExceeded, n.qp, verbs.ModifyQP{IRD: ptr(9), ORD: ptr(1)}},
		{"outstanding Sends", verbs.ErrShrinkFailed, n.qp, verbs.ModifyQP{SendDepth: ptr(2), ORD: ptr(1)}},
		{"outstanding Receives", verbs.ErrShrinkFailed, n.qp, verbs.ModifyQP{SendDepth: ptr(20), RecvDepth: ptr(2)}},
		{"no stream", verbs.ErrInvalidLLPStream, n.qp, verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(1)}},
		{"a stream without a connection", verbs.ErrInvalidLLPStream, n.qp, verbs.ModifyQP{Next: verbs.StateRTS, Stream: &verbs.StreamConfig{}}},
		{"Receives of an S-RQ", verbs.ErrInvalidModifier, sharing, verbs.ModifyQP{RecvDepth: ptr(4)}},
		{"negative ORD", verbs.ErrInvalidModifier, n.qp, verbs.ModifyQP{ORD: ptr(-1)}},
		{"no Sends", verbs.ErrInvalidModifier, n.qp, verbs.ModifyQP{SendDepth: ptr(0)}},
		{"RQ Limit above the S-RQ", verbs.ErrRQLimitRange, sharing, verbs.ModifyQP{RQLimit: ptr(9)}},
		{"negative RQ Limit", verbs.ErrRQLimitRange, sharing, verbs.ModifyQP{RQLimit: ptr(-1)}},
		{"ORD of an empty pool", verbs.ErrInsufficientResources, sharing, verbs.ModifyQP{ORD: ptr(1), SendDepth: ptr(20)}},
		{"IRD of an empty pool", verbs.ErrInsufficientResources, sharing, verbs.ModifyQP{IRD: ptr(1), SendDepth: ptr(20)}},
	} {
		refuses(t, c.name, c.want, func() error { return c.qp.Modify(c.m) }, snapshotOf(t, c.qp))
	}
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{SendDepth: ptr(3), RecvDepth: ptr(64), ORD: ptr(1), IRD: ptr(0)}))
	a := attributes(t, n.qp)
	assert.Equal(t, []int{1, 0}, []int{a.ORD, a.IRD})
	require.NoError(t, sharing.Destroy())
	require.ErrorIs(t, sharing.Modify(verbs.ModifyQP{}), verbs.ErrInvalidQP)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.qp.Modify(verbs.ModifyQP{}), verbs.ErrInvalidRNIC)
}

func modifyQPCannotChange(t *conformance.T) {
	n := newHost(t, hostConfig{
		RNIC: verbs.Config{Without: verbs.FeatureResize | verbs.FeatureChangeIRD | verbs.FeatureRaiseORD},
		QP:   verbs.QPConfig{IRD: 4, ORD: 4},
	})
	for name, m := range map[string]verbs.ModifyQP{
		"WRs of the SQ": {SendDepth: ptr(99)}, "WRs of the RQ": {RecvDepth: ptr(99)},
		"more IRD": {IRD: ptr(5)}, "less IRD": {IRD: ptr(3)}, "more ORD": {ORD: ptr(5)},
	} {
		refuses(t, name, verbs.ErrCannotChangeAttribute, func() error { return n.qp.Modify(m) }, snapshotOf(t, n.qp))
	}
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{ORD: ptr(2)}), "it can always be lowered")
	assert.Equal(t, 2, attributes(t, n.qp).ORD)
}

// latch is a connection whose Close waits, in the Error state, until it is let go.
type latch struct {
	net.Conn
	qp     *verbs.QP
	inside chan<- struct{}
	letGo  <-chan struct{}
}

func (l *latch) Close() error {
	if l.qp.State() == verbs.StateError {
		l.inside <- struct{}{}
		<-l.letGo
	}
	return l.Conn.Close()
}

// modifyQPStillFlushing asks for Idle while the way to Error is not over, because
// the LLP takes its time.
func modifyQPStillFlushing(t *conformance.T, n *host) {
	x, _ := tcpPair(t)
	inside, letGo := make(chan struct{}, 8), make(chan struct{})
	begin(t, n.qp, verbs.StreamConfig{Conn: &latch{x, n.qp, inside, letGo}, Role: asInitiator})
	ended := make(chan error, 1)
	go func() { ended <- n.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) }()
	select {
	case <-inside:
	case <-t.Context().Done():
	}
	err := n.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle})
	close(letGo)
	require.ErrorIs(t, err, verbs.ErrStillFlushing)
	require.NoError(t, <-ended)
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}))
}

// modifyQPTable is figures 4 and 5: every attribute with every transition.
func modifyQPTable(t *conformance.T, w *hostPair) {
	n := w.a
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	x, y := tcpPair(t)
	attribute := map[string]func(*verbs.ModifyQP){
		"stream":         func(m *verbs.ModifyQP) { m.Stream = &verbs.StreamConfig{Conn: x} },
		"stream message": func(m *verbs.ModifyQP) { m.LastMessage = []byte("last") },
		"ORD":            func(m *verbs.ModifyQP) { m.ORD = ptr(3) },
		"IRD":            func(m *verbs.ModifyQP) { m.IRD = ptr(3) },
		"WRs of the SQ":  func(m *verbs.ModifyQP) { m.SendDepth = ptr(100) },
		"WRs of the RQ":  func(m *verbs.ModifyQP) { m.RecvDepth = ptr(100) },
		"RQ Limit":       func(m *verbs.ModifyQP) { m.RQLimit = ptr(2) },
		"RQ Limit armed": func(m *verbs.ModifyQP) { m.ArmRQLimit = true },
	}
	both := []string{"ORD", "IRD", "WRs of the SQ", "WRs of the RQ"}
	limits := []string{"RQ Limit", "RQ Limit armed"}
	idle, failed := n.newQP(verbs.QPConfig{}), n.newQP(verbs.QPConfig{})
	require.NoError(t, failed.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	sharing := n.newQP(verbs.QPConfig{SRQ: s, RQLimit: 1})
	for _, c := range []struct {
		qp      *verbs.QP
		next    verbs.State
		allowed []string
	}{
		{idle, verbs.StateIdle, both},
		{idle, verbs.StateError, nil},
		{n.qp, verbs.StateRTS, both},
		{n.qp, verbs.StateClosing, nil},
		{n.qp, verbs.StateTerminate, nil},
		{n.qp, verbs.StateError, nil},
		{failed, verbs.StateIdle, nil},
		{sharing, verbs.StateIdle, append([]string{"ORD", "IRD", "WRs of the SQ"}, limits...)},
	} {
		for name, supply := range attribute {
			m := verbs.ModifyQP{Next: c.next}
			supply(&m)
			before := snapshot(t, c.qp)
			err := c.qp.Modify(m)
			after := snapshot(t, c.qp)
			if !slices.Contains(c.allowed, name) {
				assert.ErrorIs(t, err, verbs.ErrInvalidModifier, "%s, from %v to %v", name, before.State, c.next)
				assert.Equal(t, before, after, "%s, from %v to %v: nothing has changed", name, before.State, c.next)
				continue
			}
			assert.NoError(t, err, "%s, from %v to %v", name, before.State, c.next)
			supplied(&before, m)
			after.SendDepth, after.RecvDepth = atLeast(after.SendDepth, before.SendDepth), atLeast(after.RecvDepth, before.RecvDepth)
			assert.Equal(t, before, after, "%s, from %v to %v: it alone has changed", name, before.State, c.next)
		}
	}
	moves(t, n.endpoint(), w.b.endpoint())
	// On the way from Idle to RTS everything may come along.
	m := verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(5), IRD: ptr(6), SendDepth: ptr(33), RQLimit: ptr(4), ArmRQLimit: true, LastMessage: []byte("last")}
	m.Stream = &verbs.StreamConfig{Conn: x, Role: asResponder}
	want := snapshot(t, sharing)
	require.NoError(t, sharing.Modify(m))
	supplied(&want, m)
	want.State, want.Stream = verbs.StateRTS, true
	got := snapshot(t, sharing)
	got.SendDepth = atLeast(got.SendDepth, 33)
	assert.Equal(t, want, got)
	last := make([]byte, 4)
	require.NoError(t, second(io.ReadFull(y, last)))
	assert.Equal(t, "last", string(last))
}

// supplied changes what m supplies.
func supplied(a *qpSnapshot, m verbs.ModifyQP) {
	for at, v := range map[*int]*int{
		&a.ORD: m.ORD, &a.IRD: m.IRD, &a.SendDepth: m.SendDepth, &a.RecvDepth: m.RecvDepth, &a.RQLimit: m.RQLimit,
	} {
		if v != nil {
			*at = *v
		}
	}
	a.RQLimitArmed = a.RQLimitArmed || m.ArmRQLimit
}

// atLeast is want if got is no less: what is allocated may be more than was asked
// for.
func atLeast(got, want int) int {
	if got >= want {
		return want
	}
	return got
}

// modifyQPStreamMessage: the Stream Message Buffer goes out as it is, ahead of the
// first FPDU.
func modifyQPStreamMessage(t *conformance.T, n *host) {
	x, y := tcpPair(t)
	post(t, n.qp, verbs.Request{ID: 5, SGL: n.mr.SGL(0, 3)})
	stream := &verbs.StreamConfig{Conn: y, Role: asInitiator}
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: stream, LastMessage: []byte("switch now\n")}))
	told := attributes(t, n.qp).Stream
	assert.Equal(t, stream, told, "the LLP Stream")
	assert.Same(t, y, told.Conn, "the LLP Stream Handle")
	traced := t.Trace().Conn(x)
	last := make([]byte, len("switch now\n"))
	require.NoError(t, second(io.ReadFull(traced, last)))
	assert.Equal(t, "switch now\n", string(last))
	u := must(newRawEnd(traced, framing{}).Next())(t)
	assert.Equal(t, byte(opSend), u[1], "the first FPDU")
	completes(t, n.cq, verbs.Completion{ID: 5, QP: n.qp.ID(), Op: verbs.OpSend})
}

// modifyQPArmedAgain: arming a limit that is armed changes nothing, and it is told
// once.
func modifyQPArmedAgain(t *conformance.T, w *hostPair) {
	n := w.b
	s := n.newSRQ(verbs.SRQConfig{Depth: 8, Limit: 4})
	qp := n.newQP(verbs.QPConfig{SRQ: s, RQLimit: 1})
	for range 3 {
		require.NoError(t, qp.Modify(verbs.ModifyQP{ArmRQLimit: true}))
		require.NoError(t, s.Modify(verbs.ModifySRQ{Rearm: true}))
		assert.True(t, attributes(t, qp).RQLimitArmed)
		srqShows(t, s, verbs.SRQAttributes{Depth: 8, SGE: 4, Limit: 4, PD: n.pd.ID(), Armed: true})
	}
	connect(t, w.a.qp, qp)
	for id := range uint64(4) {
		postRecv(t, s, verbs.Recv{ID: id})
	}
	// The first message leaves three receives, one below the limit of the S-RQ.
	for id := range uint64(2) {
		run(t, w.a.qp, verbs.Request{ID: id}, verbs.StatusSuccess)
		completes(t, n.cq, verbs.Completion{ID: id, QP: qp.ID(), Op: verbs.OpRecv})
	}
	n.events.are(verbs.Event{ID: verbs.EventSRQLimit, SRQ: s.ID()})
	n.quiet()
}

func modifyQPORD(t *conformance.T, n *host) {
	for _, c := range []struct{ created, asked int }{{8, 2}, {2, 8}, {4, 4}} {
		qp := n.newQP(verbs.QPConfig{ORD: c.created}) // in Idle
		require.NoError(t, qp.Modify(verbs.ModifyQP{ORD: &c.asked}))
		got := attributes(t, qp).ORD
		require.LessOrEqual(t, got, c.asked)
		require.Positive(t, got)
		n.postReads(qp)
		n.outstanding(qp, rawPeer(t, qp, asInitiator), got)

		qp = n.newQP(verbs.QPConfig{ORD: c.created}) // in RTS
		p := rawPeer(t, qp, asInitiator)
		require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: &c.asked}))
		assert.Equal(t, got, attributes(t, qp).ORD)
		n.postReads(qp)
		n.outstanding(qp, p, got)
	}
	qp := n.newQP(verbs.QPConfig{ORD: 3})
	require.NoError(t, qp.Modify(verbs.ModifyQP{ORD: ptr(0)}))
	assert.Zero(t, attributes(t, qp).ORD)
	rawPeer(t, qp, asInitiator)
	run(t, qp, verbs.Request{ID: 1, Op: verbs.OpRead, Local: n.mr.SGE(0, 1)}, verbs.StatusZeroReadResources)
}

func modifyQPORDOfPool(t *conformance.T) {
	n := newHost(t, hostConfig{
		RNIC: verbs.Config{Limits: verbs.Limits{QPs: 6, SharedORD: 10}}, QP: verbs.QPConfig{ORD: 2},
	})
	other, none := n.newQP(verbs.QPConfig{ORD: 5}), n.newQP(verbs.QPConfig{NoReads: true})
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{ORD: ptr(9)}))
	assert.Equal(t, 5, attributes(t, n.qp).ORD, "all that the pool has")
	refuses(t, "from nothing, of an empty pool", verbs.ErrInsufficientResources,
		func() error { return none.Modify(verbs.ModifyQP{ORD: ptr(1)}) }, snapshotOf(t, none))
	n.postReads(n.qp)
	require.NoError(t, other.Modify(verbs.ModifyQP{ORD: ptr(1)}))
	require.NoError(t, none.Modify(verbs.ModifyQP{ORD: ptr(3)}))
	assert.Equal(t, 3, attributes(t, none).ORD)
	n.outstanding(n.qp, rawPeer(t, n.qp, asInitiator), 5)
	for _, ord := range []int{9, 0} {
		refuses(t, "to a state that is not next", verbs.ErrInvalidState,
			func() error { return none.Modify(verbs.ModifyQP{Next: verbs.StateClosing, ORD: &ord}) }, snapshotOf(t, none))
		require.NoError(t, other.Modify(verbs.ModifyQP{ORD: ptr(9)}))
		assert.Equal(t, 10-3, attributes(t, other).ORD, "what was refused took nothing from the pool and gave it nothing")
	}
	require.NoError(t, none.Modify(verbs.ModifyQP{ORD: ptr(0)}))
	assert.Zero(t, attributes(t, none).ORD)
}
