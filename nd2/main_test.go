package nd2_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/nd2"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// bounded is a context that ends a test which hangs.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// shape is how a side's queue pair is made.
type shape struct {
	provider                              nd2.Provider
	depth, cqDepth, sge, inline, bufBytes int
	srq                                   bool
	flags                                 nd2.MRFlags
}

func (s shape) withDefaults() shape {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&s.depth, 16)
	set(&s.cqDepth, 64)
	set(&s.sge, 4)
	set(&s.inline, 256)
	set(&s.bufBytes, 1<<16)
	if s.provider.CM.CloseTimeout == 0 {
		s.provider.CM.CloseTimeout = time.Minute // no test waits for it
	}
	if s.flags == 0 {
		s.flags = nd2.MRFlagAllowLocalWrite | nd2.MRFlagAllowRemoteRead | nd2.MRFlagAllowRemoteWrite | nd2.MRFlagRDMAReadSink
	}
	return s
}

// side is one end: an adapter with one of everything.
type side struct {
	t    testing.TB
	a    *nd2.Adapter
	in   *nd2.CompletionQueue // of Receives
	out  *nd2.CompletionQueue // of the other requests
	srq  *nd2.SharedReceiveQueue
	qp   *nd2.QueuePair
	mr   *nd2.MemoryRegion
	buf  []byte
	conn *nd2.Connector
}

func newSide(t testing.TB, sh shape) *side {
	sh = sh.withDefaults()
	s := &side{t: t, buf: make([]byte, sh.bufBytes)}
	id, err := sh.provider.ResolveAddress(loopback.Addr())
	require.NoError(t, err)
	s.a, err = sh.provider.OpenAdapter(id)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.a.Close()) })
	s.in, err = s.a.CreateCompletionQueue(sh.cqDepth)
	require.NoError(t, err)
	s.out, err = s.a.CreateCompletionQueue(sh.cqDepth)
	require.NoError(t, err)
	if sh.srq {
		s.srq, err = s.a.CreateSharedReceiveQueue(sh.depth, sh.sge, 2)
		require.NoError(t, err)
		s.qp, err = s.a.CreateQueuePairWithSrq(s.in, s.out, s.srq, s, sh.depth, sh.sge, sh.inline)
	} else {
		s.qp, err = s.a.CreateQueuePair(s.in, s.out, s, sh.depth, sh.depth, sh.sge, sh.sge, sh.inline)
	}
	require.NoError(t, err)
	s.mr, err = s.a.CreateMemoryRegion()
	require.NoError(t, err)
	require.NoError(t, s.mr.Register(s.buf, sh.flags))
	s.conn, err = s.a.CreateConnector()
	require.NoError(t, err)
	return s
}

// sge is a list of one: n octets from octet off of the region.
func (s *side) sge(off, n int) []nd2.SGE {
	return []nd2.SGE{{Buffer: s.buf[off : off+n], MemoryRegionToken: s.mr.GetLocalToken()}}
}

// at is the remote address of an octet.
func (s *side) at(off int) uint64 { return nd2.Address(s.buf[off:]) }

func wait(t testing.TB, cq *nd2.CompletionQueue) nd2.Result {
	t.Helper()
	var r [1]nd2.Result
	_, err := cq.Wait(bounded(t), r[:])
	require.NoError(t, err)
	return r[0]
}

// done waits for the result of a request.
func (s *side) done(context any, typ nd2.RequestType, status nd2.Status) nd2.Result {
	s.t.Helper()
	cq := s.out
	if typ == nd2.RequestTypeReceive {
		cq = s.in
	}
	r := wait(s.t, cq)
	require.Equal(s.t, context, r.RequestContext)
	require.Equal(s.t, typ, r.RequestType)
	require.Equal(s.t, status, r.Status, "of %v", typ)
	require.Same(s.t, s, r.QueuePairContext)
	return r
}

// none says that there is no result at this moment.
func (s *side) none() {
	s.t.Helper()
	var r [1]nd2.Result
	require.Zero(s.t, s.in.GetResults(r[:]), "%+v", r)
	require.Zero(s.t, s.out.GetResults(r[:]), "%+v", r)
}

// gone waits until the connection has ended.
func (s *side) gone() {
	s.t.Helper()
	require.NoError(s.t, s.conn.NotifyDisconnect(bounded(s.t)))
}

// listen makes a listener on a free port.
func (s *side) listen() (*nd2.Listener, netip.AddrPort) {
	l, err := s.a.CreateListener()
	require.NoError(s.t, err)
	require.NoError(s.t, l.Bind(loopback))
	require.NoError(s.t, l.Listen(0))
	s.t.Cleanup(func() { _ = l.Close() })
	addr, err := l.GetLocalAddress()
	require.NoError(s.t, err)
	return l, addr
}

// join connects two sides; a is the active one.
func join(t testing.TB, a, b *side, reads int) {
	t.Helper()
	l, addr := b.listen()
	accepted := nd2.Overlap(bounded(t), func(ctx context.Context) error {
		if err := l.GetConnectionRequest(ctx, b.conn); err != nil {
			return err
		}
		return b.conn.Accept(ctx, b.qp, reads, reads, nil)
	})
	require.NoError(t, a.conn.Connect(bounded(t), a.qp, addr, reads, reads, nil))
	require.NoError(t, a.conn.CompleteConnect(bounded(t)))
	require.NoError(t, accepted.GetOverlappedResult(true))
	require.NoError(t, l.Close())
}

// pair makes two connected sides.
func pair(t testing.TB, sh shape) (a, b *side) {
	t.Helper()
	a, b = newSide(t, sh), newSide(t, sh)
	join(t, a, b, 4)
	return a, b
}

// sync has everything that a has posted arrive at b: a Send of nothing, received.
func sync(a, b *side) {
	a.t.Helper()
	require.NoError(a.t, b.qp.Receive("sync", nil))
	require.NoError(a.t, a.qp.Send("sync", nil, 0))
	a.done("sync", nd2.RequestTypeSend, nd2.Success)
	b.done("sync", nd2.RequestTypeReceive, nd2.Success)
}

// meet has something arrive both ways.
func meet(a, b *side) {
	sync(a, b)
	sync(b, a)
}
