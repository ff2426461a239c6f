package conformance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/inventory"
)

// stuck is a clean-up that does not end until it is let go.
func stuck(release <-chan struct{}) { <-release }

// A case whose clean-up hangs fails by name, and the run goes on and ends. What such a case opens while others run is
// not theirs, and what it never closes is nothing more to tell.
func TestCleanupHangs(t *testing.T) {
	for _, parallel := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			release, next, opened := make(chan struct{}), make(chan struct{}), make(chan struct{})
			all := []conformance.Case{
				{Name: "1/hangs", Need: conformance.NeedAPI, Run: func(t *conformance.T) {
					t.Cleanup(func() {
						<-next
						inventory.Open(nil, "box", "of the other", inventory.CounterFunc(func(inventory.Tell) {}))
						close(opened)
						stuck(release)
					})
					t.Part("a part that is over")
				}},
				{Name: "1/next", Need: conformance.NeedAPI, Run: func(t *conformance.T) {
					close(next)
					<-opened
				}},
			}
			results, err := conformance.Run(t.Context(), all, conformance.InProcess{},
				conformance.Options{Timeout: time.Second, Parallel: parallel})
			require.NoError(t, err)
			require.Len(t, results, 2)
			if parallel == 1 { // the next one begins when the first is given up
				assert.Equal(t, conformance.Fail, results[0].Verdict)
				assert.Regexp(t, `^its clean-up did not end within 1s: it is left to itself, in state "chan receive.*", in
  conformance_test\.TestCleanupHangs.*\(ending_test\.go:\d+\)
  conformance\.\(\*T\)\.cleanup \(ending\.go:\d+\)`, results[0].Detail)
			} else {
				assert.Regexp(t, `^its clean-up did not end within 1s: .*
  conformance_test\.stuck \(ending_test\.go:\d+\)`, results[0].Detail)
			}
			assert.Equal(t, conformance.Pass, results[1].Verdict, results[1].Detail)
			close(release)
			synctest.Wait()
		})
	}
}

// A case that does not notice that its time is up fails with the place that it is at.
func TestCaseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		results, err := conformance.Run(t.Context(), []conformance.Case{
			{Name: "1/hangs", Need: conformance.NeedAPI, Run: func(t *conformance.T) {
				t.Part("second part")
				stuck(release)
			}},
			{Name: "1/late", Need: conformance.NeedAPI, Run: func(t *conformance.T) { <-t.Context().Done() }},
		}, conformance.InProcess{}, conformance.Options{Timeout: time.Second})
		require.NoError(t, err)
		require.Len(t, results, 2)
		assert.Regexp(t, `^second part: not done within 1s: it is left to itself, in state "chan receive.*", in
  conformance_test\.stuck`, results[0].Detail)
		assert.Equal(t, "not done within 1s", results[1].Detail)
		close(release)
		synctest.Wait()
	})
}

// An object of which nobody can tell what it holds, as its lock is not given back, costs its case and not the run.
func TestCountHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		results, err := conformance.Run(t.Context(), []conformance.Case{
			{Name: "1/locked", Need: conformance.NeedAPI, Run: func(t *conformance.T) {
				inventory.Open(nil, "box", 1, inventory.CounterFunc(func(inventory.Tell) { stuck(release) })).Close()
			}},
			{Name: "1/next", Need: conformance.NeedAPI, Run: func(t *conformance.T) {
				o := inventory.Open(nil, "box", 2, inventory.CounterFunc(func(inventory.Tell) {}))
				t.Cleanup(o.Close)
			}},
		}, conformance.InProcess{}, conformance.Options{Timeout: time.Second})
		require.NoError(t, err)
		require.Len(t, results, 2)
		assert.Equal(t, conformance.Fail, results[0].Verdict)
		assert.Contains(t, results[0].Detail, "left behind: an object of it does not tell what it holds within 5.5s")
		assert.Equal(t, conformance.Pass, results[1].Verdict, results[1].Detail)
		close(release)
		synctest.Wait()
	})
}
