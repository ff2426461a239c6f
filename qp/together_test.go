package qp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/trace"
	"github.com/softrnic/softrnic/wr"
)

// TestStateRecordNamesTrigger: without a stream, too, a record of a change of state names what caused it: the verb, or a
// failure of the queue pair's own.
func TestStateRecordNamesTrigger(t *testing.T) {
	for want, change := range map[string]func(q *QP){
		trigModifyError.String(): func(q *QP) { require.NoError(t, q.Modify(Modify{Next: wr.StateError})) },
		trigFault.String():       (*QP).Fail,
	} {
		var got []string
		r := newIdleRig(t, setup{config: func(c *Config) {
			c.Trace = func(e trace.Record) {
				if e.Kind == trace.State {
					got = append(got, e.Name+": "+e.From.String()+" -> "+e.Next.String())
				}
			}
		}})
		change(r.q)
		assert.Equal(t, []string{want + ": Idle -> Error"}, got)
	}
}

// TestPostedTogether: no request of a list can be sent, and no receive taken, before all of the list is
// posted, whoever has a side of the stream at this moment. The trace looks between them.
func TestPostedTogether(t *testing.T) {
	var r *rig
	var seen []uint64
	r = newRig(t, setup{config: func(c *Config) {
		c.Trace = func(e trace.Record) {
			if e.Kind == trace.Posted && r != nil {
				seen = append(seen, r.q.sq.tail.Load(), r.q.rq.tail.Load())
			}
		}
	}})
	r.postRecv(make([]wr.Recv, 3)...)
	assert.Equal(t, make([]uint64, 6), seen)
	seen = nil
	r.postSend(make([]wr.Request, 3)...)
	assert.Equal(t, []uint64{0, 3, 0, 3, 0, 3}, seen)
	require.Len(t, r.wait(r.scq, 3), 3)
	s := r.q.Stats()
	assert.Equal(t, []uint64{3, 3, 3, 3}, []uint64{s.SendsPosted, s.SendQueue.Most, s.RecvsPosted, s.RecvQueue.Most})

	seen = nil
	n, err := r.q.PostSend(wr.Request{}, wr.Request{Op: 99})
	require.ErrorIs(t, err, wr.ErrInvalidOp)
	require.Equal(t, 1, n)
	assert.Equal(t, []uint64{3, 3}, seen)
	require.Len(t, r.wait(r.scq, 1), 1)
}
