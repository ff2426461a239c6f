package qp

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestDestroyWithWindows is refused and changes nothing while one is bound
// (RV-6.1.4-M5, M6).
func TestDestroyWithWindows(t *testing.T) {
	for _, state := range []wr.State{wr.StateRTS, wr.StateError} {
		r := newRig(t, setup{})
		b := r.goodBind()
		r.postSend(bindOf(1, b))
		require.Equal(t, ok(1), r.wait(r.scq, 1))
		if state == wr.StateError {
			require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
		}
		before := r.q.Query()
		require.ErrorIs(t, r.q.Destroy(), wr.ErrWindowsBound)
		require.Equal(t, before, r.q.Query())
		if state == wr.StateRTS {
			r.postSend(wr.Request{ID: 2})
			require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
			require.Equal(t, ok(2), r.wait(r.scq, 1))
			r.send(rawpeer.Write(uint32(b.Window), b.VA, filled(4)).Octets())
			r.postSend(invalidate(3, b.Window, 0))
			require.Equal(t, ok(3), r.wait(r.scq, 1))
		} else {
			require.NoError(t, r.tab.Deallocate(b.Window))
		}
		require.NoError(t, r.q.Destroy())
	}
}

// TestDestroyMeetsBind: whatever the order, no window is bound to a queue pair
// that was destroyed.
func TestDestroyMeetsBind(t *testing.T) {
	for range 50 {
		r := newRig(t, setup{})
		b := r.goodBind()
		var binder sync.WaitGroup
		binder.Go(func() {
			for {
				_, err := r.q.PostSend(bindOf(1, b), invalidate(2, b.Window, 0))
				switch {
				case errors.Is(err, wr.ErrQueueFull):
					r.all(r.scq)
				case err != nil:
					return // destroyed
				}
			}
		})
		for {
			err := r.q.Destroy()
			w, qerr := r.tab.QueryWindow(b.Window)
			require.NoError(t, qerr)
			if err == nil {
				require.False(t, w.Valid)
				break
			}
			require.ErrorIs(t, err, wr.ErrWindowsBound)
		}
		binder.Wait()
	}
}
