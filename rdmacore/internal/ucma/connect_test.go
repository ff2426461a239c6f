//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
	"github.com/softrnic/softrnic/verbs"
)

func minus(no syscall.Errno) uint32 { return uint32(-int32(no)) }

func TestConnectAndAccept(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	l, at := server.listen(0x1111, netip.AddrPortFrom(loopback, 0))
	c := client.create(0xc)
	client.resolve(c, at)
	cqp, sqp := client.qp(), server.qp()
	require.NoError(t, client.connect(c, cqp, "a request"))

	e := server.expect(uabi.CMEventConnectRequest)
	assert.EqualValues(t, 0x1111, e.UID, "the listener's")
	s := e.ID
	assert.NotEqual(t, l, s)
	assert.Equal(t, "a request", private(e))
	assert.EqualValues(t, 2, e.Conn.ResponderResources, "what the peer initiates")
	assert.EqualValues(t, 4, e.Conn.InitiatorDepth)
	sr, cr := server.route(s), client.route(c)
	assert.Equal(t, cr.Src, sr.Dst, "the client's port is known before it connects")
	assert.Equal(t, sockaddr(at), sr.Src)
	guid := sysfs.GUID(loopback)
	assert.Equal(t, guid, sr.NodeGUID)
	assert.EqualValues(t, 1, sr.PortNum)

	require.NoError(t, server.accept(s, 0x5e, sqp, "a reply"))
	e = server.expect(uabi.CMEventEstablished)
	assert.EqualValues(t, 0x5e, e.UID)
	assert.Equal(t, s, e.ID)
	assert.Empty(t, private(e), "that came with the request")
	e = client.expect(uabi.CMEventEstablished)
	assert.EqualValues(t, 0xc, e.UID)
	assert.Equal(t, "a reply", private(e))
	assert.EqualValues(t, 4, e.Conn.ResponderResources)
	assert.EqualValues(t, 2, e.Conn.InitiatorDepth)
	assert.Equal(t, verbs.StateRTS, client.state(cqp))
	assert.Equal(t, verbs.StateRTS, server.state(sqp))

	assert.Equal(t, syscall.EINVAL, refused(t, client.connect(c, cqp, "")), "twice")
	assert.Equal(t, syscall.EINVAL, refused(t, server.accept(s, 1, sqp, "")), "twice")
	assert.Zero(t, d.ucm.Turns())

	must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)
	assert.Equal(t, c, client.expect(uabi.CMEventDisconnected).ID)
	e = server.expect(uabi.CMEventDisconnected)
	assert.Equal(t, s, e.ID)
	assert.Zero(t, e.Status)
	assert.Equal(t, verbs.StateError, client.state(cqp), "so that receives flush")
	assert.Equal(t, verbs.StateError, server.state(sqp))
	must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0) // of what is over already
	assert.EqualValues(t, 4, client.destroy(c))
	assert.EqualValues(t, 2, server.destroy(s))
	assert.EqualValues(t, 1, server.destroy(l))
	assert.Zero(t, client.tokens()+server.tokens())
	assert.Zero(t, d.ucm.IDs())
	assert.GreaterOrEqual(t, d.fds.Load(), int32(5), "Own: two eventfds, listener, dialed, accepted")
}

// TestACKTimeout: the option of an id shows in QUERY_QP, of either side.
func TestACKTimeout(t *testing.T) {
	d := newDevice(t)
	p := d.program()
	_, at := p.listen(1, netip.AddrPortFrom(loopback, 0))
	c, cqp, sqp := p.create(2), p.qp(), p.qp()
	set := func(num uint32, n byte) error {
		p.arena[dataAt] = n
		return do(p, uabi.CMSetOption, &uabi.SetOption{OptVal: p.at(dataAt), ID: num, OptName: uabi.CMOptionACKTimeout, OptLen: 1}, 0)
	}
	timeout := func(qpn uint32) uint8 {
		uv(p, uabi.CmdQueryQP, &uabi.QueryQP{Response: p.resp(), QPHandle: p.handle(qpn)}, len(umem.Bytes(&uabi.QueryQPResp{})))
		return got[uabi.QueryQPResp](p).Timeout
	}
	p.resolve(c, at)
	require.NoError(t, set(c, 21))
	require.NoError(t, p.connect(c, cqp, ""))
	s := p.expect(uabi.CMEventConnectRequest).ID
	require.NoError(t, set(s, 19))
	require.NoError(t, p.accept(s, 3, sqp, ""))
	assert.EqualValues(t, 21, timeout(cqp))
	assert.EqualValues(t, 19, timeout(sqp))
	assert.Equal(t, syscall.EINVAL, refused(t, set(p.createUD(5), 19)), "of datagrams")
}

// TestConnectRoCE: as with an InfiniBand CM the client is told of the response, and establishes.
func TestConnectRoCE(t *testing.T) {
	d := newDevice(t, asRoCE)
	p := d.program()
	l, at := p.listen(1, netip.AddrPortFrom(loopback, 0))
	c, cqp, sqp := p.create(2), p.qp(), p.qp()
	p.resolve(c, at)
	r := p.route(c)
	assert.EqualValues(t, 1, r.NumPaths)
	assert.Equal(t, loopback.As16(), r.Path[0].DGID)
	require.NoError(t, p.connect(c, cqp, ""))
	s := p.expect(uabi.CMEventConnectRequest).ID
	establish := func(num uint32) error { return do(p, uabi.CMAccept, &uabi.Accept{ID: num}, 0) }
	assert.Equal(t, syscall.EINVAL, refused(t, establish(s)))
	assert.Equal(t, syscall.EINVAL, refused(t, establish(c)))
	require.NoError(t, p.accept(s, 3, sqp, ""))
	for range 2 {
		p.token()
		require.NoError(t, p.getEvent())
		switch e := got[uabi.EventResp](p); e.Event {
		case uabi.CMEventConnectResponse:
			assert.Equal(t, c, e.ID)
		default:
			assert.EqualValues(t, uabi.CMEventEstablished, e.Event)
			assert.Equal(t, s, e.ID)
		}
	}
	// As librdmacm does for CONNECT_RESPONSE, and before ACCEPT of the server: from INIT on once more.
	for _, state := range []uint32{uabi.QPSInit, uabi.QPSRTR, uabi.QPSRTS} {
		must(p, uabi.CMInitQPAttr, &uabi.InitQPAttr{Response: p.resp(), ID: c, QPState: state}, 144)
		uv(p, uabi.CmdModifyQP, &uabi.ModifyQP{QPHandle: p.handle(cqp), AttrMask: got[uabi.QPAttr](p).QPAttrMask, QPState: uint8(state), PortNum: 1}, 0)
	}
	assert.Equal(t, verbs.StateRTS, p.state(cqp))
	require.NoError(t, establish(c))
	assert.Equal(t, syscall.EINVAL, refused(t, establish(s)), "the server has nothing to establish")
	p.destroy(l)
}

// TestPeerTakesImmediate: with the RoCE presentation two softrnics agree on Sends with Immediate Data behind the programs' private
// data, of which these see nothing. With iWARP nothing is added, and a peer that does not say so is not sent any.
func TestPeerTakesImmediate(t *testing.T) {
	roce, iwarp := asRoCE, func(*uverbs.Config) {}
	for _, row := range []struct {
		name           string
		client, server func(*uverbs.Config)
		agreed         bool
		heard          string
	}{
		{"RoCE", roce, roce, true, "hello"},
		{"iWARP", iwarp, iwarp, false, "hello"},
		{"RoCE to iWARP", roce, iwarp, false, "helloSRNRoCE\x0f"},
		{"iWARP to RoCE", iwarp, roce, false, "hello"},
	} {
		t.Run(row.name, func(t *testing.T) {
			client, server := newDevice(t, row.client).program(), newDevice(t, row.server).program()
			l, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
			c, cqp, sqp := client.create(2), client.qp(), server.qp()
			client.resolve(c, at)
			require.NoError(t, client.connect(c, cqp, "hello"))
			e := server.expect(uabi.CMEventConnectRequest)
			assert.Equal(t, row.heard, private(e))
			require.NoError(t, server.accept(e.ID, 3, sqp, "welcome"))
			server.expect(uabi.CMEventEstablished)
			client.token()
			require.NoError(t, client.getEvent())
			assert.Equal(t, "welcome", private(got[uabi.EventResp](client)))
			for _, p := range []*program{client, server} {
				qpn := cqp
				if p == server {
					qpn = sqp
				}
				assert.Equal(t, row.agreed, p.dev.uv.QP(qpn).TakesImmediate())
			}
			server.destroy(l)
		})
	}
}

// TestRNRRetryCount: with the RoCE presentation rnr_retry_count is for the other end's queue pair, as an InfiniBand CM has it; the Send
// for which there is no receive so often ends with RNR_RETRY_EXC_ERR. With iWARP it is for ever.
func TestRNRRetryCount(t *testing.T) {
	for _, row := range []struct {
		client, server func(*uverbs.Config)
		ofServer       uint8 // rnr_retry that the server's program says
		want           uint8 // of the client's queue pair
	}{
		{asRoCE, asRoCE, 0, 0},
		{asRoCE, asRoCE, 1, 1},
		{asRoCE, asRoCE, 7, 7},
		{asRoCE, asRoCE, 8 | 1, 1}, // three bits
		{asRoCE, func(*uverbs.Config) {}, 0, 0},
	} {
		client, server := newDevice(t, row.client).program(), newDevice(t, row.server).program()
		l, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
		c, cqp, sqp := client.create(2), client.qp(), server.qp()
		client.resolve(c, at)
		p := param(cqp, "hello")
		p.RNRRetryCount = 5
		must(client, uabi.CMConnect, &uabi.Connect{ConnParam: p, ID: c}, 0)
		s := server.expect(uabi.CMEventConnectRequest).ID
		p = param(sqp, "welcome")
		p.RNRRetryCount = row.ofServer
		must(server, uabi.CMAccept, &uabi.Accept{UID: 3, ConnParam: p, ID: s}, 0)
		server.expect(uabi.CMEventEstablished)
		client.expect(uabi.CMEventConnectResponse)
		retry := func(p *program, qpn uint32) uint8 {
			uv(p, uabi.CmdQueryQP, &uabi.QueryQP{Response: p.resp(), QPHandle: p.handle(qpn)}, len(umem.Bytes(&uabi.QueryQPResp{})))
			return got[uabi.QueryQPResp](p).RNRRetry
		}
		assert.Equal(t, row.want, retry(client, cqp))
		agreed := server.dev.uv.Config().RoCE
		assert.Equal(t, map[bool]uint8{true: 5}[agreed], retry(server, sqp))
		client.posts(cqp, uabi.WRSend)
		if !agreed || row.want == 7 {
			client.completes(uabi.WCSuccess)
		} else {
			client.completes(uabi.WCRNRRetryExcErr)
		}
		server.destroy(l)
	}
}

func TestReject(t *testing.T) {
	said := make(chan string, 8)
	d := newDevice(t, func(c *uverbs.Config) { c.Report = func(s string) { said <- s } })
	client, server := d.program(), d.program()
	_, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
	c, qp := client.create(2), client.qp()
	client.resolve(c, at)
	require.NoError(t, client.connect(c, qp, ""))
	s := server.expect(uabi.CMEventConnectRequest).ID
	q := uabi.Reject{ID: s, PrivateDataLen: 2, Reason: 1, PrivateData: [256]uint8{'n', 'o'}}
	assert.Equal(t, syscall.EINVAL, refused(t, do(server, uabi.CMReject, &q, 0)), "the reason")
	q.Reason = uabi.RejectConsumer
	must(server, uabi.CMReject, &q, 0)
	assert.Equal(t, syscall.EINVAL, refused(t, do(server, uabi.CMReject, &q, 0)), "twice")
	assert.Equal(t, syscall.EINVAL, refused(t, server.accept(s, 9, server.qp(), "")))
	e := client.expect(uabi.CMEventRejected)
	assert.Equal(t, minus(syscall.ECONNREFUSED), e.Status)
	assert.Equal(t, "no", private(e))
	assert.Contains(t, <-said, "has rejected a connection")
	assert.Zero(t, server.destroy(s), "the request was the listener's event")
}

// TestPrivateData: the peer sees what the program gave and nothing else, up to what fits into a length.
func TestPrivateData(t *testing.T) {
	d := newDevice(t)
	p := d.program()
	_, at := p.listen(1, netip.AddrPortFrom(loopback, 0))
	long := string(make([]byte, 255))
	for n, data := range []string{"", "x", long} {
		c := p.create(uint64(n + 2))
		p.resolve(c, at)
		require.NoError(t, p.connect(c, p.qp(), data))
		e := p.expect(uabi.CMEventConnectRequest)
		assert.Equal(t, data, private(e))
		q := uabi.Reject{ID: e.ID, PrivateDataLen: uint8(len(long))}
		must(p, uabi.CMReject, &q, 0)
		assert.Equal(t, long, private(p.expect(uabi.CMEventRejected)))
	}
}

// TestRefused: nobody listens.
func TestRefused(t *testing.T) {
	said := make(chan string, 8)
	d := newDevice(t, func(c *uverbs.Config) { c.Report = func(s string) { said <- s } })
	d.ucm.Shorten(time.Millisecond, time.Minute)
	p := d.program()
	other := p.create(1) // bound only: nobody can connect there either
	require.NoError(t, p.bind(other, netip.AddrPortFrom(loopback, 0)))
	c := p.create(2)
	p.resolve(c, netip.AddrPortFrom(loopback, p.port(other)))
	require.NoError(t, p.connect(c, p.qp(), ""))
	assert.Equal(t, minus(syscall.ECONNREFUSED), p.expect(uabi.CMEventRejected).Status)
	assert.Contains(t, <-said, "nothing listens at 127.0.0.1")
	assert.Zero(t, d.ucm.Turns())
}

// TestRefusedAtFirst: a client that comes before rdma_listen.
func TestRefusedAtFirst(t *testing.T) {
	d := newDevice(t)
	d.ucm.Shorten(time.Minute, time.Minute)
	p := d.program()
	l := p.create(1)
	require.NoError(t, p.bind(l, netip.AddrPortFrom(loopback, 0)))
	c := p.create(2)
	p.resolve(c, netip.AddrPortFrom(loopback, p.port(l)))
	require.NoError(t, p.connect(c, p.qp(), ""))
	must(p, uabi.CMListen, &uabi.Listen{ID: l}, 0)
	p.expect(uabi.CMEventConnectRequest)
}

// TestUnreachable: the peer's TCP answers and its program does not.
func TestUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	said := make(chan string, 8)
	d := newDevice(t, func(c *uverbs.Config) { c.Report = func(s string) { said <- s } })
	d.ucm.Shorten(time.Millisecond, 50*time.Millisecond)
	p := d.program()
	c := p.create(2)
	p.resolve(c, netip.MustParseAddrPort(silent.Addr().String()))
	require.NoError(t, p.connect(c, p.qp(), ""))
	assert.Equal(t, minus(syscall.ETIMEDOUT), p.expect(uabi.CMEventUnreachable).Status)
	assert.Contains(t, <-said, "does not answer")
}

// TestHungUp: the peer is no iWARP program, and closes.
func TestHungUp(t *testing.T) {
	rude, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer rude.Close()
	p := newDevice(t).program()
	c := p.create(2)
	p.resolve(c, netip.MustParseAddrPort(rude.Addr().String()))
	require.NoError(t, p.connect(c, p.qp(), ""))
	nc, err := rude.Accept()
	require.NoError(t, err)
	require.NoError(t, nc.Close())
	assert.Equal(t, minus(syscall.ECONNRESET), p.expect(uabi.CMEventRejected).Status)
}

// TestOrder: requests reach the server's program in the order of rdma_connect.
func TestOrder(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	_, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
	const n = 4
	for round := range 5 {
		var ids, qps [n]uint32
		for k := range n {
			ids[k], qps[k] = client.create(uint64(k)+2), client.qp()
			client.resolve(ids[k], at)
		}
		for k := range n {
			require.NoError(t, client.connect(ids[k], qps[k], fmt.Sprint(round, k)))
		}
		for k := range n {
			assert.Equal(t, fmt.Sprint(round, k), private(server.expect(uabi.CMEventConnectRequest)))
		}
	}
}

// TestIPv6, and a listener for both families.
func TestIPv6(t *testing.T) {
	v6, any6 := netip.IPv6Loopback(), netip.IPv6Unspecified()
	p := newDevice(t).program()
	l, at := p.listen(1, netip.AddrPortFrom(any6, 0))
	r := p.route(l)
	assert.Zero(t, r.NodeGUID, "all addresses are no device's")
	assert.Zero(t, r.PortNum)
	for _, dst := range []netip.Addr{v6, loopback} {
		c := p.create(2)
		p.resolve(c, netip.AddrPortFrom(dst, at.Port()))
		require.NoError(t, p.connect(c, p.qp(), ""))
		s := p.expect(uabi.CMEventConnectRequest).ID
		assert.Equal(t, sockaddr(netip.AddrPortFrom(netip.AddrFrom16(dst.As16()), at.Port())), p.route(s).Src)
		must(p, uabi.CMReject, &uabi.Reject{ID: s}, 0)
		p.expect(uabi.CMEventRejected)
	}
	only := p.create(3)
	on := uint32(1)
	copy(p.arena[dataAt:], []byte{byte(on), 0, 0, 0})
	must(p, uabi.CMSetOption, &uabi.SetOption{OptVal: p.at(dataAt), ID: only, OptName: uabi.CMOptionAFOnly, OptLen: 4}, 0)
	port := uint16(20000 + rand.IntN(10000)) // which the system gives to nobody by itself
	require.NoError(t, p.bind(only, netip.AddrPortFrom(any6, port)))
	four := p.create(4)
	require.NoError(t, p.bind(four, netip.AddrPortFrom(netip.IPv4Unspecified(), p.port(only))), "the other family's port is free")
	c := p.create(5)
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMResolveIP,
		&uabi.ResolveIP{Src: sockaddr(netip.AddrPortFrom(loopback, 0)), Dst: sockaddr(netip.AddrPortFrom(v6, 1)), ID: c}, 0)))
}
