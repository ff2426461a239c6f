package cases

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// liars is a target whose upper testers do as they are told, and answer with something else.
type liars struct {
	conformance.InProcess
	less bool // than there is; else more
}

func (l liars) Upper(ctx context.Context) (uppertester.Tester, error) {
	u, err := l.InProcess.Upper(ctx)
	return liar{u, l.less}, err
}

type liar struct {
	uppertester.Tester
	less bool
}

func (l liar) Poll(a uppertester.PollArgs, r *uppertester.Completions) error {
	a.Timeout = min(a.Timeout, shortWait)
	err := l.Tester.Poll(a, r)
	r.Completions = either(l.less, nil, append(r.Completions, verbs.Completion{ID: 1, Op: 255, Status: 255}))
	return err
}

func (l liar) Memory(region int, r *uppertester.Octets) error {
	err := l.Tester.Memory(region, r)
	r.Octets = either(l.less, nil, append(r.Octets, 0))
	return err
}

func (l liar) Events(a uppertester.EventsArgs, r *uppertester.Events) error {
	a.Timeout = min(a.Timeout, shortWait)
	err := l.Tester.Events(a, r)
	r.Events = either(l.less, nil, append(r.Events, verbs.Event{ID: 255, QP: 1 << 31}))
	return err
}

func (l liar) PostSend(a uppertester.PostSendArgs, r *uppertester.Posted) error {
	err := l.Tester.PostSend(a, r)
	r.N = either(l.less, r.N, math.MaxInt)
	return err
}

// Whatever an upper tester answers, a case ends, and by a verdict: nothing panics.
func TestLiars(t *testing.T) {
	t.Parallel()
	for _, less := range []bool{true, false} {
		o := conformance.Options{Timeout: 20 * time.Second, Seed: 5, Parallel: 8}
		o.Select.Run = liarsAsk()
		results, err := conformance.Run(t.Context(), All(), liars{less: less}, o)
		require.NoError(t, err)
		failed := 0
		for _, r := range results {
			assert.NotContains(t, r.Detail, "panic:", r.Case)
			if r.Verdict == conformance.Fail {
				failed++
			}
		}
		assert.Greater(t, failed, 100, "the lies are noticed")
	}
}

// liarsAsk are the cases with an upper tester.
func liarsAsk() (names []string) {
	for _, c := range All() {
		if c.Need == conformance.NeedUpper && !c.Strict {
			names = append(names, c.Name)
		}
	}
	return names
}
