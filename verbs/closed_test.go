package verbs_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// everyVerb calls each verb once, with modifiers that would be accepted, by the
// name Type.Method.
func everyVerb(w *world) map[string]func() error {
	return map[string]func() error{
		"RNIC.Query":                    func() error { return second(w.nic.Query()) },
		"RNIC.AllocatePD":               func() error { return second(w.nic.AllocatePD()) },
		"RNIC.CreateCQ":                 func() error { return second(w.nic.CreateCQ(verbs.CQConfig{})) },
		"RNIC.CreateSRQ":                func() error { return second(w.nic.CreateSRQ(verbs.SRQConfig{PD: w.pd})) },
		"RNIC.CreateQP":                 func() error { return second(w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})) },
		"RNIC.AllocatePages":            func() error { return second(w.nic.AllocatePages(1, 4096)) },
		"RNIC.SetEventHandler":          func() error { return w.nic.SetEventHandler(nil) },
		"RNIC.AddCompletionHandler":     func() error { return second(w.nic.AddCompletionHandler(func(*verbs.CQ) {})) },
		"RNIC.CreateEndpoint":           func() error { return second(w.nic.CreateEndpoint(verbs.QPConfig{})) },
		"RNIC.ReplaceCompletionHandler": func() error { return w.nic.ReplaceCompletionHandler(w.handler, func(*verbs.CQ) {}) },
		"RNIC.RemoveCompletionHandler":  func() error { return w.nic.RemoveCompletionHandler(w.handler) },
		"PD.Register":                   func() error { return second(w.pd.Register(make([]byte, 1), verbs.LocalRead)) },
		"PD.RegisterRegion": func() error {
			return second(w.pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 1), Access: verbs.LocalRead}))
		},
		"PD.AllocateRegion": func() error { return second(w.pd.AllocateRegion(verbs.AllocateConfig{})) },
		"PD.AllocateWindow": func() error { return second(w.pd.AllocateWindow()) },
		"PD.Deallocate":     func() error { return w.pd.Deallocate() },
		"MR.Query":          func() error { return second(w.mr.Query()) },
		"MR.Reregister": func() error {
			return w.mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 1), Access: verbs.LocalRead})
		},
		"MR.RegisterShared": func() error {
			return second(w.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead}))
		},
		"MR.Deregister":    func() error { return w.mr.Deregister() },
		"MW.Query":         func() error { return second(w.mw.Query()) },
		"MW.Deallocate":    func() error { return w.mw.Deallocate() },
		"Pages.Deallocate": func() error { return w.pages.Deallocate() },
		"CQ.Query":         func() error { return second(w.cq.Query()) },
		"CQ.Resize":        func() error { return w.cq.Resize(7) },
		"CQ.PollOne":       func() error { return second(w.cq.PollOne()) },
		"CQ.Wait":          func() error { return second(w.cq.Wait(context.Background(), make([]verbs.Completion, 1))) },
		"CQ.WaitOne":       func() error { return second(w.cq.WaitOne(context.Background())) },
		"CQ.Notify":        func() error { return w.cq.Notify(verbs.NotifyNext) },
		"CQ.Arm":           func() error { return second(w.cq.Arm(verbs.NotifyNext)) },
		"CQ.WaitEvent":     func() error { return w.cq.WaitEvent(context.Background()) },
		"CQ.Destroy":       func() error { return w.cq.Destroy() },
		"SRQ.PostRecv":     func() error { return second(w.srq.PostRecv(verbs.Recv{})) },
		"SRQ.Query":        func() error { return second(w.srq.Query()) },
		"SRQ.Modify":       func() error { return w.srq.Modify(verbs.ModifySRQ{Rearm: true}) },
		"SRQ.Destroy":      func() error { return w.srq.Destroy() },
		"QP.PostSend":      func() error { return second(w.qp.PostSend(verbs.Request{})) },
		"QP.PostRecv":      func() error { return second(w.qp.PostRecv(verbs.Recv{})) },
		"QP.Query":         func() error { return second(w.qp.Query()) },
		"QP.Modify":        func() error { return w.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}) },
		"QP.User":          func() error { return second(w.qp.User()) },
		"QP.Destroy":       func() error { return w.qp.Destroy() },
	}
}

// notVerbs are the methods that look nothing up and cannot fail, or that are for
// every time: accessors, Close, Poll (which tells "none"), the waits for a stream
// and the provoked failures.
var notVerbs = "RNIC.Close RNIC.QP RNIC.CQ RNIC.SRQ PD.ID " +
	"MR.STag MR.WithKey MR.Base MR.Len MR.Bytes MR.SGE MR.SGL MR.All MR.Remote MR.Buffer MW.STag MW.BindRequest " +
	"Pages.Bytes Pages.Size Pages.Address Pages.Addresses Pages.List " +
	"CQ.ID CQ.Poll CQ.Events CQ.Wake CQ.User SRQ.ID SRQ.PD SRQ.User " +
	"RNIC.ID RNIC.Name RNIC.Stats CQ.Stats SRQ.Stats QP.Stats RNIC.QPs RNIC.CQs RNIC.SRQs " +
	"QP.ID QP.PD QP.SendCQ QP.RecvCQ QP.Context QP.State QP.Drain QP.Done QP.LLPStream"

// TestEveryVerbIsListed keeps everyVerb complete.
func TestEveryVerbIsListed(t *testing.T) {
	var want []string
	for _, v := range []any{
		&verbs.RNIC{}, &verbs.PD{}, &verbs.MR{}, &verbs.MW{}, &verbs.Pages{}, &verbs.CQ{}, &verbs.SRQ{}, &verbs.QP{},
	} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumMethod() {
			want = append(want, typ.Elem().Name()+"."+typ.Method(i).Name)
		}
	}
	have := strings.Fields(notVerbs)
	for name := range everyVerb(&world{}) {
		have = append(have, name)
	}
	assert.ElementsMatch(t, want, have)
}

// TestClosedRNIC: every verb on anything of a closed RNIC says so (9.2 to 9.4),
// also on what was destroyed before.
func TestClosedRNIC(t *testing.T) {
	for _, destroyed := range []bool{false, true} {
		w := newWorld(t, verbs.Config{})
		if destroyed {
			w.destroyAll()
		}
		require.NoError(t, w.nic.Close())
		for name, call := range everyVerb(w) {
			err := call()
			assert.ErrorIs(t, err, verbs.ErrInvalidRNIC, name)
			tellsAll(t, err)
		}
		assert.Zero(t, w.cq.Poll(make([]verbs.Completion, 1)))
		assert.Nil(t, w.nic.QP(w.qp.ID()))
	}
}

// destroyAll destroys everything, in the order of 5.1.1.2.
func (w *world) destroyAll() {
	for _, destroy := range []func() error{
		w.mw.Deallocate, w.mr.Deregister, w.qp.Destroy, w.sharing.Destroy, w.srq.Destroy, w.cq.Destroy, w.pd.Deallocate, w.pages.Deallocate,
	} {
		require.NoError(w.t, destroy())
	}
}

// TestDestroyedObjects: a handle that was destroyed is refused as such by every
// verb that takes it.
func TestDestroyedObjects(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	w.destroyAll()
	want := map[string]error{
		"PD": verbs.ErrInvalidPD, "MR": verbs.ErrInvalidSTag, "MW": verbs.ErrInvalidSTag, "CQ": verbs.ErrInvalidCQ,
		"SRQ": verbs.ErrInvalidSRQ, "QP": verbs.ErrInvalidQP, "Pages": verbs.ErrInvalidModifier,
	}
	for name, call := range everyVerb(w) {
		kind, _, _ := strings.Cut(name, ".")
		if kind != "RNIC" {
			err := call()
			assert.ErrorIs(t, err, want[kind], name)
			tellsAll(t, err)
		}
	}
	cq, err := w.nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	pd, err := w.nic.AllocatePD()
	require.NoError(t, err)
	good := verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}
	for _, c := range []struct {
		want   error
		change func(*verbs.QPConfig)
	}{
		{verbs.ErrInvalidPD, func(c *verbs.QPConfig) { c.PD = w.pd }},
		{verbs.ErrInvalidCQ, func(c *verbs.QPConfig) { c.SendCQ = w.cq }},
		{verbs.ErrInvalidCQ, func(c *verbs.QPConfig) { c.RecvCQ = w.cq }},
		{verbs.ErrInvalidSRQ, func(c *verbs.QPConfig) { c.SRQ = w.srq }},
	} {
		bad := good
		c.change(&bad)
		assert.ErrorIs(t, second(w.nic.CreateQP(bad)), c.want)
	}
	assert.ErrorIs(t, second(w.nic.CreateSRQ(verbs.SRQConfig{PD: w.pd})), verbs.ErrInvalidPD)
	require.NoError(t, pd.Deallocate(), "the refusals left nothing in it")
}
