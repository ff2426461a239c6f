package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// TestCreateQPRefusals: the results of Create QP (9.2.5.1).
func TestCreateQPRefusals(t *testing.T) {
	create := func(change func(*world, *verbs.QPConfig)) func(*world) error {
		return func(w *world) error {
			c := verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq}
			change(w, &c)
			return second(w.nic.CreateQP(c))
		}
	}
	set := func(change func(*verbs.QPConfig)) func(*world) error {
		return create(func(_ *world, c *verbs.QPConfig) { change(c) })
	}
	refuse(t, verbs.Config{}, []refusal{
		{"no PD", verbs.ErrInvalidPD, nil, set(func(c *verbs.QPConfig) { c.PD = nil })},
		{"no send CQ", verbs.ErrInvalidCQ, nil, set(func(c *verbs.QPConfig) { c.SendCQ = nil })},
		{"no receive CQ", verbs.ErrInvalidCQ, nil, set(func(c *verbs.QPConfig) { c.RecvCQ = nil })},
		{"PD of another RNIC", verbs.ErrInvalidPD, nil, create(func(w *world, c *verbs.QPConfig) { c.PD = newNode(w.t, verbs.QPConfig{}).pd })},
		{"CQ of another RNIC", verbs.ErrInvalidCQ, nil, create(func(w *world, c *verbs.QPConfig) { c.SendCQ = newNode(w.t, verbs.QPConfig{}).cq })},
		{"S-RQ of another RNIC", verbs.ErrInvalidSRQ, nil, create(func(w *world, c *verbs.QPConfig) { c.SRQ = newWorld(w.t, verbs.Config{}).srq })},
		{"send depth", verbs.ErrTooManyWR, nil, set(func(c *verbs.QPConfig) { c.SendDepth = small.WR + 1 })},
		{"receive depth", verbs.ErrTooManyWR, nil, set(func(c *verbs.QPConfig) { c.RecvDepth = small.WR + 1 })},
		{"negative depth", verbs.ErrInvalidModifier, nil, set(func(c *verbs.QPConfig) { c.RecvDepth = -1 })},
		{"negative ORD", verbs.ErrInvalidModifier, nil, set(func(c *verbs.QPConfig) { c.ORD = -1 })},
		{"send elements", verbs.ErrTooManySGE, nil, set(func(c *verbs.QPConfig) { c.SendSGE = small.SGE + 1 })},
		{"write elements", verbs.ErrTooManySGE, nil, set(func(c *verbs.QPConfig) { c.WriteSGE = small.WriteSGE + 1 })},
		{"receive elements", verbs.ErrTooManySGE, nil, set(func(c *verbs.QPConfig) { c.RecvSGE = small.SGE + 1 })},
		{"IRD", verbs.ErrIRDExceeded, nil, set(func(c *verbs.QPConfig) { c.IRD = small.IRD + 1 })},
		{"ORD", verbs.ErrORDExceeded, nil, set(func(c *verbs.QPConfig) { c.ORD = small.ORD + 1 })},
		{"RQ limit above the S-RQ's depth", verbs.ErrRQLimitRange, nil, create(func(w *world, c *verbs.QPConfig) { c.SRQ, c.RQLimit = w.srq, 9 })},
		{"negative RQ limit", verbs.ErrRQLimitRange, nil, create(func(w *world, c *verbs.QPConfig) { c.SRQ, c.RQLimit = w.srq, -1 })},
		{"RQ limit without S-RQ", verbs.ErrRQLimitRange, nil, set(func(c *verbs.QPConfig) { c.RQLimit = 1 })},
		{"an ID of 25 bits", verbs.ErrInvalidModifier, nil, set(func(c *verbs.QPConfig) { c.ID = 1 << 24 })},
		{
			"an ID in use", verbs.ErrInvalidModifier,
			func(w *world) { require.NoError(w.t, set(func(c *verbs.QPConfig) { c.ID = 7 })(w)) },
			set(func(c *verbs.QPConfig) { c.ID = 7 }),
		},
		{
			"all in use", verbs.ErrInsufficientResources,
			func(w *world) { require.NoError(w.t, set(func(*verbs.QPConfig) {})(w)) },
			set(func(*verbs.QPConfig) {}),
		},
	})
}

// TestQPIDOfTheProgram: a queue pair has the identifier that the program chose, and so
// have its completions; the RNIC's own choices go round it, and after Destroy it
// is free again.
func TestQPIDOfTheProgram(t *testing.T) {
	w := newWorld(t, verbs.Config{Limits: verbs.Limits{QPs: 64}})
	for _, id := range []verbs.QPID{1<<24 - 1, 0xc35007, 1<<24 - 1} {
		qp, err := w.nic.CreateQP(verbs.QPConfig{ID: id, PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})
		require.NoError(t, err)
		assert.Equal(t, id, qp.ID())
		assert.Equal(t, id, query(t, qp).ID)
		assert.Same(t, qp, w.nic.QP(id))
		require.NoError(t, second(qp.PostRecv(verbs.Recv{ID: 5})))
		require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
		c, err := w.cq.PollOne()
		require.NoError(t, err)
		assert.Equal(t, []any{id, uint64(5)}, []any{c.QP, c.ID})
		require.NoError(t, qp.Destroy())
		assert.Nil(t, w.nic.QP(id))
	}

	first, err := w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})
	require.NoError(t, err)
	for i := range verbs.QPID(8) { // those that the RNIC would choose next
		_, err = w.nic.CreateQP(verbs.QPConfig{ID: first.ID() + 1 + i, PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})
		require.NoError(t, err)
	}
	next, err := w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})
	require.NoError(t, err)
	assert.Equal(t, first.ID()+9, next.ID())
}

// TestQPDestroyGivesBack: a queue pair that was destroyed, or refused, holds
// nothing.
func TestQPDestroyGivesBack(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	c := verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, SRQ: w.srq}
	for range 3 {
		qp, err := w.nic.CreateQP(c)
		require.NoError(t, err)
		require.ErrorIs(t, second(w.nic.CreateQP(c)), verbs.ErrInsufficientResources)
		require.NoError(t, qp.Destroy())
	}
	w.destroyAll()
}

// TestQueryQP: every attribute of 9.2.5.2.
func TestQueryQP(t *testing.T) {
	w := newWorld(t, verbs.Config{Limits: verbs.Limits{WR: 1000, SGE: 16, WriteSGE: 9}})
	other, err := w.nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	create := func(c verbs.QPConfig) *verbs.QP {
		c.PD = w.pd
		qp, err := w.nic.CreateQP(c)
		require.NoError(t, err)
		return qp
	}
	qp := create(verbs.QPConfig{SendCQ: w.cq, RecvCQ: other})
	want := verbs.QPAttributes{ID: qp.ID(), PD: w.pd, SendCQ: w.cq, RecvCQ: other}
	want.State, want.SendDepth, want.RecvDepth = verbs.StateIdle, 64, 64
	want.SendSGE, want.WriteSGE, want.RecvSGE, want.IRD, want.ORD = 4, 4, 4, 16, 16
	assert.Equal(t, want, query(t, qp), "the defaults")
	assert.Same(t, w.pd, qp.PD())
	assert.Same(t, qp, w.nic.QP(qp.ID()))

	full := query(t, create(verbs.QPConfig{
		SendCQ: other, RecvCQ: w.cq, SRQ: w.srq, RQLimit: 3, SendDepth: 100, SendSGE: 12, WriteSGE: 7, IRD: 3, ORD: 5,
		NoInboundRead: true, NoInboundWrite: true, NoBind: true, Privileged: true, GracefulReceive: true, Extensions: true,
		ReadIntoLocal: true, PlacedWrites: true,
	}))
	assert.GreaterOrEqual(t, full.SendDepth, 100)
	full.SendDepth = 100
	want = verbs.QPAttributes{ID: full.ID, PD: w.pd, SendCQ: other, RecvCQ: w.cq, SRQ: w.srq}
	want.SendDepth, want.SendSGE, want.WriteSGE, want.IRD, want.ORD = 100, 12, 7, 3, 5
	want.NoInboundRead, want.NoInboundWrite, want.NoBind = true, true, true
	want.Privileged, want.GracefulReceive, want.Extensions, want.ReadIntoLocal = true, true, true, true
	want.PlacedWrites = true
	want.RQLimit, want.RQLimitArmed = 3, true
	assert.Equal(t, want, full)

	none := query(t, create(verbs.QPConfig{SendCQ: w.cq, RecvCQ: w.cq, NoReads: true, SendSGE: 12}))
	assert.Equal(t, []int{0, 0, 9}, []int{none.IRD, none.ORD, none.WriteSGE}, "no more than the RNIC has")

	// The LLP stream, outside of Idle; the Terminate Message, in Terminate and Error.
	a := newNode(t, verbs.QPConfig{})
	x, y := tcpConns(t)
	defer x.Close()
	stream := &verbs.Stream{Conn: y, Role: mpa.Initiator}
	require.NoError(t, a.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: stream}))
	got := query(t, a.qp).Stream
	assert.Equal(t, stream, got)
	assert.Same(t, stream.Conn, got.Conn)
	assert.Nil(t, query(t, a.qp).Terminate)
	require.NoError(t, a.qp.Modify(verbs.ModifyQP{Next: verbs.StateTerminate}))
	term := query(t, a.qp).Terminate
	require.NotNil(t, term)
	assert.True(t, term.Sent)
	require.NoError(t, a.qp.Destroy())
}

// TestZeroConfigsOfASmallRNIC: defaults are never more than the RNIC has.
func TestZeroConfigsOfASmallRNIC(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{
		WR: 1, SGE: 4, WriteSGE: 1, CQE: 1, SRQWR: 1, IRD: 1, ORD: 1, PBL: 1,
	}})
	require.NoError(t, err)
	defer nic.Close()
	pd, err := nic.AllocatePD()
	require.NoError(t, err)
	cq, err := nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	assert.Equal(t, 1, cq.Entries())
	srq, err := nic.CreateSRQ(verbs.SRQConfig{PD: pd})
	require.NoError(t, err)
	require.NoError(t, second(nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})))
	require.NoError(t, second(nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: srq})))
	require.NoError(t, second(pd.AllocateRegion(verbs.AllocateConfig{})))
}

// TestDestroyWithWindows: it is refused, and the queue pair goes on as it was
// (RV-6.1.4-M5).
func TestDestroyWithWindows(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	w.bind()
	before := w.snapshot()
	require.ErrorIs(t, w.qp.Destroy(), verbs.ErrWindowsBound)
	assert.Equal(t, before, w.snapshot())
	c := w.run(verbs.Request{Op: verbs.OpInvalidate, Invalidate: w.mw.STag(7)})
	require.Equal(t, verbs.StatusSuccess, c.Status, "it works")
	require.NoError(t, w.qp.Destroy())
}

// TestQPFail: Local QP Catastrophic Error of figure 24.
func TestQPFail(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{CloseTimeout: time.Minute}), newNode(t, verbs.QPConfig{})
	events := a.events(t)
	join(t, a.qp, b.qp, false)
	done := a.qp.Done()
	a.qp.Fail()
	assert.Equal(t, verbs.Event{ID: verbs.EventLocalQPCatastrophic, QP: a.qp.ID()}, bare(<-events))
	<-done
	assert.Equal(t, verbs.StateError, a.qp.State())
	assert.EqualValues(t, 0x0207, query(t, a.qp).Terminate.Code)
	<-b.qp.Done()
	assert.EqualValues(t, 0x0207, query(t, b.qp).Terminate.Code)
	require.NoError(t, a.qp.Destroy())
}
