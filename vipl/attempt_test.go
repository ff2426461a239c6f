package vipl

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// watchedLife is the life of a NIC that counts who is to be told of its end.
type watchedLife struct {
	context.Context
	done    chan struct{}
	watches int
}

func (w *watchedLife) Done() <-chan struct{} { return w.done }
func (w *watchedLife) Value(any) any         { return nil } // or it is taken for the one that it is made of

// AfterFunc is what the context package calls of a context that is none of its own.
func (w *watchedLife) AfterFunc(func()) (stop func() bool) {
	w.watches++
	return func() bool {
		w.watches--
		return true
	}
}

// TestAttemptIsForgotten: of an attempt that is over, the NIC keeps nothing until it is closed: whether it came to nothing
// by itself or was given up.
func TestAttemptIsForgotten(t *testing.T) {
	h := newHost(t, Config{})
	life := h.nic.life
	w := &watchedLife{Context: life, done: make(chan struct{})}
	h.nic.life = w
	defer func() { h.nic.life = life }()
	v := h.vi(ServiceUnreliable, nil, nil)
	for range 3 {
		a, err := v.begin(t.Context(), EventConnectRequest)
		require.NoError(t, err)
		require.Equal(t, 1, w.watches, "an attempt ends with its NIC")
		_, err = a.finish(nil, context.DeadlineExceeded)
		require.Error(t, err)
		require.Zero(t, w.watches, "it is over")
		_, err = v.begin(t.Context(), EventConnectRequest)
		require.NoError(t, err)
		require.NoError(t, v.Disconnect())
		require.Zero(t, w.watches, "it was given up")
	}
}
