package cases

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// guardsConnect are the same of connecting: what comes in between, what is not kept behind it, and what programs are told.
var guardsConnect = []conformance.Case{
	apiCase("7.1.2/accepted-behind-shutdown", onHost(acceptedBehindShutdown), "R5044-7.1.2-M7"),
	apiCase("7.1.2/answered-meanwhile", onHost(answeredMeanwhile), "R5044-7.1.2-M7"),
	apiCase("7.1.2/contexts-of-a-startup", onHost(contextsOfAStartup), "R5044-7.1.2-M7"),
	apiCase("7.1.2/connect-refused-closes", onHost(connectRefusedCloses), "R5044-7.1.2-M7"),
	apiCase("6.2.2.2/close-by-default", closeByDefault, "RV-6.2.2.2-M5", "RV-6.2.5-M22"),
	apiCase("7.1.2/end-beside-the-reply", onHost(endBesideReply), "R5044-7.1.2-M7"),
	apiCase("9.1/depths-of-a-listener", onHost(depthsOfListener), "R6581-9.1-M8"),
	apiCase("7.1.2/time-for-a-startup", onHost(timeForStartup), "R5044-7.1.2-M2", "R5044-7.1.2-M5"),
	apiCase("7.1.2/who-is-connected", onHost(whoIsConnected), "R5044-7.1.2-M2"),
	apiCase("6.4.1/records-of-startups", recordsOfStartups, "R5042-6.4.1-M1"),
}

// heldConn is a connection whose Close does nothing until it may.
type heldConn struct {
	net.Conn
	may atomic.Bool
}

func (c *heldConn) Close() error {
	if !c.may.Load() {
		return nil
	}
	return c.Conn.Close()
}

// acceptedBehindShutdown accepts a Request when a Shutdown has given up what the listener had handed out: the connection
// that comes of it is none any more.
func acceptedBehindShutdown(t *conformance.T, n *host) {
	far, near := tcpPair(t)
	c := &heldConn{Conn: near}
	given := &pipeListener{must(net.Listen("tcp", "127.0.0.1:0"))(t), make(chan net.Conn, 1)}
	given.conns <- c
	l := cm.NewListener(given, cm.ListenConfig{Timeout: hour})
	t.Cleanup(func() { _ = l.Close() })
	speaks(t, far, "late")
	req := must(l.Accept(t.Context()))(t)
	over, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, l.Shutdown(over), context.Canceled)
	c.may.Store(true)
	conn, err := req.Accept(t.Context(), n.qp, cm.Config{})
	require.Nil(t, conn)
	require.ErrorIs(t, err, net.ErrClosed)
	var why *cm.ConnectError
	require.ErrorAs(t, err, &why)
	require.Equal(t, []any{cm.Accepting, cm.CauseCanceled, cm.StepQP}, []any{why.Doing, why.Cause, why.Step}, "%v", err)
	ends(t, n.qp, verbs.StateError)
	released(t, c)
	require.Zero(t, t.Held()["cm listener: connection"])
}

// answeringContext has something happen when it is asked whether it has ended.
type answeringContext struct {
	context.Context
	meanwhile func()
}

func (c answeringContext) Err() error {
	c.meanwhile()
	return c.Context.Err()
}

// answeredMeanwhile has a Request be rejected while its Accept is about to send the Reply: the first answer counts, and no
// attempt has failed.
func answeredMeanwhile(t *conformance.T, n *host) {
	l := listens(t, cm.ListenConfig{})
	asked := n.asks(l)
	req := must(l.Accept(t.Context()))(t)
	before := n.nic.Stats()
	conn, err := req.Accept(answeringContext{t.Context(), func() { require.NoError(t, req.Reject([]byte("first"))) }}, n.qp, cm.Config{})
	require.Nil(t, conn)
	require.Error(t, err)
	require.NotErrorAs(t, err, new(*cm.ConnectError), "it has been answered: there is nothing that failed")
	var refused *cm.RejectedError
	require.ErrorAs(t, receive(t, asked, "Dial does not end"), &refused)
	require.Equal(t, "first", string(refused.PrivateData))
	require.Equal(t, verbs.StateIdle, n.qp.State())
	require.Equal(t, before.ConnectsFailed, n.nic.Stats().ConnectsFailed)
	require.Zero(t, t.Held()["cm listener: request without an answer"])
}

// contextsOfAStartup connects with contexts that live on: none has anything to tell when the connection stands, is
// refused or was given up.
func contextsOfAStartup(t *conformance.T, n *host) {
	watch := func() *watched { return &watched{Context: t.Context(), done: make(chan struct{})} }
	for reject := range inTurn(t, "rejected: %v", []bool{false, true}) {
		asks, hears, accepts := watch(), watch(), watch()
		x, y := tcpPair(t)
		dialled := make(chan *cm.Conn, 1)
		go func() {
			c, err := cm.Connect(asks, x, n.newQP(verbs.QPConfig{}), cm.Config{})
			if (err != nil) != reject {
				t.Errorf("Connect: %v", err)
			}
			dialled <- c
		}()
		req := must(cm.Await(hears, y, cm.Config{}))(t)
		require.Zero(t, hears.watches.Load(), "the context of Await")
		eventually(t, func() bool { return asks.watches.Load() == 1 }, "Connect waits for the Reply, or for the end of its context")
		if reject {
			require.NoError(t, req.Reject(nil))
		} else {
			conn := must(req.Accept(accepts, n.newQP(verbs.QPConfig{}), cm.Config{}))(t)
			require.Zero(t, accepts.watches.Load(), "the context of Accept")
			closes := watch()
			_ = conn.CloseContext(closes) // a bad close, if the first FPDU is under way
			require.Zero(t, closes.watches.Load(), "the context of CloseContext")
		}
		receive(t, dialled, "Connect does not end")
		require.Zero(t, asks.watches.Load(), "the context of Connect")
	}
	t.Part("shut down")
	l, shuts := listens(t, cm.ListenConfig{}), watch()
	waits := n.asks(l)
	comesToHold(t, 1, "cm listener: request in the backlog")
	require.NoError(t, l.Shutdown(shuts))
	require.ErrorAs(t, receive(t, waits, "what waited for Accept is not rejected"), new(*cm.RejectedError))
	require.Zero(t, shuts.watches.Load(), "the context of Shutdown")
}

// lastReadConn ends a context when the last octet of a Reply has come, and hands that on behind the deadline that comes
// of it.
type lastReadConn struct {
	net.Conn
	left int // octets of the Reply
	stop context.CancelFunc
	past chan struct{} // closed by the first deadline
	once sync.Once
}

func (c *lastReadConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.left -= n; n > 0 && c.left == 0 {
		c.stop()
		<-c.past
	}
	return n, err
}

func (c *lastReadConn) SetDeadline(d time.Time) error {
	err := c.Conn.SetDeadline(d)
	c.once.Do(func() { close(c.past) })
	return err
}

// endBesideReply has the context end as the last octet of a rejecting Reply comes: the connection is the program's again,
// and nothing of the context is left on it.
func endBesideReply(t *conformance.T, n *host) {
	far, near := tcpPair(t)
	reply := startup{Reply: true, CRC: true, Reject: true, Rev: 2, PrivateData: []byte("no")}.octets()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &lastReadConn{Conn: near, left: len(reply), stop: stop, past: make(chan struct{})}
	require.NoError(t, second(far.Write(append(reply, "text"...))))
	require.ErrorAs(t, second(cm.Connect(ctx, c, n.qp, cm.Config{})), new(*cm.RejectedError))
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	text := make([]byte, 4)
	require.NoError(t, second(io.ReadFull(near, text)), "the program's own reading")
	require.Equal(t, "text", string(text))
	require.NoError(t, second(near.Write(text)), "the program's own writing")
}

// connectRefusedCloses connects over a connection of the program's with settings that cannot be: it is closed.
func connectRefusedCloses(t *conformance.T, n *host) {
	for _, c := range named(t, "%s", map[string]cm.Config{
		"too much private data":                   {PrivateData: make([]byte, 509)},
		"too much private data beside an offer":   {Extensions: true, PrivateData: make([]byte, 501)},
		"a Read to be ready with, and no Reads":   {RTR: cm.RTRRead, ORD: verbs.None},
		"peer-to-peer mode of revision 1":         {Rev: 1, Model: cm.PeerToPeer},
		"a revision that there is not, and words": {Rev: 3, PrivateData: []byte("text")},
	}) {
		far, near := tcpPair(t)
		require.Error(t, second(cm.Connect(t.Context(), near, n.qp, c)))
		require.NoError(t, far.SetReadDeadline(time.Now().Add(patience(t))))
		require.ErrorIs(t, second(far.Read(make([]byte, 1))), io.EOF, "the connection stays open, or the peer was sent something")
		runtime.KeepAlive(near) // or the garbage collector closes it
	}
}

// closeByDefault closes a connection whose program has said nothing of how long that may take, while an RDMA Read is not
// answered: that is waited for.
func closeByDefault(t *conformance.T) {
	l := newIdleLink(t, verbs.QPConfig{})
	w, y := byHand(t)
	connected := make(chan *cm.Conn, 1)
	go func() {
		c, err := cm.Connect(t.Context(), y, l.qp, cm.Config{Rev: 1})
		if err != nil {
			t.Errorf("Connect: %v", err)
		}
		connected <- c
	}()
	w.frame()
	w.raw(replyFrame(frameC, 1, nil))
	conn := receive(t, connected, "Connect does not end")
	require.NotNil(t, conn)
	post(t, l.qp, l.aRead(1))
	w.expect(l.asks(1))
	id, closed := make(chan string, 1), make(chan error, 1)
	go func() {
		id <- thisGoroutine()
		closed <- conn.Close()
	}()
	who := <-id
	eventually(t, func() bool { return stateOf(who) == "select" || len(closed) > 0 }, "Close waits for the answer")
	_ = w.Send(l.answer()) // to a connection that is there, if it has not taken 5 s so far
	_ = w.CloseWrite()
	if err := receive(t, closed, "Close does not end"); err != nil {
		require.ErrorContains(t, err, "CloseTimeout is 5s")
	}
}

// depthsOfListener: what a listener's Reject states is what the listener was told to state, in the revision that it was
// told to speak.
func depthsOfListener(t *conformance.T, n *host) {
	for rev := range inTurn(t, "revision %d", []uint8{1, 2}) {
		l := listens(t, cm.ListenConfig{Rev: rev, IRD: 3, ORD: 9})
		far := must(net.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = far.Close() })
		frame := startup{CRC: true, Rev: 2, Enhanced: rev == 2, IRD: 4, ORD: 4}
		require.NoError(t, second(far.Write(frame.octets())))
		require.NoError(t, must(l.Accept(t.Context()))(t).Reject(nil))
		reply := must(readStartup(far))(t, "the Reply")
		require.Equal(t, []any{true, rev, rev == 2}, []any{reply.Reject, reply.Rev, reply.Enhanced})
		if rev == 2 {
			require.Equal(t, []uint16{3, 9}, []uint16{reply.IRD, reply.ORD}, "IRD and ORD of the Reply")
		}
	}
}

// timeForStartup connects with a peer that says nothing: it is given up when the time that the program gave is over,
// and not that of who gave none.
func timeForStartup(t *conformance.T, n *host) {
	const byDefault = 10 * time.Second
	for what, begin := range named(t, "%s", map[string]func(far, near net.Conn) error{
		"Connect": func(_, near net.Conn) error {
			return second(cm.Connect(t.Context(), near, n.qp, cm.Config{Timeout: shortly}))
		},
		"Await": func(_, near net.Conn) error { return second(cm.Await(t.Context(), near, cm.Config{Timeout: shortly})) },
		"a listener": func(far, near net.Conn) error {
			given, told := &pipeListener{must(net.Listen("tcp", "127.0.0.1:0"))(t), make(chan net.Conn, 1)}, make(chan error, 1)
			given.conns <- near
			l := cm.NewListener(given, cm.ListenConfig{Timeout: shortly, OnStartupError: func(_ net.Addr, err error) { told <- err }})
			defer func() { _ = l.Close() }()
			return receive(t, told, "the program is not told")
		},
	}) {
		far, near := tcpPair(t)
		at := time.Now()
		err := begin(far, near)
		require.Less(t, time.Since(at), byDefault, "%s gives up", what)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorAs(t, err, new(*cm.TimeoutError))
	}
}

// whoIsConnected looks at what a Request and both ends of a connection say of it: the queue pairs, and the addresses.
func whoIsConnected(t *conformance.T, n *host) {
	l, qps := listens(t, cm.ListenConfig{}), [2]*verbs.QP{n.newQP(verbs.QPConfig{}), n.newQP(verbs.QPConfig{})}
	x := must(net.Dial("tcp", l.Addr().String()))(t)
	client, server := x.LocalAddr().String(), x.RemoteAddr().String()
	dialled := make(chan *cm.Conn, 1)
	go func() {
		c, err := cm.Connect(t.Context(), x, qps[0], cm.Config{})
		if err != nil {
			t.Errorf("Connect: %v", err)
		}
		dialled <- c
	}()
	req := must(l.Accept(t.Context()))(t)
	require.Equal(t, []string{server, client}, []string{req.LocalAddr().String(), req.RemoteAddr().String()}, "of the Request")
	b := must(req.Accept(t.Context(), qps[1], cm.Config{}))(t)
	a := receive(t, dialled, "Connect does not end")
	require.NotNil(t, a)
	require.Equal(t, []string{client, server}, []string{a.LocalAddr().String(), a.RemoteAddr().String()}, "of the Initiator")
	require.Equal(t, []string{server, client}, []string{b.LocalAddr().String(), b.RemoteAddr().String()}, "of the Responder")
	require.Same(t, qps[0], a.QP())
	require.Same(t, qps[1], b.QP())
	require.NoError(t, a.Abort())
	receive(t, b.Done(), "the other end goes on")
	require.Error(t, b.Err())
	require.Contains(t, b.Err().Error(), client, "whose connection it was")
}

// logged is what a logger has written.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer // guarded by mu
}

func (w *logged) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(b)
}

func (w *logged) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Split(strings.TrimSuffix(w.all.String(), "\n"), "\n")
}

// recordsOfStartups has a listener write down what came to nothing; and has a logger of that kind be asked for more
// records than it may write in a second: ten, and the next one says how many were left out.
func recordsOfStartups(t *conformance.T) {
	t.Part("a listener")
	w, told := &logged{}, make(chan error, 2)
	given := &faultyListener{must(net.Listen("tcp", "127.0.0.1:0"))(t), 1}
	l := cm.NewListener(given, cm.ListenConfig{
		Logger: slog.New(slog.NewTextHandler(w, nil)), OnStartupError: func(_ net.Addr, err error) { told <- err },
	})
	t.Cleanup(func() { _ = l.Close() })
	require.Error(t, receive(t, told, "the program is not told"))
	c := must(net.Dial("tcp", l.Addr().String()))(t)
	require.NoError(t, second(c.Write([]byte("this is no MPA Request at all"))))
	var why *cm.ConnectError
	require.ErrorAs(t, receive(t, told, "the program is not told"), &why)
	lines := w.lines()
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "accepting a connection failed")
	require.Contains(t, lines[1], fmt.Sprintf("remote=%v", c.LocalAddr()))
	require.Contains(t, lines[1], strings.Trim(fmt.Sprintf("%q", why.Sentence()), `"`))
	require.NoError(t, c.Close())

	t.Part("ten a second")
	const most = 10
	w, begin := &logged{}, time.Now()
	log := cm.LimitLogger(slog.New(slog.NewTextHandler(w, nil)))
	kinds := []*slog.Logger{log, log.With("a", 1), log.WithGroup("b")} // they share the rate
	asked := 0
	ask := func() {
		kinds[asked%len(kinds)].Warn("text")
		asked++
	}
	for range most {
		ask()
	}
	require.Len(t, w.lines(), most, "the first ones")
	require.NotContains(t, strings.Join(w.lines(), "\n"), "left_out")
	require.Contains(t, w.lines()[1], "a=1")
	eventually(t, func() bool {
		ask()
		return len(w.lines()) > most
	}, "another record")
	if left := asked - most - 1; left > 0 {
		require.Contains(t, w.lines()[most]+"\n", fmt.Sprintf("left_out=%d\n", left))
	}
	require.GreaterOrEqual(t, time.Since(begin), time.Second, "an eleventh record")
	ask()
	require.NotContains(t, w.lines()[most+1], "left_out", "they have been told of")
	cm.LimitLogger(nil).Warn("to nobody")
}
