package nd2_test

import (
	"bytes"
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/nd2"
)

// The tests whose names begin with TestScenario are what the public test programs of
// NetworkDirect (ndmemorytest, ndconn, ndmw) try out, written anew: both ends in one
// process, on free ports, in the order that channels give.

// A listener that closes refuses who connects, and who waits in it.
func TestScenarioConnectToClosingListener(t *testing.T) {
	server, client := newSide(t, shape{}), newSide(t, shape{})
	l, addr := server.listen()
	waiting := nd2.Overlap(bounded(t), func(ctx context.Context) error {
		return client.conn.Connect(ctx, client.qp, addr, 1, 1, nil)
	})
	require.ErrorIs(t, waiting.GetOverlappedResult(false), nd2.Pending)
	require.NoError(t, l.Close())
	require.ErrorIs(t, waiting.GetOverlappedResult(true), nd2.ErrConnectionRefused)
	require.ErrorIs(t, client.conn.Connect(bounded(t), client.qp, addr, 1, 1, nil), nd2.ErrConnectionRefused)
	require.ErrorIs(t, l.GetConnectionRequest(bounded(t), server.conn), nd2.ErrCanceled)
	require.NoError(t, l.Close(), "twice is once")

	join(t, client, server, 1) // connector and queue pair are as before
	sync(client, server)
}

// The connecting side does not like the answer. Over iWARP the accepting side is
// connected by then, and sees the end.
func TestScenarioRejectAfterAccept(t *testing.T) {
	for name, end := range map[string]func(*nd2.Connector) error{
		"reject": func(c *nd2.Connector) error { return c.Reject([]byte("no")) },
		"close":  (*nd2.Connector).Close,
	} {
		t.Run(name, func(t *testing.T) {
			server, client := newSide(t, shape{}), newSide(t, shape{})
			require.NoError(t, server.qp.Receive(1, nil))
			l, addr := server.listen()
			accepted := nd2.Overlap(bounded(t), func(ctx context.Context) error {
				if err := l.GetConnectionRequest(ctx, server.conn); err != nil {
					return err
				}
				return server.conn.Accept(ctx, server.qp, 3, 2, []byte("come in"))
			})
			require.NoError(t, client.conn.Connect(bounded(t), client.qp, addr, 1, 8, []byte("hello")))
			require.NoError(t, accepted.GetOverlappedResult(true))
			private, err := client.conn.GetPrivateData()
			require.NoError(t, err)
			assert.Equal(t, "come in", string(private))
			inbound, outbound, err := client.conn.GetReadLimits()
			require.NoError(t, err)
			assert.Equal(t, []int{1, 3}, []int{inbound, outbound}, "the server asks for no more than is offered")

			require.ErrorIs(t, client.qp.Send(1, nil, 0), nd2.ErrConnectionInvalid, "not before CompleteConnect")
			require.NoError(t, end(client.conn))
			server.gone()
			server.done(1, nd2.RequestTypeReceive, nd2.ErrCanceled)
			require.ErrorIs(t, server.qp.Send(1, nil, 0), nd2.ErrConnectionInvalid)
			require.ErrorIs(t, client.conn.CompleteConnect(bounded(t)), nd2.ErrConnectionInvalid)
			require.ErrorIs(t, client.conn.Disconnect(bounded(t)), nd2.ErrConnectionInvalid)
			require.ErrorIs(t, end(client.conn), map[string]error{"reject": nd2.ErrConnectionInvalid}[name])
		})
	}
}

// The listening side refuses, and says why; the connector can try again.
func TestScenarioReject(t *testing.T) {
	server, client := newSide(t, shape{}), newSide(t, shape{})
	l, addr := server.listen()
	for _, answer := range []func(*nd2.Connector) error{
		func(c *nd2.Connector) error { return c.Reject([]byte("go away")) },
		(*nd2.Connector).Close,
	} {
		conn, err := server.a.CreateConnector()
		require.NoError(t, err)
		rejected := nd2.Overlap(bounded(t), func(ctx context.Context) error {
			if err := l.GetConnectionRequest(ctx, conn); err != nil {
				return err
			}
			return answer(conn)
		})
		require.ErrorIs(t, client.conn.Connect(bounded(t), client.qp, addr, 1, 1, nil), nd2.ErrConnectionRefused)
		require.NoError(t, rejected.GetOverlappedResult(true))
		require.ErrorIs(t, conn.Accept(bounded(t), server.qp, 0, 0, nil), nd2.ErrConnectionInvalid)
		private, err := client.conn.GetPrivateData()
		require.NoError(t, err)
		assert.Contains(t, []string{"go away", ""}, string(private))
	}
	join(t, client, server, 1)
}

// One connector connects one queue pair, and either once.
func TestScenarioTwoConnects(t *testing.T) {
	a, b := pair(t, shape{})
	l, addr := b.listen()
	require.ErrorIs(t, a.conn.Connect(bounded(t), a.qp, addr, 1, 1, nil), nd2.ErrConnectionActive)
	require.ErrorIs(t, a.conn.Bind(loopback), nd2.ErrAddressAlreadyExists)
	other, err := a.a.CreateConnector()
	require.NoError(t, err)
	require.ErrorIs(t, other.Connect(bounded(t), a.qp, addr, 1, 1, nil), nd2.ErrConnectionActive)
	require.ErrorIs(t, l.GetConnectionRequest(bounded(t), b.conn), nd2.ErrConnectionActive)
	sync(a, b) // nothing has happened to the connection

	c := newSide(t, shape{})
	connecting := nd2.Overlap(bounded(t), func(ctx context.Context) error {
		return c.conn.Connect(ctx, c.qp, addr, 1, 1, nil)
	})
	second, err := b.a.CreateConnector()
	require.NoError(t, err)
	require.NoError(t, l.GetConnectionRequest(bounded(t), second))
	require.ErrorIs(t, second.Accept(bounded(t), b.qp, 1, 1, nil), nd2.ErrConnectionActive)
	require.NoError(t, second.Reject(nil), "the request still stands")
	require.ErrorIs(t, connecting.GetOverlappedResult(true), nd2.ErrConnectionRefused)
}

// Two listeners cannot have one address, of the same or of two adapters.
func TestScenarioTwoListens(t *testing.T) {
	a, b := newSide(t, shape{}), newSide(t, shape{})
	l, addr := a.listen()
	require.ErrorIs(t, l.Bind(addr), nd2.ErrInvalidDeviceState)
	require.ErrorIs(t, l.Listen(0), nd2.ErrInvalidDeviceState)
	for _, s := range []*side{a, b} {
		second, err := s.a.CreateListener()
		require.NoError(t, err)
		require.ErrorIs(t, second.Bind(addr), nd2.ErrSharingViolation)
		require.ErrorIs(t, second.Listen(0), nd2.ErrInvalidDeviceState)
		_, err = second.GetLocalAddress()
		require.ErrorIs(t, err, nd2.ErrInvalidDeviceState)
		require.ErrorIs(t, second.GetConnectionRequest(bounded(t), s.conn), nd2.ErrInvalidDeviceState)
		require.NoError(t, second.Close())
		require.ErrorIs(t, second.Bind(loopback), nd2.ErrInvalidDeviceState)
	}
}

func TestScenarioInvalidAddress(t *testing.T) {
	s := newSide(t, shape{})
	for name, addr := range map[string]netip.AddrPort{
		"none": {}, "unspecified": netip.MustParseAddrPort("0.0.0.0:54325"),
		"unspecified 6": netip.MustParseAddrPort("[::]:54325"),
		"multicast":     netip.MustParseAddrPort("224.0.0.1:54325"), "no port": loopback,
	} {
		require.ErrorIs(t, s.conn.Connect(bounded(t), s.qp, addr, 0, 0, nil), nd2.ErrInvalidAddress, name)
	}
	foreign := netip.MustParseAddrPort("192.0.2.77:0") // nobody's: RFC 5737
	require.ErrorIs(t, s.conn.Bind(foreign), nd2.ErrInvalidAddress)
	require.ErrorIs(t, s.conn.Bind(netip.AddrPort{}), nd2.ErrInvalidAddress)
	l, err := s.a.CreateListener()
	require.NoError(t, err)
	require.ErrorIs(t, l.Bind(foreign), nd2.ErrInvalidAddress)
	require.ErrorIs(t, l.Bind(netip.AddrPort{}), nd2.ErrInvalidAddress)
	var p nd2.Provider
	_, err = p.ResolveAddress(foreign.Addr())
	require.ErrorIs(t, err, nd2.ErrInvalidAddress)
	_, err = p.OpenAdapter(1)
	require.ErrorIs(t, err, nd2.ErrInvalidParameter)
}

// Private data has a limit in each direction, which can be used up.
func TestScenarioOversizePrivateData(t *testing.T) {
	server, client := newSide(t, shape{}), newSide(t, shape{})
	info := client.a.Query()
	caller := bytes.Repeat([]byte{'c'}, info.MaxCallerData+1)
	callee := bytes.Repeat([]byte{'e'}, info.MaxCalleeData+1)
	l, addr := server.listen()
	require.ErrorIs(t, client.conn.Connect(bounded(t), client.qp, addr, 1, 1, caller), nd2.ErrInvalidBufferSize)
	connected := nd2.Overlap(bounded(t), func(ctx context.Context) error {
		return client.conn.Connect(ctx, client.qp, addr, 1, 1, caller[1:])
	})
	require.NoError(t, l.GetConnectionRequest(bounded(t), server.conn))
	private, err := server.conn.GetPrivateData()
	require.NoError(t, err)
	assert.Equal(t, caller[1:], private)
	require.ErrorIs(t, server.conn.Accept(bounded(t), server.qp, 1, 1, callee), nd2.ErrInvalidBufferSize)
	require.ErrorIs(t, server.conn.Reject(callee), nd2.ErrInvalidBufferSize)
	require.NoError(t, server.conn.Accept(bounded(t), server.qp, 1, 1, callee[1:]))
	require.NoError(t, connected.GetOverlappedResult(true))
	private, err = client.conn.GetPrivateData()
	require.NoError(t, err)
	assert.Equal(t, callee[1:], private)
	require.NoError(t, client.conn.CompleteConnect(bounded(t)))
	sync(client, server)
}

// The peer closes: a Receive that waits is canceled.
func TestScenarioReceiveWithConnectorClosed(t *testing.T) {
	a, b := pair(t, shape{})
	require.NoError(t, b.qp.Receive(7, b.sge(0, 64)))
	require.NoError(t, a.conn.Disconnect(bounded(t)))
	b.done(7, nd2.RequestTypeReceive, nd2.ErrCanceled)
	b.gone()
	// ND-Receive-M1, M8: what comes afterwards is taken, and canceled.
	for i := range 40 {
		require.NoError(t, b.qp.Receive(i, b.sge(0, 64)))
		b.done(i, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
	require.ErrorIs(t, b.qp.Send(1, nil, 0), nd2.ErrConnectionInvalid)
	require.NoError(t, b.conn.Disconnect(bounded(t)), "the peer was first")
}

// Connections by the hundred on one completion queue, each with its data.
func TestScenarioManyConnections(t *testing.T) {
	const n = 100
	server, client := newSide(t, shape{cqDepth: 2 * n}), newSide(t, shape{cqDepth: 2 * n})
	l, addr := server.listen()
	open := func(s *side, i int) (*nd2.QueuePair, *nd2.Connector) {
		qp, err := s.a.CreateQueuePair(s.in, s.out, i, 2, 2, 1, 1, 16)
		require.NoError(t, err)
		require.NoError(t, qp.Receive(i, s.sge(4*i, 4)))
		conn, err := s.a.CreateConnector()
		require.NoError(t, err)
		return qp, conn
	}
	accepted := nd2.Overlap(bounded(t), func(ctx context.Context) error {
		for i := range n {
			qp, conn := open(server, i)
			if err := l.GetConnectionRequest(ctx, conn); err != nil {
				return err
			}
			if err := conn.Accept(ctx, qp, 0, 0, nil); err != nil {
				return err
			}
		}
		return nil
	})
	var qps []*nd2.QueuePair
	for i := range n {
		qp, conn := open(client, i)
		require.NoError(t, conn.Connect(bounded(t), qp, addr, 0, 0, nil))
		require.NoError(t, conn.CompleteConnect(bounded(t)))
		qps = append(qps, qp)
	}
	require.NoError(t, accepted.GetOverlappedResult(true))
	for i, qp := range qps {
		require.NoError(t, qp.Send(i, []nd2.SGE{{Buffer: []byte{byte(i), 1, 2, 3}}}, nd2.OpFlagInline|nd2.OpFlagSilentSuccess))
	}
	seen := map[any]bool{}
	for range n {
		r := wait(t, server.in)
		require.Equal(t, nd2.Success, r.Status)
		require.Equal(t, r.QueuePairContext, r.RequestContext)
		seen[r.RequestContext] = true
		at := 4 * r.RequestContext.(int)
		require.Len(t, server.buf[at:at+4], int(r.BytesTransferred))
		require.Equal(t, []byte{1, 2, 3}, server.buf[at+1:at+4])
	}
	require.Len(t, seen, n)
	for _, qp := range qps {
		require.NoError(t, qp.Close())
	}
	for range n { // the Receives of both sides
		require.Equal(t, nd2.ErrCanceled, wait(t, client.in).Status)
	}
}
