package qp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/wr"
)

// TestStatsAmidAnEnd: whoever asks while a session ends gets its counters whole, and races with nothing.
func TestStatsAmidAnEnd(t *testing.T) {
	for range 50 {
		r := newRig(t, setup{})
		r.postSend(wr.Request{})
		r.wait(r.scq, 1)
		var asking sync.WaitGroup
		for range 2 {
			asking.Go(func() {
				for r.q.State() == wr.StateRTS || r.q.State() == wr.StateTerminate {
					assert.EqualValues(t, 1, r.q.Stats().Out.Send.Messages)
				}
				assert.EqualValues(t, 1, r.q.Stats().Out.Send.Messages)
			})
		}
		peerResets(r)
		asking.Wait()
	}
}
