package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/verbs"
)

// TestSRQDefaults: zero stands for these.
func TestSRQDefaults(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	s, err := w.nic.CreateSRQ(verbs.SRQConfig{PD: w.pd})
	require.NoError(t, err)
	a, err := s.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.SRQAttributes{Depth: 64, SGE: 4, PD: w.pd.ID()}, a)
}

// TestSRQStalled: a peer that begins a message and does not go on is told of by an event that
// names its queue pair, and gives the receive back (6.3); others go on.
func TestSRQStalled(t *testing.T) {
	server := newNode(t, verbs.QPConfig{})
	events := server.events(t)
	srq, err := server.nic.CreateSRQ(verbs.SRQConfig{PD: server.pd, Depth: 1, StallTimeout: 50 * time.Millisecond})
	require.NoError(t, err)
	var qps [2]*verbs.QP
	for i := range qps {
		qps[i], err = server.nic.CreateQP(verbs.QPConfig{PD: server.pd, SendCQ: server.cq, RecvCQ: server.cq, SRQ: srq})
		require.NoError(t, err)
	}
	client := newNode(t, verbs.QPConfig{})
	join(t, client.qp, qps[0], false)
	x, y := tcpConns(t)
	start(t, qps[1], y, mpa.Responder, false)
	peer := rawpeer.New(x, rawpeer.Options{})
	defer peer.Close()

	post := func() error { return second(srq.PostRecv(verbs.Recv{SGL: server.mr.SGL(0, 100)})) }
	require.NoError(t, post())
	require.NoError(t, peer.Send(rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, Payload: []byte("hoard")}.Octets()))
	assert.Equal(t, verbs.Event{ID: verbs.EventSRQStalled, QP: qps[1].ID()}, bare(<-events))
	c := waitOne(t, server.cq)
	assert.Equal(t, []any{qps[1].ID(), verbs.StatusFlushed}, []any{c.QP, c.Status})
	require.NoError(t, post(), "the slot is free again")
	require.NoError(t, second(client.qp.PostSend(verbs.Request{})))
	assert.Equal(t, qps[0].ID(), server.wait(t, 1)[0].QP)
}
