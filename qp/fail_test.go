package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestFailGlobalElsewhere than in RTS: as Fail (TestEveryTransition), without an
// event.
func TestFailGlobalElsewhere(t *testing.T) {
	for _, c := range []struct{ from, to wr.State }{
		{wr.StateIdle, wr.StateError}, {wr.StateClosing, wr.StateError}, {wr.StateTerminate, wr.StateTerminate}, {wr.StateError, wr.StateError},
	} {
		r := in(t, c.from, setup{})
		r.q.FailGlobal()
		require.Eventually(t, func() bool { return r.q.State() == c.to }, patience, time.Millisecond)
		if c.to == wr.StateError {
			<-r.q.Done()
			r.requireEvents()
			r.requireReusable()
		}
	}
}

// TestFailDestroyed does nothing.
func TestFailDestroyed(t *testing.T) {
	r := newIdleRig(t, setup{})
	r.postSend(wr.Request{ID: 1})
	require.NoError(t, r.q.Destroy())
	r.q.Fail()
	r.requireEvents()
	require.Empty(t, r.all(r.scq))
}
