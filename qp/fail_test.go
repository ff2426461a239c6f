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
	for _, c := range []struct{ from, to State }{
		{Idle, Error}, {Closing, Error}, {Terminate, Terminate}, {Error, Error},
	} {
		r := in(t, c.from, setup{})
		r.q.FailGlobal()
		require.Eventually(t, func() bool { return r.q.State() == c.to }, patience, time.Millisecond)
		if c.to == Error {
			<-r.q.Done()
			r.requireEvents()
			r.requireReusable()
		}
	}
}

// TestFailDestroyed does nothing.
func TestFailDestroyed(t *testing.T) {
	r := newIdleRig(t, setup{})
	r.postSend(wr.Send{ID: 1})
	require.NoError(t, r.q.Destroy())
	r.q.Fail()
	r.requireEvents()
	require.Empty(t, r.all(r.scq))
}
