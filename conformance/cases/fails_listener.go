package cases

import (
	"context"
	"net"
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// failsListener are requests that find no place at a listener, and its end.
var failsListener = []conformance.Case{
	apiCase("6.4.1/backlog-of-a-source", onHost(backlogOfSource), "R5042-6.4.1-M1"),
	apiCase("7.1.2/shutdown", onHost(shutdownOfListener), "R5044-7.1.2-M7"),
	apiCase("7.1.2/shutdown-cut-short", onHost(shutdownCutShort), "R5044-7.1.2-M7"),
}

// backlogOfSource fills a backlog: one source gets half of it, the next half of the rest, and what finds no place is
// rejected, until the program takes one.
func backlogOfSource(t *conformance.T, n *host) {
	told := make(chan error, 8)
	l := listens(t, cm.ListenConfig{Backlog: 4, OnStartupError: func(_ net.Addr, err error) { told <- err }})
	comes := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c := must(d.DialContext(t.Context(), "tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		speaks(t, c, from)
		return c
	}
	queued := func(k int) { comesToHold(t, k, "cm listener: request in the backlog") }
	turnedAway := func(c net.Conn) {
		require.True(t, must(readStartup(c))(t, "the Reply").Reject)
		var why *cm.ConnectError
		err := receive(t, told, "the program is not told")
		require.ErrorAs(t, err, &why)
		require.ErrorIs(t, err, cm.ErrCrowded)
		require.Equal(t, []any{cm.Awaiting, cm.CauseCrowded, cm.StepBacklog}, []any{why.Doing, why.Cause, why.Step})
	}
	for i := range 2 {
		comes("127.0.0.1")
		queued(i + 1)
	}
	for range 3 {
		turnedAway(comes("127.0.0.1"))
	}
	if runtime.GOOS == "linux" { // elsewhere the loopback has one address
		comes("127.0.0.2")
		queued(3)
		turnedAway(comes("127.0.0.2"))
		nextIs(t, l, "127.0.0.1")
		nextIs(t, l, "127.0.0.1")
		nextIs(t, l, "127.0.0.2")
	} else {
		nextIs(t, l, "127.0.0.1")
		nextIs(t, l, "127.0.0.1")
	}
	comes("127.0.0.1")
	nextIs(t, l, "127.0.0.1")
	require.Empty(t, told)
	n.connects(l)
}

// asks has a queue pair of the host dial a listener. The channel has how that ended, once the connection has.
func (n *host) asks(l *cm.Listener) <-chan error {
	qp, answer := n.newQP(verbs.QPConfig{}), make(chan error, 1)
	go func() {
		c, err := cm.Dial(n.t.Context(), l.Addr().String(), qp, cm.Config{})
		if err == nil {
			<-c.Done()
		}
		answer <- err
	}()
	return answer
}

// shutdownOfListener shuts a listener down that has a Request in its backlog, one without an answer, and a connection: the
// first is rejected, and the others are waited for.
func shutdownOfListener(t *conformance.T, n *host) {
	l := listens(t, cm.ListenConfig{})
	connected := n.asks(l)
	conn := must(must(l.Accept(t.Context()))(t).Accept(t.Context(), n.newQP(verbs.QPConfig{}), cm.Config{}))(t)
	undecided := n.asks(l)
	req := must(l.Accept(t.Context()))(t)
	waits := n.asks(l)
	comesToHold(t, 1, "cm listener: request in the backlog")
	require.Equal(t, []int{1, 1}, []int{t.Held()["cm listener: request without an answer"], t.Held()["cm listener: connection"]})
	done := make(chan error, 1)
	go func() { done <- l.Shutdown(t.Context()) }()
	require.ErrorAs(t, receive(t, waits, "what waited for Accept is not rejected"), new(*cm.RejectedError))
	require.ErrorIs(t, second(l.Accept(t.Context())), net.ErrClosed)
	require.Empty(t, done, "a Request and a connection are left")
	require.NoError(t, req.Reject([]byte("late")))
	require.ErrorAs(t, receive(t, undecided, "it is not rejected"), new(*cm.RejectedError))
	comesToHold(t, 0, "cm listener: request without an answer")
	require.Empty(t, done, "a connection is left")
	require.NoError(t, conn.Abort())
	require.NoError(t, receive(t, done, "Shutdown waits on"))
	require.NoError(t, receive(t, connected, "the other end goes on"))
	require.NoError(t, l.Shutdown(t.Context()), "there is nothing left to wait for")
	require.NoError(t, l.Close())
}

// shutdownCutShort ends the context of a Shutdown that waits: what is left is ended, and a Request cannot be accepted any
// more.
func shutdownCutShort(t *conformance.T, n *host) {
	l := listens(t, cm.ListenConfig{})
	var ends []<-chan error
	for range 2 {
		ends = append(ends, n.asks(l))
		must(must(l.Accept(t.Context()))(t).Accept(t.Context(), n.newQP(verbs.QPConfig{}), cm.Config{}))(t)
	}
	undecided := n.asks(l)
	req := must(l.Accept(t.Context()))(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Shutdown(ctx) }()
	require.ErrorIs(t, second(l.Accept(t.Context())), net.ErrClosed)
	stop()
	require.ErrorIs(t, receive(t, done, "Shutdown waits on"), context.Canceled)
	for _, end := range ends {
		require.NoError(t, receive(t, end, "a connection goes on"))
	}
	require.Error(t, receive(t, undecided, "a Request waits on"))
	require.Error(t, second(req.Accept(t.Context(), n.qp, cm.Config{})))
	require.Equal(t, verbs.StateIdle, n.qp.State())
	comesToHold(t, 0, "cm listener: connection")
	require.NoError(t, l.Shutdown(t.Context()), "nothing is left")
}
