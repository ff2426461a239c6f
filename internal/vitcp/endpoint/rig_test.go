package endpoint_test

import (
	"net"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// until waits for a condition that another goroutine brings about.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, patience, time.Millisecond, what)
}

const testPD wr.PDID = 7

// told is one call of a Handler.
type told struct {
	kind   string // send, receive, event, ended
	result endpoint.Result
	event  endpoint.Event
	cause  endpoint.Cause
	err    error
}

// recorder is a Handler that keeps what it is told.
type recorder struct {
	calls chan told
	hook  func(told) // called before it is kept, if not nil
}

func newRecorder() *recorder { return &recorder{calls: make(chan told, 1<<10)} }

func (r *recorder) put(c told) {
	if r.hook != nil {
		r.hook(c)
	}
	r.calls <- c
}

func (r *recorder) SendDone(res *endpoint.Result)    { r.put(told{kind: "send", result: *res}) }
func (r *recorder) ReceiveDone(res *endpoint.Result) { r.put(told{kind: "receive", result: *res}) }
func (r *recorder) Event(e endpoint.Event)           { r.put(told{kind: "event", event: e}) }
func (r *recorder) Ended(e *endpoint.EndError) {
	r.put(told{kind: "ended", cause: e.Cause, err: e.Err})
}

// side is an endpoint with its memory.
type side struct {
	*endpoint.Endpoint
	*recorder
	t     testing.TB
	table *stag.Table
}

// memory is a registered region.
type memory struct {
	buf    []byte
	addr   uint64
	handle wr.STag
}

const allRights = wr.LocalRead | wr.LocalWrite | wr.RemoteRead | wr.RemoteWrite

func (s *side) register(n int, a wr.Access) *memory { return register(s.t, s.table, n, a) }

func register(t testing.TB, table *stag.Table, n int, a wr.Access) *memory {
	t.Helper()
	buf := make([]byte, n)
	info, err := table.Register(stag.RegionConfig{PD: testPD, Memory: buf, Access: a})
	require.NoError(t, err)
	return &memory{buf, uint64(uintptr(unsafe.Pointer(&buf[0]))), info.STag}
}

// span is the n octets from off on.
func (m *memory) span(off, n int) endpoint.Span {
	return endpoint.Span{Addr: m.addr + uint64(off), Handle: m.handle, Length: uint32(n)}
}

func (m *memory) all() []endpoint.Span { return []endpoint.Span{m.span(0, len(m.buf))} }

// newSide makes an endpoint and does not start it.
func newSide(t testing.TB, conn net.Conn, c endpoint.Config) *side {
	t.Helper()
	s := &side{recorder: newRecorder(), t: t, table: stag.NewTable(stag.Config{})}
	c.STags, c.User, c.Handler = s.table, stag.User{PD: testPD}, s.recorder
	if c.MTU == 0 {
		c.MTU = 1 << 20
	}
	c.AllowRead, c.AllowWrite = true, true
	e, err := endpoint.New(conn, c)
	require.NoError(t, err)
	s.Endpoint = e
	t.Cleanup(e.Close)
	return s
}

// next is the next call of the Handler.
func (s *side) next() told {
	s.t.Helper()
	select {
	case c := <-s.calls:
		return c
	case <-time.After(patience):
		require.FailNow(s.t, "the handler was not called")
		return told{}
	}
}

// expect is next, of a kind.
func (s *side) expect(kind string) told {
	s.t.Helper()
	c := s.next()
	require.Equal(s.t, kind, c.kind, "%+v", c)
	return c
}

// ended expects the end for a cause; endedBy returns what was said of it.
func (s *side) ended(cause endpoint.Cause) {
	s.t.Helper()
	_ = s.endedBy(cause)
}

func (s *side) endedBy(cause endpoint.Cause) error {
	s.t.Helper()
	c := s.expect("ended")
	require.Equal(s.t, cause, c.cause, "%v", c.err)
	return c.err
}

// drained waits for the end of the endpoint and expects that nothing more was told.
func (s *side) drained() {
	s.t.Helper()
	select {
	case <-s.Done():
	case <-time.After(patience):
		require.FailNow(s.t, "the endpoint does not end")
	}
	select {
	case c := <-s.calls:
		require.FailNow(s.t, "told too much", "%+v", c)
	default:
	}
}

// result is a result without what it belongs to.
func result(op endpoint.Op, f endpoint.Flaws, n int) endpoint.Result {
	return endpoint.Result{Op: op, Flaws: f, Length: uint32(n)}
}

func (s *side) sent(op endpoint.Op, f endpoint.Flaws, n int) {
	s.t.Helper()
	require.Equal(s.t, result(op, f, n), s.expect("send").result)
}

func (s *side) received(op endpoint.Op, f endpoint.Flaws, n int) {
	s.t.Helper()
	require.Equal(s.t, result(op, f, n), s.expect("receive").result)
}

func (s *side) send(spans ...endpoint.Span) {
	s.t.Helper()
	require.NoError(s.t, s.PostSend(&endpoint.Request{Op: endpoint.OpSend, Spans: spans}))
}

func (s *side) recv(spans ...endpoint.Span) {
	s.t.Helper()
	require.NoError(s.t, s.PostReceive(&endpoint.Receive{Spans: spans}))
}

// transport makes the two ends of a connection.
type transport struct {
	name string
	make func(testing.TB) (net.Conn, net.Conn)
}

var transports = []transport{{"pipe", pipe}, {"tcp", loopback}, {"wrapped tcp", wrapped}}

func pipe(testing.TB) (net.Conn, net.Conn) { return net.Pipe() }

func loopback(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var a net.Conn
	var wg sync.WaitGroup
	wg.Go(func() { a, err = net.Dial("tcp", l.Addr().String()) })
	b, err2 := l.Accept()
	wg.Wait()
	require.NoError(t, err)
	require.NoError(t, err2)
	return a, b
}

// hidden is a TCP connection that does not look like one, as TLS does not.
type hidden struct{ net.Conn }

func (h hidden) CloseWrite() error { return h.Conn.(*net.TCPConn).CloseWrite() }

func wrapped(t testing.TB) (net.Conn, net.Conn) {
	a, b := loopback(t)
	return hidden{a}, hidden{b}
}

// newPair makes two endpoints that agree, and does not start them. Their messages begin with
// 101 and 201, unless c says otherwise.
func newPair(t testing.TB, tr transport, c endpoint.Config) (a, b *side) {
	t.Helper()
	x, y := tr.make(t)
	if c.OutboundReads == 0 {
		c.OutboundReads, c.InboundReads = 4, 4
	}
	if c.Number == 0 {
		c.Number, c.PeerNumber = 100, 200
	}
	a = newSide(t, x, c)
	c.Number, c.PeerNumber = c.PeerNumber, c.Number
	b = newSide(t, y, c)
	return a, b
}

func startPair(t testing.TB, tr transport, c endpoint.Config) (a, b *side) {
	a, b = newPair(t, tr, c)
	a.Start()
	b.Start()
	return a, b
}
