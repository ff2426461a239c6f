package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/lab/trace"
	"github.com/softrnic/softrnic/verbs"
)

// TestTraceOfRefusals: a post that is refused is in the trace with why, and so is an asynchronous event.
func TestTraceOfRefusals(t *testing.T) {
	ring := trace.NewRing(100)
	n := newNodeOf(t, verbs.Config{Trace: ring.Add}, verbs.QPConfig{})
	_, sends := n.qp.PostSend(verbs.Request{Op: verbs.OpRecv})
	require.ErrorIs(t, sends, verbs.ErrInvalidOp)
	_, recvs := n.qp.PostRecv(verbs.Recv{SGL: make([]verbs.SGE, 200)})
	require.ErrorIs(t, recvs, verbs.ErrInvalidSGLLength)
	fault.Provoke(n.cq)
	list, _ := ring.Records()
	var notes, events []string
	for _, r := range list {
		switch {
		case r.Kind == trace.Verb && r.Name == "Post":
			assert.Equal(t, n.qp.ID(), r.QP)
			notes = append(notes, r.Note)
		case r.Kind == trace.Notified:
			assert.Equal(t, n.cq.ID(), r.CQ)
			events = append(events, r.Name)
		}
	}
	assert.Equal(t, []string{sends.Error(), recvs.Error()}, notes)
	assert.Equal(t, []string{verbs.EventCQOperation.String()}, events)
}
