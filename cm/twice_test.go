package cm_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// TestAnswersAtOnce: of several answers to a Request at once one counts; the others leave the connection alone.
func TestAnswersAtOnce(t *testing.T) {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	defer l.Close()
	for range 20 {
		a, b, c := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
		connected := make(chan error, 1)
		go func() {
			_, err := cm.Dial(context.Background(), l.Addr().String(), a.qp, cm.Config{})
			connected <- err
		}()
		r, err := l.Accept(bounded(t))
		require.NoError(t, err)
		accept := func(h *host) func() error {
			return func() error {
				_, err := r.Accept(context.Background(), h.qp, cm.Config{})
				return err
			}
		}
		all := []func() error{accept(b), accept(c), func() error { return r.Reject(nil) }, func() error { return r.Reject(nil) }}
		errs, begin := make([]error, len(all)), make(chan struct{})
		var wg sync.WaitGroup
		for i, f := range all {
			wg.Go(func() { <-begin; errs[i] = f() })
		}
		close(begin)
		wg.Wait()
		good := 0
		for _, err := range errs {
			if err == nil {
				good++
			} else {
				assert.ErrorContains(t, err, "accepted or rejected already")
			}
		}
		assert.Equal(t, 1, good, "%v", errs)
		if err := <-connected; errs[0] == nil || errs[1] == nil {
			assert.NoError(t, err)
		} else {
			assert.ErrorAs(t, err, new(*cm.RejectedError))
		}
	}
}
