package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestPostKeepsNothing changes the modifiers after the post (verbs draft 8.1.1:
// they are only looked at while it lasts).
func TestPostKeepsNothing(t *testing.T) {
	var c setup
	privileged(&c)
	r := newIdleRig(t, c)
	b, f := r.goodBind(), r.goodFast()
	window, region := b.Window, f.STag
	r.postSend(bindOf(1, b), fastOf(2, f))
	clear(f.Buffers.Addresses)
	*b, *f = wr.BindRequest{}, wr.FastRegisterRequest{}
	r.connect()
	require.Equal(t, ok(1, 2), r.wait(r.scq, 2))
	w, err := r.tab.QueryWindow(window)
	require.NoError(t, err)
	require.True(t, w.Valid)
	i, err := r.tab.QueryRegion(region)
	require.NoError(t, err)
	require.True(t, i.Valid)
	r.postSend(invalidate(3, window, 0))
	r.wait(r.scq, 1)
}

// TestMemoryIsNotProcessedInIdle (RV-6.2.1-M2).
func TestMemoryIsNotProcessedInIdle(t *testing.T) {
	r := newIdleRig(t, setup{})
	r.postSend(invalidate(1, r.full.stag, 0))
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
	require.Equal(t, flushed(1), r.all(r.scq))
	i, err := r.tab.QueryRegion(r.full.stag)
	require.NoError(t, err)
	require.True(t, i.Valid)
}

// TestUnsignaledMemoryOperations go through a short queue without a completion
// (verbs draft 8.2.1): their slots come free once they have completed.
func TestUnsignaledMemoryOperations(t *testing.T) {
	r := newRig(t, setup{depth: 4})
	b := r.goodBind()
	post := func(w wr.Request) {
		for w.Flags |= wr.Unsignaled; ; {
			_, err := r.q.PostSend(w)
			if err == nil {
				return
			}
			require.ErrorIs(t, err, wr.ErrQueueFull)
			require.NoError(t, r.q.Drain(t.Context()))
		}
	}
	for range 100 {
		post(bindOf(0, b))
		post(invalidate(0, b.Window, 0))
	}
	require.NoError(t, r.q.Drain(t.Context()))
	require.Zero(t, r.scq.Len())
	r.postSend(bindOf(1, b), invalidate(2, b.Window, 0), bindOf(3, b), invalidate(4, b.Window, 0))
	require.Equal(t, ok(1, 2, 3, 4), r.wait(r.scq, 4))
	r.postSend(bindOf(5, b), invalidate(6, b.Window, 0), bindOf(7, b), invalidate(8, b.Window, 0))
	_, err := r.q.PostSend(wr.Request{})
	require.ErrorIs(t, err, wr.ErrQueueFull, "none is reaped")
	require.Equal(t, ok(5, 6, 7, 8), r.wait(r.scq, 4))
}

// TestManyMemoryOperations fills a queue that is deeper than what one turn runs.
func TestManyMemoryOperations(t *testing.T) {
	r := newIdleRig(t, setup{depth: 8 * maxMemory, cqe: 8 * maxMemory})
	b := r.goodBind()
	want := []comp{}
	turns := 0
	for id := range uint64(4 * maxMemory) {
		r.postSend(bindOf(2*id, b), invalidate(2*id+1, b.Window, 0))
		want = append(want, ok(2*id, 2*id+1)...)
	}
	r.connect()
	require.Equal(t, want, r.wait(r.scq, len(want)))
	r.s.tx.mu.Lock()
	for id := range uint64(2 * maxMemory) {
		r.postSend(bindOf(2*id, b), invalidate(2*id+1, b.Window, 0))
	}
	for r.s.tx.pump(inlineBudget) {
		turns++
	}
	r.s.tx.mu.Unlock()
	require.Equal(t, 4, turns, "a poster does so much for others")
	require.Equal(t, want[:4*maxMemory], r.wait(r.scq, 4*maxMemory))
}

// TestMemoryPostRefusals are the Immediate Errors of the memory operations, flags
// and lists: nothing is queued (verbs draft 8.2.1, 9.3.1.1).
func TestMemoryPostRefusals(t *testing.T) {
	r := newIdleRig(t, setup{depth: 32, config: func(c *Config) { c.SendSGE, c.WriteSGE = 255, 2 }})
	good, fast := *r.goodBind(), *r.goodFast()
	spoilBind := func(f func(*wr.BindRequest)) wr.Request { b := good; f(&b); return bindOf(0, &b) }
	spoilFast := func(f func(*wr.FastRegisterRequest)) wr.Request { b := fast; f(&b); return fastOf(0, &b) }
	for name, c := range map[string]struct {
		bad  wr.Request
		want wr.ImmediateError
	}{
		"no Bind":                 {wr.Request{Op: wr.OpBind}, wr.ErrInvalidModifier},
		"window zero":             {spoilBind(func(b *wr.BindRequest) { b.Window = 0 }), wr.ErrInvalidModifier},
		"window zero with a key":  {spoilBind(func(b *wr.BindRequest) { b.Window = 9 }), wr.ErrInvalidModifier},
		"region zero":             {spoilBind(func(b *wr.BindRequest) { b.Region = 0 }), wr.ErrInvalidModifier},
		"no addressing":           {spoilBind(func(b *wr.BindRequest) { b.Addressing = 2 }), wr.ErrInvalidModifier},
		"no FastRegister":         {wr.Request{Op: wr.OpFastRegister}, wr.ErrInvalidModifier},
		"Fast-Register zero":      {spoilFast(func(f *wr.FastRegisterRequest) { f.STag = 3 }), wr.ErrInvalidModifier},
		"no addressing, again":    {spoilFast(func(f *wr.FastRegisterRequest) { f.Addressing = 2 }), wr.ErrInvalidModifier},
		"Invalidate zero":         {wr.Request{Op: wr.OpInvalidate}, wr.ErrInvalidModifier},
		"Invalidate zero, a key":  {wr.Request{Op: wr.OpInvalidate, Invalidate: 0xFF}, wr.ErrInvalidModifier},
		"unknown flag":            {wr.Request{Flags: 8}, wr.ErrInvalidModifier},
		"unknown flag on a Read":  {wr.Request{Op: wr.OpRead, Flags: 128}, wr.ErrInvalidModifier},
		"Send, 256 elements":      {wr.Request{SGL: make([]wr.SGE, 256)}, wr.ErrInvalidSGLLength},
		"Write, 3 elements":       {wr.Request{Op: wr.OpWrite, SGL: make([]wr.SGE, 3)}, wr.ErrInvalidSGLLength},
		"Receive on a Send Queue": {wr.Request{Op: wr.OpRecv}, wr.ErrInvalidOp},
	} {
		before := r.q.sq.tail.Load()
		n, err := r.q.PostSend(wr.Request{}, c.bad, wr.Request{})
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, 1, n, name)
		require.Equal(t, before+1, r.q.sq.tail.Load(), name)
	}
	for _, w := range []wr.Request{ // not looked at: modifiers of other operations
		{Op: wr.OpRead, SGL: make([]wr.SGE, 300)}, {Op: wr.OpBind, Bind: &good, SGL: make([]wr.SGE, 300)},
	} {
		r.postSend(w)
	}
}

// TestLongestList gathers 255 elements into one Send, and two into a Write.
func TestLongestList(t *testing.T) {
	r := newRig(t, setup{config: func(c *Config) { c.SendSGE, c.WriteSGE = 255, 2 }})
	list := make([]wr.SGE, 255)
	want := make([]byte, 255)
	for i := range list {
		list[i] = r.full.sge(3*i, 1)
		want[i] = r.full.mem()[3*i]
	}
	r.postSend(wr.Request{ID: 1, SGL: list}, wr.Request{ID: 2, Op: wr.OpWrite, SGL: list[:2], Remote: wr.Remote{STag: 5, TO: 6}})
	require.Equal(t, rawpeer.Send(1, want).Octets(), r.next())
	require.Equal(t, rawpeer.Write(5, 6, want[:2]).Octets(), r.next())
	require.Equal(t, ok(1, 2), r.wait(r.scq, 2))
}
