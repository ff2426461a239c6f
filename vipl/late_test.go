package vipl

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lateContext has a deadline that has passed, and ends when it is told.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

// Who dials may find the deadline passed before the context's own timer does (VA-9.4.4-M1).
func TestDialerTimesOutFirst(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	h := newHost(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) {
		time.AfterFunc(20*time.Millisecond, end)
		return nil, os.ErrDeadlineExceeded
	}})
	v := h.vi(ServiceUnreliable, nil, nil)
	_, err := v.ConnectRequest(lateContext{ctx}, nil, h.address("x"))
	require.ErrorIs(t, err, context.Canceled, "what the context ended with")
	require.NotErrorIs(t, err, ErrResource)
	require.Equal(t, StateIdle, state(t, v))
}
