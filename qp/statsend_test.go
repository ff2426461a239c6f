package qp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestStatsSendsOn: who posts while Stats has the side leaves the sending to it.
func TestStatsSendsOn(t *testing.T) {
	r := newRig(t, setup{})
	r.s.tx.mu.Lock()
	r.postSend(wr.Request{})
	r.s.tx.mu.Unlock()
	_ = r.q.Stats()
	assert.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
}

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
