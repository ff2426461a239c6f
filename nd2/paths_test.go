package nd2_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/nd2"
)

// path is one request, or one pair, of a kind, from post to result.
type path struct {
	name string
	run  func() error
}

// paths are requests of every kind between two connected sides. Contexts are pointers,
// which become an any without an allocation.
func paths(t testing.TB) []path {
	sh := shape{provider: nd2.Provider{CM: cm.Config{NoCRC: true}}}
	a, b := pair(t, sh)
	sh.srq = true
	c, d := newSide(t, shape{provider: sh.provider}), newSide(t, sh)
	join(t, c, d, 4)
	w, err := a.a.CreateMemoryWindow()
	require.NoError(t, err)
	ctx := t.Context() // the runs are many, and slow where polls do not receive
	var (
		results   [4]nd2.Result
		quiet     bool
		ours      = a.sge(0, 64)
		theirs    = b.sge(0, 64)
		several   = []nd2.SGE{a.sge(0, 8)[0], a.sge(64, 8)[0], a.sge(128, 8)[0]}
		at, token = b.at(4096), b.mr.GetRemoteToken()
		pooled    = d.sge(0, 64)
		other     = c.sge(0, 64)
	)
	// The peer may be left with its receive side to pollers (docs/decisions/0004), who
	// should not stop coming then.
	idle := func(s *side) {
		if n := s.in.GetResults(results[1:2]); n > 0 {
			t.Errorf("unexpected: %+v", results[1])
		}
	}
	reap := func(s *side, cq *nd2.CompletionQueue) error {
		for {
			if n := cq.GetResults(results[:1]); n == 1 {
				if r := &results[0]; r.Status != nd2.Success || r.RequestContext != any(s) {
					return fmt.Errorf("%+v", *r)
				}
				return nil
			}
			switch {
			case s == b:
				idle(a)
			case s == d:
				idle(c)
			case quiet:
				idle(b)
			}
			runtime.Gosched()
		}
	}
	first := func(list ...error) error {
		for _, err := range list {
			if err != nil {
				return err
			}
		}
		return nil
	}
	exchange := func(flags nd2.OpFlags) func() error {
		return func() error {
			err := first(b.qp.Receive(b, theirs), a.qp.Send(a, ours, flags))
			if err == nil && flags&nd2.OpFlagSilentSuccess == 0 {
				err = reap(a, a.out)
			}
			return first(err, reap(b, b.in))
		}
	}
	one := func(post func() error) func() error {
		return func() error {
			quiet = true // b has no result to come
			defer func() { quiet = false }()
			return first(post(), reap(a, a.out))
		}
	}
	const fence, inline, silent = nd2.OpFlagReadFence, nd2.OpFlagInline, nd2.OpFlagSilentSuccess
	return []path{
		{"send", exchange(0)},
		{"send silent", exchange(silent)},
		{"send inline", exchange(inline)},
		{"send fenced and solicited", exchange(fence | nd2.OpFlagSendAndSolicitEvent)},
		{"write", one(func() error { return a.qp.Write(a, several, at, token, 0) })},
		{"write inline", one(func() error { return a.qp.Write(a, several, at, token, inline) })},
		{"read", one(func() error { return a.qp.Read(a, ours, at, token, 0) })},
		{"read of three, fenced", one(func() error { return a.qp.Read(a, several, at, token, fence) })},
		{"bind and invalidate", func() error {
			return first(
				a.qp.Bind(a, a.mr, w, a.buf[:64], nd2.OpFlagAllowRead|fence), reap(a, a.out),
				a.qp.Invalidate(a, w, 0), reap(a, a.out))
		}},
		{"shared receive queue", func() error {
			return first(d.srq.Receive(d, pooled), c.qp.Send(c, other, silent), reap(d, d.in))
		}},
		{"wait", func() error {
			if err := first(b.qp.Receive(b, theirs), a.qp.Send(a, ours, silent)); err != nil {
				return err
			}
			_, err := b.in.Wait(ctx, results[:1])
			return first(err, results[0].Err())
		}},
	}
}
