//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/ucma"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// nics are the devices of one process with these addresses, each with the rdma_cm of all. Those behind the first are RoCE adapters.
func nics(t *testing.T, texts ...string) (list []*device) {
	t.Helper()
	var all []*uverbs.Device
	for i, text := range texts {
		uv, err := uverbs.New(uverbs.Config{Name: "nic" + string(rune('0'+i)), Addr: netip.MustParseAddr(text), CRC: true, RoCE: i > 0, Rate: 25, MTU: 1024})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, uv.Close()) })
		all = append(all, uv)
	}
	cm := ucma.New(all...)
	for _, uv := range all {
		list = append(list, &device{t: t, uv: uv, ucm: cm})
	}
	return list
}

func guidOf(text string) [8]byte { return sysfs.GUID(netip.MustParseAddr(text)) }

// TestDeviceByAddress: an id is bound to the device that has its address, whether it was bound to it, came to it or resolved it;
// and queue pairs are those of that device.
func TestDeviceByAddress(t *testing.T) {
	const one, two = "127.0.0.2", "127.0.0.3"
	list := nics(t, one, two)
	first, second := list[0].program(), list[1].program()
	l, at := second.listen(1, netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
	assert.Zero(t, second.route(l).NodeGUID, "it listens on all")

	// From the first device to the second.
	c := first.create(2)
	require.NoError(t, first.bind(c, netip.AddrPortFrom(netip.MustParseAddr(one), 0)))
	assert.Equal(t, guidOf(one), first.route(c).NodeGUID)
	first.resolve(c, netip.AddrPortFrom(netip.MustParseAddr(two), at.Port()))
	assert.Zero(t, first.route(c).NumPaths, "the first is an RNIC")
	cqp, sqp := first.qp(), second.qp()
	require.NoError(t, first.connect(c, cqp, ""))
	s := second.expect(uabi.CMEventConnectRequest).ID
	assert.Equal(t, guidOf(two), second.route(s).NodeGUID, "a request has the device of the address that it came to")
	assert.Equal(t, syscall.EINVAL, refused(t, second.accept(s, 3, cqp, "")), "a queue pair of the other device, or of none")
	require.NoError(t, second.accept(s, 3, sqp, ""))
	second.expect(uabi.CMEventEstablished)
	first.expect(uabi.CMEventEstablished)

	// From the second, by the address that the system chooses, to itself.
	c = second.create(4)
	must(second, uabi.CMResolveIP, &uabi.ResolveIP{
		Src: sockaddr(netip.AddrPortFrom(netip.MustParseAddr(two), 0)), Dst: sockaddr(netip.AddrPortFrom(netip.MustParseAddr(one), at.Port())), ID: c, TimeoutMS: 2000,
	}, 0)
	second.expect(uabi.CMEventAddrResolved)
	must(second, uabi.CMResolveRoute, &uabi.ResolveRoute{ID: c, TimeoutMS: 2000}, 0)
	second.expect(uabi.CMEventRouteResolved)
	r := second.route(c)
	assert.Equal(t, guidOf(two), r.NodeGUID)
	assert.EqualValues(t, 1, r.NumPaths, "the second is a RoCE adapter")
	assert.EqualValues(t, 3, r.Path[0].MTU)
	assert.EqualValues(t, 15, r.Path[0].Rate, "25 Gb/s")
	require.NoError(t, second.connect(c, second.qp(), ""))
	s = second.expect(uabi.CMEventConnectRequest).ID
	assert.Equal(t, guidOf(one), second.route(s).NodeGUID)
	assert.Equal(t, syscall.EINVAL, refused(t, second.accept(s, 5, second.qp(), "")), "this program's are the second's")

	// One that is bound to a number alone has a device when it knows where to.
	c = first.create(8)
	require.NoError(t, first.bind(c, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	assert.Zero(t, first.route(c).NodeGUID)
	first.resolve(c, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port()))
	assert.Equal(t, guidOf(one), first.route(c).NodeGUID)

	// Other addresses of the loopback are the first's.
	for _, a := range []string{"127.0.0.9", "::1"} {
		c = first.create(6)
		require.NoError(t, first.bind(c, netip.AddrPortFrom(netip.MustParseAddr(a), 0)))
		assert.Equal(t, guidOf(one), first.route(c).NodeGUID, a)
	}
	// What no device has is refused, and names what they have.
	c = first.create(7)
	err := first.bind(c, netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), 0))
	assert.Equal(t, syscall.ENODEV, refused(t, err))
	assert.ErrorContains(t, err, "no device has 192.0.2.1: nic0 has 127.0.0.2, nic1 has 127.0.0.3")
	err = do(first, uabi.CMResolveIP, &uabi.ResolveIP{Src: sockaddr(netip.MustParseAddrPort("192.0.2.1:0")), Dst: sockaddr(at), ID: c, TimeoutMS: 2000}, 0)
	assert.Equal(t, syscall.ENODEV, refused(t, err))
	err = first.bind(c, netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), 7174))
	assert.Equal(t, syscall.ENODEV, refused(t, err), "with a number, too")
	require.NoError(t, first.bind(c, netip.AddrPortFrom(netip.MustParseAddr(two), 0)), "it is idle still")
	assert.Equal(t, guidOf(two), first.route(c).NodeGUID)
}

// TestDatagramsByAddress: ids for datagrams are at the address of a device, too.
func TestDatagramsByAddress(t *testing.T) {
	list := nics(t, "127.0.0.2", "127.0.0.3")
	p := list[1].program()
	for text, want := range map[string]string{"127.0.0.3": "127.0.0.3", "127.0.0.2": "127.0.0.2", "0.0.0.0": "127.0.0.2"} {
		i := p.createUD(1)
		require.NoError(t, p.bind(i, netip.AddrPortFrom(netip.MustParseAddr(text), 0)))
		assert.Equal(t, guidOf(want), p.route(i).NodeGUID, text)
		assert.Equal(t, netip.MustParseAddr(want).As4(), p.route(i).Src.FlowInfo, text)
	}
	l := p.createUD(2)
	require.NoError(t, p.bind(l, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), 0)))
	must(p, uabi.CMListen, &uabi.Listen{ID: l}, 0)
	c := p.createUD(3)
	p.resolve(c, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), p.port(l)))
	first := list[0].program()
	foreign := first.createUD(5)
	require.NoError(t, first.bind(foreign, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), 0)))
	require.NoError(t, p.connect(c, 0, ""))
	s := p.expect(uabi.CMEventConnectRequest).ID
	assert.Equal(t, guidOf("127.0.0.3"), p.route(s).NodeGUID)
	assert.Equal(t, syscall.EINVAL, refused(t, p.accept(s, 4, first.udQP(foreign), "")), "a queue pair of another device")
	require.NoError(t, p.accept(s, 4, p.udQP(s), ""))
	p.expect(uabi.CMEventEstablished)
}

// TestRequestForNobody: one that comes to an address that no device has is rejected, and the listener goes on.
func TestRequestForNobody(t *testing.T) {
	var other netip.Addr
	var on string
	all, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && i.Flags&net.FlagUp != 0 {
				other, on = p.Addr(), i.Name
			}
		}
	}
	if !other.IsValid() {
		t.Skip("this host has no address but loopback")
	}
	server := nics(t, "127.0.0.2", "127.0.0.3")[1].program()
	l := server.create(1)
	require.NoError(t, server.bind(l, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	at := netip.AddrPortFrom(other, server.port(l))
	client := newDevice(t).program()
	must(server, uabi.CMListen, &uabi.Listen{ID: l, Backlog: 2}, 0)
	for range 5 { // more than the backlog
		c := client.create(2)
		client.resolve(c, netip.AddrPortFrom(other, at.Port()))
		require.NoError(t, client.connect(c, client.qp(), ""))
		client.expect(uabi.CMEventRejected)
		client.destroy(c)
	}
	assert.Zero(t, server.tokens(), "its program is told nothing")
	c := client.create(3)
	client.resolve(c, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), at.Port()))
	require.NoError(t, client.connect(c, client.qp(), ""))
	server.expect(uabi.CMEventConnectRequest)

	// On the interface of a device it would be that one's.
	near, err := uverbs.New(uverbs.Config{Addr: netip.MustParseAddr("127.0.0.5"), Interface: on})
	require.NoError(t, err)
	defer func() { require.NoError(t, near.Close()) }()
	p := (&device{t: t, uv: near, ucm: ucma.New(newDevice(t).uv, near)}).program()
	i := p.create(4)
	require.NoError(t, p.bind(i, netip.AddrPortFrom(other, 0)))
	assert.Equal(t, near.GUID(), p.route(i).NodeGUID)
	p.destroy(i)
}
