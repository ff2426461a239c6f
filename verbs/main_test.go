package verbs_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const (
	localRights = verbs.LocalRead | verbs.LocalWrite
	allRights   = localRights | verbs.RemoteRead | verbs.RemoteWrite
)

// node is an RNIC with one of everything.
type node struct {
	nic *verbs.RNIC
	pd  *verbs.PD
	cq  *verbs.CQ
	qp  *verbs.QP
	mr  *verbs.MR
}

func newNode(t testing.TB, c verbs.QPConfig) *node { return newNodeOf(t, verbs.Config{}, c) }

func newNodeOf(t testing.TB, rnic verbs.Config, c verbs.QPConfig) *node {
	n := &node{}
	var err error
	n.nic, err = verbs.Open(rnic)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.nic.Close()) })
	n.pd, err = n.nic.AllocatePD()
	require.NoError(t, err)
	n.cq, err = n.nic.CreateCQ(verbs.CQConfig{Entries: 4096})
	require.NoError(t, err)
	n.qp = n.newQP(t, c)
	n.mr, err = n.pd.Register(make([]byte, 1<<20), allRights)
	require.NoError(t, err)
	return n
}

// newTuned is newNode with other thresholds of the data path.
func newTuned(t testing.TB, tuning qp.Tuning) *node {
	n := newNode(t, verbs.QPConfig{})
	verbs.Tune(n.nic, tuning)
	n.qp = n.newQP(t, verbs.QPConfig{})
	return n
}

func (n *node) newQP(t testing.TB, c verbs.QPConfig) *verbs.QP {
	c.PD, c.SendCQ, c.RecvCQ = n.pd, n.cq, n.cq
	if c.CloseTimeout == 0 {
		c.CloseTimeout = time.Minute // no test waits for it
	}
	qp, err := n.nic.CreateQP(c)
	require.NoError(t, err)
	return qp
}

// query is Query QP.
func query(t testing.TB, qp *verbs.QP) verbs.QPAttributes {
	a, err := qp.Query()
	require.NoError(t, err)
	return a
}

// waitOne waits for one completion, of any status.
func waitOne(t testing.TB, cq *verbs.CQ) verbs.Completion {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var c [1]verbs.Completion
	_, err := cq.Wait(ctx, c[:])
	require.NoError(t, err)
	return c[0]
}

// wait waits for k completions, all of them successes.
func (n *node) wait(t testing.TB, k int) []verbs.Completion {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got := make([]verbs.Completion, k)
	for have := 0; have < k; {
		m, err := n.cq.Wait(ctx, got[have:])
		require.NoError(t, err)
		have += m
	}
	for _, c := range got {
		require.Equal(t, verbs.StatusSuccess, c.Status, "%+v", c)
	}
	return got
}

// events makes a channel of n's asynchronous events.
func (n *node) events(t testing.TB) <-chan verbs.Event {
	events := make(chan verbs.Event, 100)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) { events <- e }))
	return events
}

func tcpConns(t testing.TB) (net.Conn, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err := l.Accept()
	require.NoError(t, err)
	return a, b
}

// start brings a queue pair to RTS.
func start(t testing.TB, qp *verbs.QP, c net.Conn, role mpa.Role, crc bool) {
	require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &verbs.StreamConfig{Conn: c, Role: role, CRC: crc}}))
}

// join connects two queue pairs over TCP; a is the Initiator.
func join(t testing.TB, a, b *verbs.QP, crc bool) {
	x, y := tcpConns(t)
	start(t, b, y, mpa.Responder, crc)
	start(t, a, x, mpa.Initiator, crc)
}
