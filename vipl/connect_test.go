package vipl

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	t.Cleanup(cancel)
	return ctx
}

// request calls ConnectRequest elsewhere.
func request(t *testing.T, v *Vi, local, remote *NetAddress) <-chan error {
	result := make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := v.ConnectRequest(ctx, local, remote)
		result <- err
	}()
	return result
}

func TestConnect(t *testing.T) {
	for _, level := range levels {
		a, b := newHost(t, Config{}), newHost(t, Config{})
		va := a.vi(level, nil, nil)
		smaller := b.attributes(level)
		smaller.MaxTransferSize, smaller.EnableRdmaWrite, smaller.FlowControl = 40_000, false, true
		vb, err := b.nic.CreateVi(smaller, nil, nil)
		require.NoError(t, err)
		accepted := make(chan error, 1)
		go func() {
			c, err := b.nic.ConnectWait(within(t), b.address("here"))
			if err == nil {
				remote := c.RemoteViAttribs()
				remote.Ptag = a.ptag // which does not travel
				if *remote != *a.attributes(level) || c.RemoteAddr().String() != `127.0.0.1/"there"` {
					accepted <- invalid("%+v %v", remote, c.RemoteAddr())
					return
				}
				err = c.ConnectAccept(vb)
			}
			accepted <- err
		}()
		got, err := va.ConnectRequest(within(t), &NetAddress{Discriminator: []byte("there")}, b.address("here"))
		require.NoError(t, err)
		require.NoError(t, <-accepted)
		want := *smaller
		want.Ptag = 0
		require.Equal(t, &want, got)
		for _, v := range []*Vi{va, vb} {
			s, attributes, err := v.QueryVi()
			require.NoError(t, err)
			require.Equal(t, StateConnected, s)
			require.EqualValues(t, 40_000, attributes.MaxTransferSize, "the smaller, VA-4.1-M5")
			_, err = v.ConnectRequest(t.Context(), nil, b.address("here"))
			require.ErrorIs(t, err, ErrInvalidParameter) // VA-5-M1
			require.ErrorIs(t, v.DestroyVi(), ErrResource)
			require.ErrorIs(t, v.SetViAttributes(attributes), ErrInvalidParameter)
		}
		require.NoError(t, va.Disconnect())
		_, attributes, err := va.QueryVi()
		require.NoError(t, err)
		require.EqualValues(t, hostMemory, attributes.MaxTransferSize, "as requested again")
	}
}

// TestSameNode is VA-4.1-M7: two VIs of one Nic, and again with them after they broke.
func TestSameNode(t *testing.T) {
	h := newHost(t, Config{})
	v, w := h.vi(ServiceReliableReception, nil, nil), h.vi(ServiceReliableReception, nil, nil)
	for range 3 {
		connect(t, h, v, h, w)
		r := h.postRecv(w, h.data(0, 8))
		d := h.desc()
		d.SetSend(h.data(8, 8))
		h.postSend(v, d)
		wait(t, w.RecvWait, r)
		wait(t, v.SendWait, d)
		require.NoError(t, v.Disconnect())
		waitState(t, w, StateError)
		require.Equal(t, ErrorConnLost, h.waitError().ErrorCode)
		_, err := w.ConnectRequest(t.Context(), nil, h.address(""))
		require.ErrorIs(t, err, ErrInvalidParameter)
		require.NoError(t, w.Disconnect())
		require.NoError(t, w.Disconnect(), "Idle already")
	}
}

func TestRefused(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{MatchTimeout: time.Nanosecond})
	v := a.vi(ServiceReliableDelivery, nil, nil)
	held := a.postRecv(v)

	_, err := v.ConnectRequest(within(t), nil, b.address("nobody"))
	require.ErrorIs(t, err, ErrReject)
	require.ErrorIs(t, err, vitcp.ErrNoMatch)
	require.Equal(t, StateIdle, state(t, v))

	result := request(t, v, nil, b.address("x"))
	// It meets a ConnectWait or not: ask until it does.
	var c *Conn
	for c == nil {
		ctx, cancel := TimeoutContext(t.Context(), 20)
		c, err = b.nic.ConnectWait(ctx, b.address("x"))
		cancel()
		if err != nil {
			require.ErrorIs(t, err, ErrTimeout)
			select {
			case err := <-result:
				require.ErrorIs(t, err, vitcp.ErrNoMatch)
				result = request(t, v, nil, b.address("x"))
			default:
			}
		}
	}
	require.NoError(t, c.ConnectReject())
	err = <-result
	require.ErrorIs(t, err, ErrReject)
	require.NotErrorIs(t, err, vitcp.ErrNoMatch)
	require.ErrorIs(t, c.ConnectReject(), ErrInvalidParameter)
	require.ErrorIs(t, c.ConnectAccept(b.vi(0, nil, nil)), ErrInvalidParameter)
	require.Equal(t, StateIdle, state(t, v))

	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := netip.MustParseAddrPort(refusing.Addr().String())
	require.NoError(t, refusing.Close())
	_, err = v.ConnectRequest(within(t), nil, NewNetAddress(at, nil))
	require.ErrorIs(t, err, ErrResource)
	require.Equal(t, StateIdle, state(t, v))
	require.False(t, held.Done(), "it waits on, 5.2")
	a.noError()
}

// TestAcceptAgain is VA-4.1-M6: what does not fit leaves the request standing.
func TestAcceptAgain(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{MatchTimeout: long})
	v := a.vi(ServiceReliableReception, nil, nil)
	wrong, busy, w := b.vi(ServiceReliableDelivery, nil, nil), b.vi(0, nil, nil), b.vi(ServiceReliableReception, nil, nil)
	_, err := busy.begin(t.Context(), EventConnectRequest)
	require.NoError(t, err)
	result := request(t, v, nil, b.address("x"))
	c, err := b.nic.ConnectWait(within(t), b.address("x"))
	require.NoError(t, err)
	require.ErrorIs(t, c.ConnectAccept(nil), ErrInvalidParameter)
	require.ErrorIs(t, c.ConnectAccept(v), ErrInvalidParameter, "of another Nic")
	require.ErrorIs(t, c.ConnectAccept(busy), ErrInvalidParameter)
	require.ErrorIs(t, c.ConnectAccept(wrong), ErrInvalidReliabilityLevel) // VA-4.1-M4
	require.Equal(t, StateIdle, state(t, wrong))
	select {
	case err := <-result:
		require.FailNow(t, "answered", "%v", err)
	default:
	}
	require.NoError(t, c.ConnectAccept(w))
	require.NoError(t, <-result)
	require.ErrorIs(t, c.ConnectAccept(w), ErrInvalidParameter)
}

func TestConnectTimeouts(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{MatchTimeout: long})
	v := a.vi(0, nil, nil)
	zero, cancel := TimeoutContext(t.Context(), 0)
	defer cancel()
	_, err := v.ConnectRequest(zero, nil, b.address("x")) // 9.4.4
	require.ErrorIs(t, err, ErrTimeout)
	_, err = b.nic.ConnectWait(zero, nil) // 9.4.1
	require.ErrorIs(t, err, ErrTimeout)
	brief, cancel := TimeoutContext(t.Context(), 50)
	defer cancel()
	_, err = v.ConnectRequest(brief, nil, b.address("x")) // VA-9.4.4-M1
	require.ErrorIs(t, err, ErrTimeout)
	require.Equal(t, StateIdle, state(t, v))

	given, stop := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, stop)
	_, err = v.ConnectRequest(given, nil, b.address("x"))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrTimeout)
	_, err = b.nic.ConnectWait(given, b.address("y"))
	require.ErrorIs(t, err, context.Canceled)

	// A request that came before it is found at once.
	result := request(t, v, nil, b.address("polled"))
	require.Eventually(t, func() bool {
		c, err := b.nic.ConnectWait(zero, b.address("polled"))
		if err == nil {
			require.NoError(t, c.ConnectReject())
		}
		return err == nil
	}, long, time.Millisecond)
	require.ErrorIs(t, <-result, ErrReject)
}

// TestDisconnectPending is 5.2: the attempt is given up.
func TestDisconnectPending(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{MatchTimeout: long})
	v := a.vi(0, nil, nil)
	r := a.postRecv(v)
	result := request(t, v, nil, b.address("x"))
	c, err := b.nic.ConnectWait(within(t), b.address("x"))
	require.NoError(t, err)
	require.Equal(t, StateConnectPending, state(t, v))
	require.NoError(t, v.Disconnect())
	require.Equal(t, StateIdle, state(t, v))
	require.ErrorIs(t, <-result, ErrResource)
	require.Equal(t, StatusDone|StatusDescFlushedError|StatusOpReceive, r.status())
	w := b.vi(0, nil, nil)
	if c.ConnectAccept(w) == nil { // the loss may be seen later
		waitState(t, w, StateError)
	}
}

// TestDisconnectFirst: the remote end's consent comes when nobody wants it any more.
func TestDisconnectFirst(t *testing.T) {
	h := newHost(t, Config{})
	v := h.vi(0, nil, nil)
	a, err := v.begin(t.Context(), EventConnectRequest)
	require.NoError(t, err)
	require.NoError(t, v.Disconnect())
	mine, far := net.Pipe()
	_, err = a.finish(&vitcp.Agreed{Conn: mine, MTU: 1000}, nil)
	require.ErrorIs(t, err, ErrResource)
	require.Equal(t, StateIdle, state(t, v))
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// TestSenselessAnswer is 5.2: a transport error in Pending Connect.
func TestSenselessAnswer(t *testing.T) {
	a := newHost(t, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(make([]byte, 24)) // version 0
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	v := a.vi(ServiceReliableDelivery, nil, nil)
	r := a.postRecv(v)
	_, err = v.ConnectRequest(within(t), nil, NewNetAddress(netip.MustParseAddrPort(l.Addr().String()), nil))
	require.ErrorIs(t, err, ErrResource)
	require.ErrorIs(t, err, segment.FaultVersion)
	require.Equal(t, StateError, state(t, v))
	require.Equal(t, ErrorConnLost, a.waitError().ErrorCode)
	require.Equal(t, StatusDone|StatusDescFlushedError|StatusOpReceive, r.status()) // 5.4
	d := a.desc()
	d.SetSend()
	a.postSend(v, d)
	require.True(t, d.Done())
	require.NoError(t, v.Disconnect())
	require.Equal(t, StateIdle, state(t, v))
}

// TestCloseNicEndsAll: connections, attempts and waits, on both ends.
func TestCloseNicEndsAll(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{MatchTimeout: long})
	v, w := a.vi(ServiceReliableDelivery, nil, nil), b.vi(ServiceReliableDelivery, nil, nil)
	connect(t, a, v, b, w)
	pending := b.vi(0, nil, nil)
	attempt := request(t, pending, nil, b.address("elsewhere"))
	asking := request(t, a.vi(0, nil, nil), nil, b.address("held"))
	held, err := b.nic.ConnectWait(within(t), b.address("held"))
	require.NoError(t, err)
	results := make(chan error, 2)
	go func() { _, err := b.nic.ConnectWait(within(t), b.address("none")); results <- err }()
	go func() { _, err := w.RecvWait(within(t)); results <- err }()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.recv.waitq.waiters == 1 || w.recv.waitq.sleeper != nil
	}, long, time.Millisecond)
	require.NoError(t, b.nic.CloseNic())
	require.ErrorIs(t, <-results, ErrInvalidParameter)
	require.ErrorIs(t, <-results, ErrInvalidParameter)
	require.Error(t, <-attempt)
	require.ErrorIs(t, held.ConnectReject(), ErrInvalidParameter)
	waitState(t, v, StateError)
	require.NoError(t, a.nic.CloseNic())
	require.Error(t, <-asking)
}

// TestConnectWhileNicCloses: CloseNic ends the connection of a VI before it destroys the
// VI. No attempt begins in between, of which nothing would end the connection.
func TestConnectWhileNicCloses(t *testing.T) {
	h := newHost(t, Config{})
	v := h.vi(0, nil, nil)
	h.nic.end()
	require.NoError(t, v.Disconnect())
	_, err := v.begin(t.Context(), EventConnectRequest)
	require.ErrorIs(t, err, ErrInvalidParameter)
	require.Equal(t, StateIdle, state(t, v))
}

// TestThousandConnections connects 1024 VIs of one Nic to 1024 of another, and uses each.
func TestThousandConnections(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{})
	const n = 1024
	qa, qb := a.cq(2*n), b.cq(2*n)
	served := make(chan error, 1)
	ctx := within(t)
	go func() {
		for i := range n {
			c, err := b.nic.ConnectWait(ctx, b.address("many"))
			if err == nil {
				v, _ := b.nic.CreateVi(b.attributes(ServiceReliableDelivery), qb, qb)
				d := b.desc()
				d.SetRecv(b.data(8*i, 8))
				if err = v.PostRecv(d, b.dh); err == nil {
					err = c.ConnectAccept(v)
				}
			}
			if err != nil {
				served <- err
				return
			}
		}
		served <- nil
	}()
	var vis []*Vi
	for range n {
		v := a.vi(ServiceReliableDelivery, qa, qa)
		_, err := v.ConnectRequest(ctx, nil, b.address("many"))
		require.NoError(t, err)
		vis = append(vis, v)
	}
	require.NoError(t, <-served)
	for _, v := range vis {
		d := a.desc()
		d.SetSend(a.data(0, 8))
		a.postSend(v, d)
	}
	told := make(map[*Vi]bool)
	for range n {
		v, recv, err := qb.CQWait(ctx)
		require.NoError(t, err)
		require.True(t, recv)
		d, err := v.RecvDone()
		require.NoError(t, err)
		success(t, d, StatusOpReceive, 8)
		told[v] = true
		_, _, err = qa.CQWait(ctx)
		require.NoError(t, err)
	}
	require.Len(t, told, n)
}
