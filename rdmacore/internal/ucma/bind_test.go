//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

func TestBindReserves(t *testing.T) {
	p := newDevice(t).program()
	a := p.create(1)
	require.NoError(t, p.bind(a, netip.AddrPortFrom(loopback, 0)))
	at := netip.AddrPortFrom(loopback, p.port(a))
	require.NotZero(t, at.Port())
	assert.Equal(t, syscall.EINVAL, refused(t, p.bind(a, at)), "twice")
	b := p.create(2)
	assert.Equal(t, syscall.EADDRINUSE, refused(t, p.bind(b, at)))
	_, err := net.Dial("tcp", at.String())
	assert.ErrorIs(t, err, syscall.ECONNREFUSED, "it does not listen yet")
	must(p, uabi.CMListen, &uabi.Listen{ID: a, Backlog: 5000}, 0)
	assert.Equal(t, syscall.EADDRINUSE, refused(t, p.bind(b, at)))
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMListen, &uabi.Listen{ID: a}, 0)), "twice")
	p.destroy(a)
	require.NoError(t, p.bind(b, at))
	assert.Equal(t, syscall.EADDRNOTAVAIL, refused(t, p.bind(p.create(3), netip.MustParseAddrPort("192.0.2.1:0"))))
	assert.Equal(t, syscall.EAFNOSUPPORT, refused(t, do(p, uabi.CMBindIP, &uabi.BindIP{ID: p.create(4)}, 0)))
	must(p, uabi.CMListen, &uabi.Listen{ID: p.create(5)}, 0) // of all IPv4 addresses
}

// TestBindAfterConnections: a server that starts again has its port, though connections of before wait for their
// end, and it is reserved as strictly.
func TestBindAfterConnections(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	l, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
	c, cqp, sqp := client.create(2), client.qp(), server.qp()
	client.resolve(c, at)
	require.NoError(t, client.connect(c, cqp, ""))
	s := server.expect(uabi.CMEventConnectRequest).ID
	require.NoError(t, server.accept(s, 3, sqp, ""))
	server.expect(uabi.CMEventEstablished)
	client.expect(uabi.CMEventEstablished)
	must(server, uabi.CMDisconnect, &uabi.Disconnect{ID: s}, 0) // the first to close waits
	server.expect(uabi.CMEventDisconnected)
	client.expect(uabi.CMEventDisconnected)
	server.destroy(l)
	again := server.create(4)
	require.NoError(t, server.bind(again, at))
	assert.Equal(t, syscall.EADDRINUSE, refused(t, server.bind(server.create(5), at)))
	must(server, uabi.CMListen, &uabi.Listen{ID: again}, 0)
}

func TestResolve(t *testing.T) {
	p := newDevice(t).program()
	to := func(num uint32, src, dst netip.AddrPort) error {
		return do(p, uabi.CMResolveIP, &uabi.ResolveIP{Src: sockaddr(src), Dst: sockaddr(dst), ID: num}, 0)
	}
	dst, none := netip.AddrPortFrom(loopback, 9), netip.AddrPort{}
	a := p.create(1)
	assert.Equal(t, syscall.EINVAL, refused(t, to(a, none, none)))
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMResolveRoute, &uabi.ResolveRoute{ID: a, TimeoutMS: 1}, 0)))
	require.NoError(t, to(a, none, dst))
	assert.Equal(t, syscall.EINVAL, refused(t, to(a, none, dst)), "twice")
	assert.NotZero(t, p.port(a))
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMResolveRoute, &uabi.ResolveRoute{ID: a}, 0)), "timeout_ms")
	assert.Equal(t, syscall.EINVAL, refused(t, p.connect(a, p.qp(), "")), "no route yet")

	b := p.create(2)
	two := netip.MustParseAddr("127.0.0.2")
	require.NoError(t, to(b, netip.AddrPortFrom(two, 0), dst))
	src := p.route(b).Src
	assert.Equal(t, two.As4(), src.FlowInfo)
	c := p.create(3)
	require.NoError(t, p.bind(c, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	bound := p.port(c)
	require.NoError(t, to(c, none, dst))
	src = p.route(c).Src
	assert.Equal(t, loopback.As4(), src.FlowInfo, "the source that leads there")
	assert.Equal(t, bound, p.port(c))
	assert.EqualValues(t, 0, p.route(c).NumPaths)
}

// TestNewerForms: BIND, RESOLVE_ADDR and QUERY say the same; AF_IB is no family of this device, so that
// librdmacm goes on with the forms of IP.
func TestNewerForms(t *testing.T) {
	p := newDevice(t).program()
	a := p.create(1)
	ib := uabi.CMBindAddr{ID: a, AddrSize: 48}
	ib.Addr.Family = 27
	assert.Equal(t, syscall.EAFNOSUPPORT, refused(t, do(p, uabi.CMBind, &ib, 0)))
	q := uabi.CMBindAddr{ID: a, AddrSize: 28}
	q.Addr.SockaddrIn6 = sockaddr(netip.AddrPortFrom(loopback, 0))
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMBind, &q, 0)), "the size of another family")
	q.AddrSize = 16
	require.NoError(t, do(p, uabi.CMBind, &q, 0))
	r := uabi.ResolveAddr{ID: a, DstSize: 16}
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMResolveAddr, &r, 0)))
	r.Dst.SockaddrIn6 = sockaddr(netip.AddrPortFrom(loopback, 9))
	require.NoError(t, do(p, uabi.CMResolveAddr, &r, 0))
	p.expect(uabi.CMEventAddrResolved)

	must(p, uabi.CMQuery, &uabi.CMQueryCmd{Response: p.resp(), ID: a, Option: uabi.CMQueryAddr}, 280)
	addr, route := got[uabi.QueryAddrResp](p), p.route(a)
	assert.Equal(t, route.NodeGUID, addr.NodeGUID)
	assert.Equal(t, route.Src, addr.Src.SockaddrIn6)
	assert.Equal(t, route.Dst, addr.Dst.SockaddrIn6)
	assert.EqualValues(t, 16, addr.DstSize)
	must(p, uabi.CMQuery, &uabi.CMQueryCmd{Response: p.resp(), ID: a, Option: uabi.CMQueryGID}, 280)
	assert.EqualValues(t, 27, got[uabi.QueryAddrResp](p).Src.Family)
	must(p, uabi.CMQuery, &uabi.CMQueryCmd{Response: p.resp(), ID: a, Option: uabi.CMQueryPath}, 8)
	assert.Zero(t, got[uabi.QueryPathResp](p).NumPaths)
	assert.Equal(t, syscall.ENOSYS, refused(t, do(p, uabi.CMQuery, &uabi.CMQueryCmd{Response: p.resp(), ID: a, Option: 9}, 280)))
	assert.Equal(t, syscall.ENOSPC, refused(t, do(p, uabi.CMQueryRoute, &uabi.CMQueryCmd{Response: p.resp(), ID: a}, 199)))

	p.arena[respAt+uabi.QueryRouteRespMin] = 0xaa
	p.route(a)
	assert.EqualValues(t, 0xaa, p.arena[respAt+uabi.QueryRouteRespMin], "ibdev_index stays as preset")
}

func TestOptions(t *testing.T) {
	p := newDevice(t).program()
	a := p.create(1)
	set := func(level, name, n uint32, value byte) error {
		copy(p.arena[dataAt:], []byte{value, 0, 0, 0})
		return do(p, uabi.CMSetOption, &uabi.SetOption{OptVal: p.at(dataAt), ID: a, Level: level, OptName: name, OptLen: n}, 0)
	}
	require.NoError(t, set(uabi.CMOptionID, uabi.CMOptionTOS, 1, 0x20))
	require.NoError(t, set(uabi.CMOptionID, uabi.CMOptionACKTimeout, 1, 14))
	require.NoError(t, set(uabi.CMOptionID, uabi.CMOptionReuseAddr, 4, 1))
	require.NoError(t, set(uabi.CMOptionID, uabi.CMOptionAFOnly, 4, 1))
	assert.Equal(t, syscall.EINVAL, refused(t, set(uabi.CMOptionID, uabi.CMOptionTOS, 4, 0)))
	assert.Equal(t, syscall.EINVAL, refused(t, set(uabi.CMOptionID, uabi.CMOptionTOS, 0, 0)))
	assert.Equal(t, syscall.EINVAL, refused(t, set(uabi.CMOptionID, uabi.CMOptionTOS, 1<<20, 0)))
	assert.Equal(t, syscall.ENOSYS, refused(t, set(uabi.CMOptionID, 77, 4, 0)))
	assert.Equal(t, syscall.ENOSYS, refused(t, set(7, 0, 1, 0)))
	assert.Equal(t, syscall.EINVAL, refused(t, set(uabi.CMOptionIB, uabi.CMOptionIBPath, 71, 0)))
	assert.Equal(t, syscall.EFAULT, refused(t, do(p, uabi.CMSetOption, &uabi.SetOption{OptVal: 8, ID: a, OptLen: 1}, 0)))
	p.resolved(a)
	p.expect(uabi.CMEventAddrResolved)
	assert.Equal(t, syscall.EINVAL, refused(t, set(uabi.CMOptionID, uabi.CMOptionAFOnly, 4, 1)))
	assert.Equal(t, syscall.EINVAL, refused(t, set(uabi.CMOptionID, uabi.CMOptionReuseAddr, 4, 0)))
	require.NoError(t, set(uabi.CMOptionIB, uabi.CMOptionIBPath, 72, 0))
	p.expect(uabi.CMEventRouteResolved)
	must(p, uabi.CMNotify, &uabi.Notify{ID: a}, 0)
}

func TestInitQPAttr(t *testing.T) {
	for roce, mask := range map[bool]uint32{
		false: uabi.QPState | uabi.QPAccessFlags, true: uabi.QPState | uabi.QPAccessFlags | uabi.QPPkeyIndex | uabi.QPPort,
	} {
		p := newDevice(t, func(c *uverbs.Config) { c.RoCE = roce }).program()
		a := p.create(1)
		attr := func(state uint32) error {
			return do(p, uabi.CMInitQPAttr, &uabi.InitQPAttr{Response: p.resp(), ID: a, QPState: state}, 144)
		}
		assert.Equal(t, syscall.EINVAL, refused(t, attr(uabi.QPSInit)), "at no device")
		p.resolved(a)
		require.NoError(t, attr(uabi.QPSInit))
		assert.Equal(t, mask, got[uabi.QPAttr](p).QPAttrMask)
		for _, s := range []uint32{uabi.QPSRTR, uabi.QPSRTS} {
			require.NoError(t, attr(s))
			assert.Zero(t, got[uabi.QPAttr](p).QPAttrMask)
			assert.Equal(t, s, got[uabi.QPAttr](p).QPState)
		}
		assert.Equal(t, syscall.EINVAL, refused(t, attr(uabi.QPSSQD)))
		assert.Equal(t, syscall.EINVAL, refused(t, attr(99)))
	}
}

// TestNotForRNICs: other port spaces, and multicast.
func TestNotForRNICs(t *testing.T) {
	p := newDevice(t).program()
	for ps, no := range map[uabi.PortSpace]syscall.Errno{uabi.PSIPoIB: syscall.EOPNOTSUPP, 7: syscall.EINVAL} {
		assert.Equal(t, no, refused(t, do(p, uabi.CMCreateID, &uabi.CreateID{Response: p.resp(), PS: ps}, 4)))
	}
	must(p, uabi.CMCreateID, &uabi.CreateID{Response: p.resp(), PS: uabi.PSIB}, 4)
	a := got[uabi.CreateIDResp](p).ID
	assert.Equal(t, syscall.ENOSYS, refused(t, do(p, uabi.CMJoinIPMcast, &uabi.JoinIPMcast{ID: a}, 4)))
	assert.Equal(t, syscall.ENOSYS, refused(t, do(p, uabi.CMJoinMcast, &uabi.JoinMcast{ID: a}, 4)))
	assert.Equal(t, syscall.ENOENT, refused(t, do(p, uabi.CMJoinMcast, &uabi.JoinMcast{ID: a + 1}, 4)))
	assert.Equal(t, syscall.EOPNOTSUPP, refused(t, do(p, uabi.CMResolveIBService, &uabi.ResolveIBService{ID: a}, 0)))
	assert.Equal(t, syscall.ENOENT, refused(t, do(p, uabi.CMLeaveMcast, &uabi.DestroyID{ID: a}, 4)))
}

// TestTrace: a line for each command, as strace would show it.
func TestTrace(t *testing.T) {
	var lines []string
	p := newDevice(t, func(c *uverbs.Config) {
		c.Trace = func(s string) {
			if strings.HasPrefix(s, "rdma_cm ") {
				lines = append(lines, s)
			}
		}
	}).program()
	a := p.create(1)
	require.NoError(t, p.bind(a, netip.AddrPortFrom(loopback, 0)))
	assert.Error(t, p.bind(a, netip.MustParseAddrPort("127.0.0.1:80")))
	p.resolved(a)
	p.expect(uabi.CMEventAddrResolved)
	p.destroy(a)
	assert.Equal(t, []string{
		"rdma_cm CREATE_ID(uid=0x1, ps=TCP, qp_type=2) = 0 (id=1)",
		"rdma_cm BIND_IP(addr=127.0.0.1:0, id=1) = 0",
		"rdma_cm BIND_IP(addr=127.0.0.1:80, id=1) = -1 EINVAL (id 1 is bound)",
		"rdma_cm RESOLVE_IP(dst=127.0.0.1:9, id=1, timeout_ms=1) = 0",
		fmt.Sprintf("rdma_cm GET_EVENT() = 0 (%s)", "ADDR_RESOLVED, id=1"),
		"rdma_cm DESTROY_ID(id=1) = 0 (events_reported=1)",
	}, lines)
}
