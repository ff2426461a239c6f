package nd2_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/nd2"
)

// TestSentences makes the mistakes that a program can, and reads what it is told: all sentences of this package, but for
// those that are excused with a reason.
func TestSentences(t *testing.T) {
	s, other := newSide(t, shape{}), newSide(t, shape{})
	shared := newSide(t, shape{srq: true})
	a, b := pair(t, shape{})
	closed := newSide(t, shape{})
	require.NoError(t, closed.a.Close())
	gone, err := s.a.CreateCompletionQueue(1)
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	silent, err := s.a.CreateSharedReceiveQueue(4, 1, 0)
	require.NoError(t, err)
	bound, err := s.a.CreateListener()
	require.NoError(t, err)
	require.NoError(t, bound.Bind(loopback))
	t.Cleanup(func() { _ = bound.Close() })
	unbound, err := s.a.CreateListener()
	require.NoError(t, err)
	listening, err := s.a.CreateListener()
	require.NoError(t, err)
	require.NoError(t, listening.Bind(loopback))
	require.NoError(t, listening.Listen(1))
	t.Cleanup(func() { _ = listening.Close() })
	fresh, err := s.a.CreateConnector()
	require.NoError(t, err)
	region, err := s.a.CreateMemoryRegion()
	require.NoError(t, err)
	noQP, err := s.a.CreateQueuePair(s.in, s.out, nil, 1, 1, 1, 1, 0)
	require.NoError(t, err)
	require.NoError(t, noQP.Close())
	where := netip.MustParseAddrPort("127.0.0.1:9")
	ctx := bounded(t)
	long := make([]byte, 509)
	qp := func(receive, initiator, receiveSge, initiatorSge, inline int) error {
		return second(s.a.CreateQueuePair(s.in, s.out, nil, receive, initiator, receiveSge, initiatorSge, inline))
	}
	withSRQ := func(srq *nd2.SharedReceiveQueue, initiator, sge, inline int) error {
		return second(shared.a.CreateQueuePairWithSrq(shared.in, shared.out, srq, nil, initiator, sge, inline))
	}
	var provider nd2.Provider
	var errs []error
	for _, m := range []struct {
		mistake string
		make    func() error
		status  nd2.Status
		says    string
	}{
		{"private data of Connect", func() error { return s.conn.Connect(ctx, s.qp, where, 1, 1, long) }, nd2.ErrInvalidBufferSize, "509 octets of private data, at most 508"},
		{"nowhere", func() error { return s.conn.Connect(ctx, s.qp, netip.AddrPort{}, 1, 1, nil) }, nd2.ErrInvalidAddress, "is no address to connect to: it needs a host and a port"},
		{"connected already", func() error { return a.conn.Connect(ctx, a.qp, where, 1, 1, nil) }, nd2.ErrConnectionActive, "the connector is connected, and has to be unused"},
		{"no request", func() error { return fresh.Accept(ctx, s.qp, 1, 1, nil) }, nd2.ErrConnectionInvalid, "the connector is unused, and has to be given a request"},
		{"another's queue pair", func() error { return s.conn.Connect(ctx, other.qp, where, 1, 1, nil) }, nd2.ErrInvalidParameter1, "the queue pair is not this adapter's"},
		{"a queue pair in use", func() error {
			c, err := b.a.CreateConnector()
			require.NoError(t, err)
			return c.Connect(ctx, b.qp, where, 1, 1, nil)
		}, nd2.ErrConnectionActive, "the queue pair is connected, or was"},
		{"Bind to nothing", func() error { return fresh.Bind(netip.AddrPort{}) }, nd2.ErrInvalidAddress, "no address"},
		{"Bind too late", func() error { return a.conn.Bind(loopback) }, nd2.ErrAddressAlreadyExists, "the connector has an address"},
		{"a CQ of nothing", func() error { return second(s.a.CreateCompletionQueue(0)) }, nd2.ErrInvalidParameter3, "a completion queue of 0 entries, at least 1 and at most 2097152"},
		{"a CQ of nothing, resized", func() error { return s.in.Resize(0) }, nd2.ErrInvalidParameter, "a completion queue of 0 entries, at least 1 and at most 2097152"},
		{"a closed adapter's CQ", func() error { return second(closed.a.CreateCompletionQueue(1)) }, nd2.ErrDeviceRemoved, "the adapter is closed"},
		{"an S-RQ of nothing", func() error { return second(s.a.CreateSharedReceiveQueue(0, 1, 0)) }, nd2.ErrInvalidParameter3, "a shared receive queue of 0, at least 1 and at most "},
		{"an S-RQ of long lists", func() error { return second(s.a.CreateSharedReceiveQueue(1, 33, 0)) }, nd2.ErrInvalidParameter4, "lists of 33 entries, at most 32"},
		{"an S-RQ's threshold", func() error { return second(s.a.CreateSharedReceiveQueue(1, 1, 2)) }, nd2.ErrInvalidParameter5, "a threshold of 2 Receives, at most 1: the depth"},
		{"an S-RQ modified to nothing", func() error { return silent.Modify(-1, 0) }, nd2.ErrInvalidParameter, "-1 Receives, at least 1 and at most "},
		{"an S-RQ without threshold", func() error { return silent.Notify(ctx) }, nd2.ErrInvalidDeviceState, "the queue has no threshold"},
		{"too many Receives", func() error { return qp(1<<20, 1, 1, 1, 0) }, nd2.ErrInvalidParameter5, "1048576 Receives, at most 16384"},
		{"too many requests", func() error { return qp(1, 1<<20, 1, 1, 0) }, nd2.ErrInvalidParameter6, "1048576 requests, at most 4096"},
		{"long lists of Receives", func() error { return qp(1, 1, 33, 1, 0) }, nd2.ErrInvalidParameter7, "lists of 33 entries, at most 32"},
		{"long lists of requests", func() error { return qp(1, 1, 1, 33, 0) }, nd2.ErrInvalidParameter8, "lists of 33 entries, at most 32"},
		{"much inline", func() error { return qp(1, 1, 1, 1, 1025) }, nd2.ErrInvalidParameter9, "1025 octets inline, at most 1024"},
		{"another's S-RQ", func() error { return withSRQ(silent, 1, 1, 0) }, nd2.ErrInvalidParameter4, "the shared receive queue is not this adapter's"},
		{"another's CQ of Receives", func() error { return second(s.a.CreateQueuePair(other.in, s.out, nil, 1, 1, 1, 1, 0)) }, nd2.ErrInvalidParameter2, "the receive completion queue is not this adapter's"},
		{"another's CQ of requests", func() error { return second(s.a.CreateQueuePair(s.in, other.out, nil, 1, 1, 1, 1, 0)) }, nd2.ErrInvalidParameter3, "the initiator completion queue is not this adapter's"},
		{"a listener bound twice", func() error { return bound.Bind(loopback) }, nd2.ErrInvalidDeviceState, "the listener has an address, or is closed"},
		{"a listener bound to nothing", func() error { return unbound.Bind(netip.AddrPort{}) }, nd2.ErrInvalidAddress, "no address"},
		{"Listen without address", func() error { return unbound.Listen(1) }, nd2.ErrInvalidDeviceState, "the listener has no address, or listens, or is closed"},
		{"a request where nobody listens", func() error { return bound.GetConnectionRequest(ctx, fresh) }, nd2.ErrInvalidDeviceState, "the listener does not listen"},
		{"a request for another's connector", func() error { return listening.GetConnectionRequest(ctx, other.conn) }, nd2.ErrInvalidParameter1, "the connector is not this adapter's"},
		{"no such notification", func() error { return s.in.Notify(ctx, nd2.CQNotifySolicited+1) }, nd2.ErrInvalidParameter1, "there is no notification type "},
		{"a CQ that is closed", func() error { return gone.Notify(ctx, nd2.CQNotifyAny) }, nd2.ErrCanceled, "the completion queue was closed"},
		{"no such address", func() error { return second(provider.ResolveAddress(netip.MustParseAddr("192.0.2.1"))) }, nd2.ErrInvalidAddress, "no adapter has the address 192.0.2.1"},
		{"no such adapter", func() error { return second(provider.OpenAdapter(12345)) }, nd2.ErrInvalidParameter, "there is no adapter 0x3039"},
		{"a queue pair that is closed", func() error { return noQP.Close() }, nd2.ErrInvalidHandle, "the queue pair is closed"},
		{"a region of nothing", func() error { return region.Register(nil, 0) }, nd2.ErrAccessViolation, "a region of no octets"},
		{"no such flags", func() error { return region.Register(s.buf, 1<<30) }, nd2.ErrInvalidParameter, "with flags 0x40000000, of which there are "},
		{"a region registered twice", func() error { return s.mr.Register(s.buf, 0) }, nd2.ErrInvalidDeviceState, "the region is registered already"},
		{"a region that is not registered", region.Deregister, nd2.ErrInvalidDeviceState, "the region is not registered"},
	} {
		t.Run(m.mistake, func(t *testing.T) {
			err := m.make()
			require.ErrorIs(t, err, m.status)
			assert.Contains(t, err.Error(), m.says)
			assert.Regexp(t, "^nd2: ND_", err.Error())
			assert.Less(t, len(err.Error()), 300)
			errs = append(errs, err)
		})
	}
	docgen.Provoked(t, docgen.Sentences(t, "refuse"), errs, map[string]string{
		"this adapter has no shared receive queues": "needs an adapter without",
		"%d results are in the queue":               "needs traffic: scenario_queue_test.go",
		"%d Receives are outstanding":               "the same",
		"the completion queue is unusable":          "needs an overflow: the same",
		"the listener was closed":                   "needs two calls at once: listener_test.go",
		"too many queue pairs: close some":          "needs 2^32 of them",
		"too many queues":                           "the same",
		"%v is no TCP address":                      "needs a connection that is none of TCP",
	})
}

// second is the error of a call that returns something else as well.
func second[T any](_ T, err error) error { return err }
