package cases

import (
	"errors"
	"os"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// small are limits that a case reaches soon.
var small = verbs.Limits{
	PDs: 3, QPs: 4, WR: 64, SGE: 8, WriteSGE: 6, CQs: 2, CQE: 512, EventHandlers: 2,
	SRQs: 2, SRQWR: 32, Regions: 3, Windows: 2, PBL: 16, Physical: 1 << 20, IRD: 8, ORD: 8,
}

// estate is a node with objects of the other kinds too.
type estate struct {
	*node
	srq     *verbs.SRQ
	mw      *verbs.MW
	pages   *verbs.Pages
	handler verbs.HandlerID
}

func newEstate(t *conformance.T, c nodeConfig) *estate {
	e := &estate{node: newNode(t, c)}
	e.srq = e.newSRQ(verbs.SRQConfig{})
	e.mw = e.newMW()
	e.pages = e.node.pages(2, 4096)
	e.handler = must(e.nic.AddCompletionHandler(func(*verbs.CQ) {}))(t)
	return e
}

// verb is a call that would be accepted.
type verb struct {
	name string
	call func() error
}

// verbs are the verbs of 9.2 to 9.4, each on an object of the estate. Those that
// destroy come last.
func (e *estate) verbs() []verb {
	memory := verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead}
	return []verb{
		{"Query RNIC", func() error { return second(e.nic.Query()) }},
		{"Allocate PD", func() error { return second(e.nic.AllocatePD()) }},
		{"Create CQ", func() error { return second(e.nic.CreateCQ(verbs.CQConfig{})) }},
		{"Query CQ", func() error { return second(e.cq.Query()) }},
		{"Modify CQ", func() error { return e.cq.Resize(99) }},
		{"Create S-RQ", func() error { return second(e.nic.CreateSRQ(verbs.SRQConfig{PD: e.pd})) }},
		{"Query S-RQ", func() error { return second(e.srq.Query()) }},
		{"Modify S-RQ", func() error { return e.srq.Modify(verbs.ModifySRQ{Limit: ptr(1)}) }},
		{"Create QP", func() error { return second(e.nic.CreateQP(e.inNode(verbs.QPConfig{}))) }},
		{"Query QP", func() error { return second(e.qp.Query()) }},
		{"Modify QP", func() error { return e.qp.Modify(verbs.ModifyQP{ORD: ptr(1)}) }},
		{"Allocate STag", func() error { return second(e.pd.AllocateRegion(verbs.AllocateConfig{})) }},
		{"Register", func() error { return second(e.pd.RegisterRegion(memory)) }},
		{"Query Memory Region", func() error { return second(e.mr.Query()) }},
		{"Reregister", func() error { return e.mr.Reregister(nil, memory) }},
		{"Register Shared", func() error { return second(e.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})) }},
		{"Allocate Memory Window", func() error { return second(e.pd.AllocateWindow()) }},
		{"Query Memory Window", func() error { return second(e.mw.Query()) }},
		{"PostSQ", func() error { return second(e.qp.PostSend(verbs.Request{})) }},
		{"PostRQ", func() error { return second(e.qp.PostRecv(verbs.Recv{})) }},
		{"PostRQ to an S-RQ", func() error { return second(e.srq.PostRecv(verbs.Recv{})) }},
		{"Request Completion Notification", func() error { return e.cq.Notify(verbs.NotifyNext) }},
		{"Set Completion Event Handler", func() error { return e.nic.ReplaceCompletionHandler(e.handler, func(*verbs.CQ) {}) }},
		{"Set Asynchronous Event Handler", func() error { return e.nic.SetEventHandler(nil) }},
		{"AllocatePages", func() error { return second(e.nic.AllocatePages(1, 4096)) }},
		{"Free pages", e.pages.Deallocate},
		{"Deallocate the window's STag", e.mw.Deallocate},
		{"Deallocate the region's STag", e.mr.Deregister},
		{"Destroy QP", e.qp.Destroy},
		{"Destroy S-RQ", e.srq.Destroy},
		{"Destroy CQ", e.cq.Destroy},
		{"Deallocate PD", e.pd.Deallocate},
	}
}

// closed says that every verb on something of a closed RNIC is refused, and that
// there are no completions any more.
func (e *estate) closed() {
	for _, v := range e.verbs() {
		assert.ErrorIs(e.t, v.call(), verbs.ErrInvalidRNIC, v.name)
	}
	assert.ErrorIs(e.t, second(e.cq.PollOne()), verbs.ErrInvalidRNIC, "Poll CQ")
	assert.Zero(e.t, e.cq.Poll(make([]verbs.Completion, 1)), "Poll CQ")
}

// exhaust makes as many objects of every kind as an empty RNIC has, and says that
// one more of each is refused.
func exhaust(t *conformance.T, nic *verbs.RNIC, l verbs.Limits) {
	var (
		pd *verbs.PD
		cq *verbs.CQ
	)
	memory := make([]byte, 8)
	for _, k := range []struct {
		name  string
		limit int
		make  func() error
	}{
		{"PDs", l.PDs, func() error { return keep(&pd)(nic.AllocatePD()) }},
		{"CQs", l.CQs, func() error { return keep(&cq)(nic.CreateCQ(verbs.CQConfig{})) }},
		{"event handlers", l.EventHandlers, func() error { return second(nic.AddCompletionHandler(func(*verbs.CQ) {})) }},
		{"S-RQs", l.SRQs, func() error { return second(nic.CreateSRQ(verbs.SRQConfig{PD: pd})) }},
		{"QPs", l.QPs, func() error { return second(nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})) }},
		{"regions", l.Regions, func() error { return second(pd.Register(memory, verbs.LocalRead)) }},
		{"windows", l.Windows, func() error { return second(pd.AllocateWindow()) }},
		{"pages of memory", int(l.Physical / 4096), func() error { return second(nic.AllocatePages(1, 4096)) }},
	} {
		for i := range k.limit {
			require.NoError(t, k.make(), "%d of %d %s", i+1, k.limit, k.name)
		}
		require.ErrorIs(t, k.make(), verbs.ErrInsufficientResources, "more than %d %s", k.limit, k.name)
	}
}

// keep stores what a verb made, if it made something.
func keep[T any](at *T) func(T, error) error {
	return func(v T, err error) error {
		if err == nil {
			*at = v
		}
		return err
	}
}

// gone reads what a raw peer is still sent, up to the end of the stream.
func gone(t *conformance.T, p *rawEnd, what string) {
	for {
		_, err := p.Next()
		if err == nil {
			continue
		}
		require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "the stream of %s is still there", what)
		return
	}
}
