package verbs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// small are limits that a test reaches soon.
var small = verbs.Limits{
	PDs: 3, QPs: 3, WR: 64, SGE: 8, WriteSGE: 6, CQs: 2, CQE: 512, EventHandlers: 2,
	SRQs: 2, SRQWR: 64, Regions: 3, Windows: 2, PBL: 64, Physical: 1 << 20, IRD: 8, ORD: 8,
}

// world is an RNIC with one object of every kind, and a second queue pair that
// takes its receives from the S-RQ.
type world struct {
	t       testing.TB
	nic     *verbs.RNIC
	pd      *verbs.PD
	cq      *verbs.CQ
	srq     *verbs.SRQ
	qp      *verbs.QP
	sharing *verbs.QP
	mr      *verbs.MR
	mw      *verbs.MW
	pages   *verbs.Pages
	handler verbs.HandlerID
	peer    *node // of qp, once connect was called
}

func newWorld(t testing.TB, c verbs.Config) *world {
	if c.Limits == (verbs.Limits{}) {
		c.Limits = small
	}
	w := &world{t: t}
	var err error
	w.nic, err = verbs.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.nic.Close()) })
	w.pd, err = w.nic.AllocatePD()
	require.NoError(t, err)
	w.handler, err = w.nic.AddCompletionHandler(func(*verbs.CQ) {})
	require.NoError(t, err)
	w.cq, err = w.nic.CreateCQ(verbs.CQConfig{Handler: w.handler})
	require.NoError(t, err)
	w.qp, err = w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, SendDepth: 4, RecvDepth: 4, IRD: 2, ORD: 2})
	require.NoError(t, err)
	if c.Without&verbs.FeatureSRQ == 0 {
		w.srq, err = w.nic.CreateSRQ(verbs.SRQConfig{PD: w.pd, Depth: 8, Limit: 2})
		require.NoError(t, err)
		w.sharing, err = w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, SRQ: w.srq, IRD: 2, ORD: 2})
		require.NoError(t, err)
	}
	w.mr, err = w.pd.Register(make([]byte, 8192), allRights|verbs.BindWindow)
	require.NoError(t, err)
	w.mw, err = w.pd.AllocateWindow()
	require.NoError(t, err)
	w.pages, err = w.nic.AllocatePages(4, 4096)
	require.NoError(t, err)
	return w
}

// connect brings qp to RTS, with a queue pair of another RNIC as its peer. The
// peer is the Responder: it may send once something has come (RFC 5044 7.1.2).
func (w *world) connect() {
	w.peer = newNode(w.t, verbs.QPConfig{})
	join(w.t, w.qp, w.peer.qp, false)
	require.Equal(w.t, verbs.StatusSuccess, w.run(verbs.Request{Op: verbs.OpWrite}).Status)
}

// bare is an event without its reason, which is in words of our own.
func bare(e verbs.Event) verbs.Event {
	e.Why = nil
	return e
}

// run posts a request and waits for its completion.
func (w *world) run(req verbs.Request) verbs.Completion {
	_, err := w.qp.PostSend(req)
	require.NoError(w.t, err)
	return waitOne(w.t, w.cq)
}

// bind binds the window to all of the region.
func (w *world) bind() {
	w.connect()
	c := w.run(verbs.Request{Op: verbs.OpBind, Bind: w.mw.BindRequest(w.mr, 0, 8192, verbs.RemoteRead|verbs.RemoteWrite, 7)})
	require.Equal(w.t, verbs.StatusSuccess, c.Status)
}

// snapshot is everything that the Query verbs tell.
func (w *world) snapshot() map[string]string {
	s := map[string]string{}
	put := func(name string, v any, err error) { s[name] = fmt.Sprintf("%+v %v", v, err) }
	a, err := w.nic.Query()
	put("RNIC", a, err)
	c, err := w.cq.Query()
	put("CQ", c, err)
	for name, qp := range map[string]*verbs.QP{"QP": w.qp, "sharing": w.sharing} {
		if qp != nil {
			q, err := qp.Query()
			if q.Stream != nil {
				put(name+"'s stream", *q.Stream, nil)
				q.Stream = nil
			}
			put(name, q, err)
		}
	}
	if w.srq != nil {
		sa, err := w.srq.Query()
		put("SRQ", sa, err)
	}
	r, err := w.mr.Query()
	put("MR", r, err)
	m, err := w.mw.Query()
	put("MW", m, err)
	s["view"] = fmt.Sprintf("%v %d", w.mr.Buffer(), w.mr.Len())
	return s
}

// refusal is a verb that has to fail with an Immediate Error and to change
// nothing (RV-8.3.1-M1).
type refusal struct {
	name    string
	want    error
	prepare func(*world) // may be nil
	call    func(*world) error
}

func refuse(t *testing.T, c verbs.Config, list []refusal) {
	for _, r := range list {
		t.Run(r.name, func(t *testing.T) {
			w := newWorld(t, c)
			if r.prepare != nil {
				r.prepare(w)
			}
			before := w.snapshot()
			err := r.call(w)
			require.ErrorIs(t, err, r.want)
			if !errors.Is(r.want, verbs.ErrCQEmpty) { // which is an answer
				tellsAll(t, err)
			}
			assert.Equal(t, before, w.snapshot(), "nothing has changed")
		})
	}
}

// tellsAll checks that an Immediate Error has its reason: the verb, what was wrong, the rule, and what to do.
func tellsAll(t *testing.T, err error) {
	t.Helper()
	why := reason(t, err)
	t.Log(why)
	var code verbs.ImmediateError
	require.ErrorAs(t, why, &code)
	assert.NotEmpty(t, why.Operation, why)
	assert.NotEmpty(t, why.What+strings.TrimPrefix(why.Err.Error(), code.Error()), why)
	assert.NotEmpty(t, why.Rule, why)
	assert.NotEmpty(t, why.Remedy, why)
	assert.False(t, why.ByPeer, why)
}

func reason(t *testing.T, err error) *verbs.Reason {
	t.Helper()
	var why *verbs.Reason
	require.ErrorAs(t, err, &why)
	return why
}

func ptr[T any](v T) *T { return &v }

// second drops the first of two results.
func second[T any](_ T, err error) error { return err }
