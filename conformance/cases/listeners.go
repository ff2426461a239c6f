package cases

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/vipl"
)

// listeners are cases of many connections at one listener: its places, their order, and what one that failed leaves to
// those behind it.
var listeners = []conformance.Case{
	apiCase("6.4.1/accepted-leaves-its-place", onHost(acceptedLeaves), "R5042-6.4.1-M1"),
	apiCase("6.4.1/oldest-goes", onHost(oldestGoes), "R5042-6.4.1-M1"),
	apiCase("6.4.1/errors-of-accept", onHost(errorsOfAccept), "R5042-6.4.1-M1"),
	apiCase("9.3/accept-that-fails-closes", onHost(failedAcceptCloses), "R6581-9.3-M1"),
	apiCase("9.3/await-refused-closes", awaitRefusedCloses, "R6581-9.3-M1"),
	apiCase("7.1.2/order-of-connections", orderOfConnections, "R5044-7.1.2-M2"),
	apiCase("7.1.2/mute-first-connection", muteFirstConnection, "R5044-7.1.2-M2"),
	apiCase("7.1.2/mute-connections-around", muteConnectionsAround, "R5044-7.1.2-M2"),
	apiCase("4.1/vi-found-leaves-its-place", viFoundLeaves, "VA-4.1-M1"),
	apiCase("7.1.2/nd-connect-again", ndConnectAgain, "R5044-7.1.2-M7"),
}

// listens is a listener, which ends with the case.
func listens(t *conformance.T, c cm.ListenConfig) *cm.Listener {
	l := must(cm.Listen("127.0.0.1:0", c))(t, "Listen")
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// knocks makes a TCP connection to a listener that has held places of them before, and returns when it has one.
func knocks(t *conformance.T, l *cm.Listener, held int) net.Conn {
	var d net.Dialer
	c := must(d.DialContext(t.Context(), "tcp", l.Addr().String()))(t, "a TCP connection to the listener")
	t.Cleanup(func() { _ = c.Close() })
	comesToHold(t, held+1, "admission listener: place")
	return c
}

// speaks sends an MPA Request, with a name as its private data.
func speaks(t *conformance.T, c net.Conn, name string) {
	require.NoError(t, second(c.Write(requestFrame(frameC, 1, []byte(name)))), "the MPA Request")
}

// caller is who has sent the next MPA Request, which is rejected.
func caller(ctx context.Context, t *conformance.T, l *cm.Listener) (name string, err error) {
	req, err := l.Accept(ctx)
	if err != nil {
		return "", err
	}
	require.NoError(t, req.Reject(nil), "Reject")
	return string(req.PrivateData()), nil
}

// nextIs says who is next.
func nextIs(t *conformance.T, l *cm.Listener, want string) {
	ctx, stop := context.WithTimeout(t.Context(), patience(t))
	defer stop()
	name, err := caller(ctx, t, l)
	require.NoError(t, err, "waiting for the MPA Request of %q", want)
	require.Equal(t, want, name, "whose MPA Request is next")
}

// connects has a queue pair of the host connect to another one at a listener, and both go. One that is turned away
// fails the case at once.
func (n *host) connects(l *cm.Listener) {
	t := n.t
	limit, end := context.WithTimeout(t.Context(), patience(t))
	defer end()
	ctx, stop := context.WithCancelCause(limit)
	qp, dialled := n.newQP(verbs.QPConfig{}), make(chan *cm.Conn, 1)
	go func() {
		c, err := cm.Dial(ctx, l.Addr().String(), qp, cm.Config{})
		if err != nil {
			stop(err)
		}
		dialled <- c
	}()
	req, err := l.Accept(ctx)
	require.NoError(t, errors.Join(context.Cause(ctx), err), "a connection that there is a place for")
	accepted := must(req.Accept(ctx, n.newQP(verbs.QPConfig{}), cm.Config{}))(t, "Accept")
	conn := receive(t, dialled, "Dial does not end")
	require.NotNil(t, conn, "Dial: %v", context.Cause(ctx))
	require.NoError(t, conn.Abort())
	receive(t, accepted.Done(), "the other end of the connection does not end")
	stop(nil)
}

// acceptedLeaves has more connections than a backlog holds come one after the other: each has left when the program has
// it.
func acceptedLeaves(t *conformance.T, n *host) {
	l := listens(t, cm.ListenConfig{Backlog: 2})
	for range counted(t, "connection %d", 5) {
		n.connects(l)
	}
}

// oldestGoes has as many mute connections as there may be, and one that speaks: the oldest goes for it, and the other
// may speak still.
func oldestGoes(t *conformance.T, n *host) {
	l := listens(t, cm.ListenConfig{MaxStartups: 2, Timeout: hour})
	oldest, other := knocks(t, l, 0), knocks(t, l, 1)
	n.connects(l)
	require.NoError(t, oldest.SetReadDeadline(time.Now().Add(patience(t))))
	require.True(t, ended(second(oldest.Read(make([]byte, 1)))), "the oldest connection ends")
	speaks(t, other, "other")
	nextIs(t, l, "other")
}

// faultyListener fails Accept as often as it says, for connections that have gone already.
type faultyListener struct {
	net.Listener
	fails int // the accepting goroutine's
}

func (l *faultyListener) Accept() (net.Conn, error) {
	if l.fails == 0 {
		return l.Listener.Accept()
	}
	l.fails--
	// accept(2), and that of Windows Sockets
	return nil, either(runtime.GOOS == "windows", syscall.Errno(10053), syscall.ECONNABORTED)
}

// errorsOfAccept has more connections fail in accepting than the listener has room for: it goes on, and has room for
// the next.
func errorsOfAccept(t *conformance.T, n *host) {
	const fails = 16
	told := make(chan error, fails+1)
	l := cm.NewListener(&faultyListener{must(net.Listen("tcp", "127.0.0.1:0"))(t), fails}, cm.ListenConfig{
		MaxStartups: 1, Backlog: 1, OnStartupError: func(_ net.Addr, err error) { told <- err },
	})
	t.Cleanup(func() { _ = l.Close() })
	for range fails {
		require.Error(t, receive(t, told, "the program is not told of each error"))
	}
	n.connects(l)
	require.Empty(t, told, "an error too many")
}

// failedAcceptCloses accepts with private data that no MPA Reply has room for: the Responder sends nothing, and closes.
func failedAcceptCloses(t *conformance.T, n *host) {
	l := listens(t, cm.ListenConfig{})
	c := knocks(t, l, 0)
	speaks(t, c, "caller")
	qp := n.newQP(verbs.QPConfig{})
	req := must(l.Accept(t.Context()))(t, "Accept")
	require.Error(t, second(req.Accept(t.Context(), qp, cm.Config{PrivateData: make([]byte, 600)})))
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience(t))))
	require.ErrorIs(t, second(c.Read(make([]byte, 1))), io.EOF, "the connection stays open")
	runtime.KeepAlive(req) // or the garbage collector closes it
	require.Equal(t, verbs.StateIdle, attributes(t, qp).State, "the queue pair's state")
}

// awaitRefusedCloses awaits an MPA Request with settings that MPA has not: the connection is closed.
func awaitRefusedCloses(t *conformance.T) {
	for c := range inTurn(t, "%+v", []cm.Config{{Rev: 3}, {IRD: 1 << 15}, {ORD: 1 << 15}}) {
		far, near := tcpPair(t)
		require.Error(t, second(cm.Await(t.Context(), near, c)))
		require.NoError(t, far.SetReadDeadline(time.Now().Add(patience(t))))
		require.ErrorIs(t, second(far.Read(make([]byte, 1))), io.EOF, "the connection stays open")
	}
}

// inOrder is how long an MPA Request waits for those of earlier connections (cm.ListenConfig.InOrder).
const inOrder = 100 * time.Millisecond

// orderOfConnections has the later of two connections speak first: the program gets to know of it behind the earlier.
// Of a round in which the listener may have waited for long enough nothing is said.
func orderOfConnections(t *conformance.T) {
	l := listens(t, cm.ListenConfig{InOrder: true, Timeout: hour})
	for told := 0; told < 4; {
		earlier, later := knocks(t, l, 0), knocks(t, l, 1)
		begin := time.Now()
		soon, stop := context.WithTimeout(t.Context(), inOrder/4)
		speaks(t, later, "later")
		first, err := caller(soon, t, l)
		stop()
		speaks(t, earlier, "earlier")
		if err != nil {
			first, err = caller(t.Context(), t, l)
			require.NoError(t, err, "the first of two MPA Requests, in round %d", told)
		}
		if time.Since(begin) < inOrder {
			require.Equal(t, "earlier", first, "whose MPA Request is first, in round %d", told)
			told++
		}
		nextIs(t, l, either(first == "earlier", "later", "earlier"))
	}
}

// muteFirstConnection has others speak behind a connection that does not: they are held up for a while only. It may
// speak in the end.
func muteFirstConnection(t *conformance.T) {
	l := listens(t, cm.ListenConfig{InOrder: true, Timeout: hour})
	mute := knocks(t, l, 0)
	for _, name := range []string{"second", "third", "fourth"} {
		speaks(t, knocks(t, l, 1), name)
		nextIs(t, l, name)
	}
	speaks(t, mute, "mute")
	nextIs(t, l, "mute")
}

// muteConnectionsAround has one speak behind a connection that does not, and before another: it is held up for a while
// only.
func muteConnectionsAround(t *conformance.T) {
	l := listens(t, cm.ListenConfig{InOrder: true, Timeout: hour})
	before, between, behind := knocks(t, l, 0), knocks(t, l, 1), knocks(t, l, 2)
	speaks(t, between, "between")
	nextIs(t, l, "between")
	speaks(t, behind, "behind")
	nextIs(t, l, "behind")
	speaks(t, before, "before")
	nextIs(t, l, "before")
}

// viFoundLeaves has more requests than a backlog of VI/TCP holds come one after the other, each before anybody waits
// for it: it has left when a wait has found it.
func viFoundLeaves(t *conformance.T) {
	l := must(vitcp.Listen("127.0.0.1:0", vitcp.ListenConfig{Backlog: 2, MatchTimeout: hour}))(t)
	t.Cleanup(func() { _ = l.Close() })
	ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
	for range counted(t, "request %d", 5) {
		var d net.Dialer
		p := newVIPeer(t, must(d.DialContext(t.Context(), "tcp", l.Addr().String()))(t))
		p.asks(ce)
		comesToHold(t, 1, "vitcp listener: request in Matching")
		r := must(l.Wait(t.Context(), vitcp.Filter{Called: "server"}))(t, "Wait")
		require.Zero(t, t.Held()["admission listener: place"], "what a Wait has found has left its place")
		agreed := must(r.Accept(t.Context(), vitcp.Config{Level: segment.ReliableDelivery}))(t, "Accept")
		p.accepted(ce)
		require.NoError(t, agreed.Conn.Close())
		p.over()
	}
}

// ndConnectAgain has requests of a queue pair be rejected, and one be accepted then: connector and queue pair are as
// they were.
func ndConnectAgain(t *conformance.T) {
	h, peer := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	l, at := peer.listener()
	for range counted(t, "request %d", 2) {
		server := nd2.Overlap(t.Context(), func(ctx context.Context) error {
			c, err := peer.adapter.CreateConnector()
			if err == nil {
				err = l.GetConnectionRequest(ctx, c)
			}
			if err == nil {
				err = c.Reject(nil)
			}
			return err
		})
		require.ErrorIs(t, h.conn.Connect(t.Context(), h.qp, at, 0, 0, nil), nd2.ErrConnectionRefused, "Connect")
		require.NoError(t, server.GetOverlappedResult(true), "GetConnectionRequest and Reject")
	}
	connectND(h, peer, peer.qp, peer.conn)
	ndWorks(h, peer)
}
