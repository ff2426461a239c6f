//go:build linux && (amd64 || arm64)

package uverbs

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
)

// TestByHandWithGIDs: queue pairs of devices with several addresses find each other at each of them, by the index of the GID that
// the program names.
func TestByHandWithGIDs(t *testing.T) {
	gids := []netip.Addr{netip.MustParseAddr("127.0.0.4"), netip.IPv6Loopback()}
	for index, gid := range append([]netip.Addr{addr1}, gids...) {
		for _, roce := range []bool{false, true} {
			a := newSide(started(t, Config{Addr: addr1, GIDs: gids, CRC: true, RoCE: roce}), allRights)
			b := newSide(started(t, Config{Addr: addr2, GIDs: []netip.Addr{netip.MustParseAddr("127.0.0.5"), netip.IPv6Loopback()}, RoCE: roce}), allRights)
			raise := func(s *side, own int, peer netip.Addr, dest uint32) {
				require.NoError(t, s.to(uabi.QPSInit))
				m := s.whole(uabi.QPSRTR)
				m.DestQPNum, m.Dest.DGID, m.Dest.SGIDIndex = dest, peer.As16(), uint8(own)
				require.NoError(t, s.modify(m))
				require.NoError(t, s.to(uabi.QPSRTS))
			}
			raise(a, index, b.dev.addrs[index], b.qp.QPN)
			raise(b, index, gid, a.qp.QPN)
			talk(t, a, b)
		}
	}
}

// TestUDWithGIDs: a datagram goes from the address that its handle names to that which the handle says, and tells both.
func TestUDWithGIDs(t *testing.T) {
	a := newUD(started(t, Config{Addr: addr1, GIDs: []netip.Addr{netip.MustParseAddr("127.0.0.4"), netip.IPv6Loopback()}}), nil)
	b := newUD(started(t, Config{Addr: addr2, GIDs: []netip.Addr{netip.MustParseAddr("127.0.0.5"), netip.IPv6Loopback()}}), nil)
	ah := func(from int, to netip.Addr) (uint32, error) {
		r, err := write[uabi.CreateAHResp](a.program, uabi.CmdCreateAH, &uabi.CreateAH{
			PDHandle: a.pd, Attr: uabi.AHAttr{GRH: uabi.GlobalRoute{DGID: to.As16(), SGIDIndex: uint8(from)}, IsGlobal: 1, PortNum: 1},
		})
		return r.AHHandle, err
	}
	a.fill(0, []byte("hello"))
	for from, source := range a.dev.addrs {
		for _, dest := range b.dev.addrs {
			h, err := ah(from, dest)
			if source.Is4() != dest.Is4() {
				assert.Equal(t, syscall.EINVAL, errnoOf(t, err), "%v to %v", source, dest)
				continue
			}
			require.NoError(t, err)
			_, err = b.recv(7, b.sge(0, 64))
			require.NoError(t, err)
			a.posted(udTo(signaled(uabi.WRSend, 3), h, b.qp.QPN, udKey), a.sge(0, 5))
			a.one()
			assert.EqualValues(t, udwire.GRHSize+5, b.one().ByteLen)
			grh, s, d := b.read(0, udwire.GRHSize), source.As16(), dest.As16()
			assert.Equal(t, s[:], grh[8:24], "%v to %v", source, dest)
			assert.Equal(t, d[:], grh[24:40], "%v to %v", source, dest)
		}
	}
	_, err := ah(3, addr2)
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err), "there is no such index")
	require.Equal(t, 1, a.dev.MoveGID())
	_, err = ah(0, addr2)
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err), "it is empty")
	_, err = ah(1, addr2)
	assert.NoError(t, err)
}

// TestToItselfByGID: a queue pair whose peer is itself, at an address that is not the device's first.
func TestToItselfByGID(t *testing.T) {
	a := newSide(started(t, Config{Addr: addr1, GIDs: []netip.Addr{netip.IPv6Loopback()}}), allRights)
	require.NoError(t, a.to(uabi.QPSInit))
	m := a.whole(uabi.QPSRTR)
	m.DestQPNum, m.Dest.DGID, m.Dest.SGIDIndex = a.qp.QPN, netip.IPv6Loopback().As16(), 1
	require.NoError(t, a.modify(m))
	require.NoError(t, a.to(uabi.QPSRTS))
	a.fill(0, []byte("x"))
	_, err := a.recv(7, a.sge(1024, 64))
	require.NoError(t, err)
	a.posted(signaled(uabi.WRSend, 8), a.sge(0, 1))
	a.one()
	a.one()
	assert.Equal(t, []byte("x"), a.read(1024, 1))
	q, err := a.dev.QP(a.qp.QPN).qp.Query()
	require.NoError(t, err)
	assert.Equal(t, netip.IPv6Loopback(), plain(netip.MustParseAddrPort(q.Stream.Conn.LocalAddr().String()).Addr()))
}

// TestPortOfGIDs: a query says how many GIDs there are, what the rate is and the MTU; an index behind the last is refused as adapters do.
func TestPortOfGIDs(t *testing.T) {
	p := started(t, Config{Addr: addr1, GIDs: []netip.Addr{addr2}, RoCE: true, Rate: 400, MTU: 1024})
	r := must[uabi.QueryPortResp](p, uabi.CmdQueryPort, &uabi.QueryPort{PortNum: 1})
	assert.EqualValues(t, 2, r.GIDTblLen)
	assert.EqualValues(t, 3, r.ActiveMTU)
	assert.EqualValues(t, 5, r.MaxMTU)
	assert.EqualValues(t, 2, r.ActiveWidth)
	assert.EqualValues(t, 128, r.ActiveSpeed)
	s := newSide(p, allRights)
	require.NoError(t, s.to(uabi.QPSInit))
	m := s.whole(uabi.QPSRTR)
	m.DestQPNum, m.Dest.DGID, m.Dest.SGIDIndex = 0x100, addr1.As16(), 2
	assert.Equal(t, syscall.EINVAL, errnoOf(t, s.modify(m)))
	for _, c := range []Config{{Addr: addr1, Rate: 99}, {Addr: addr1, MTU: 1500}} {
		_, err := New(c)
		assert.Error(t, err)
	}
}

// TestHas: addresses of a link are the same whatever the link, unless both say which.
func TestHas(t *testing.T) {
	d := started(t, Config{Addr: addr1, GIDs: []netip.Addr{netip.MustParseAddr("::1")}}).dev
	lo, err := net.InterfaceByName("lo")
	require.NoError(t, err)
	d.addrs = append(d.addrs, netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("fe80::2%lo"))
	assert.True(t, d.Has(netip.MustParseAddr(fmt.Sprintf("fe80::2%%%d", lo.Index))), "as the system has it")
	assert.False(t, d.Has(netip.MustParseAddr(fmt.Sprintf("fe80::2%%%d", lo.Index+1))))
	for text, want := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "127.0.0.2": false, "::1": true, "fe80::1": true, "fe80::1%eth0": true, "fe80::1%eth1": false,
	} {
		assert.Equal(t, want, d.Has(netip.MustParseAddr(text)), text)
	}
}

// TestGoneGID: an address that the interface has lost is no obstacle to queue pairs; the first is.
func TestGoneGID(t *testing.T) {
	p := started(t, Config{Addr: addr1, GIDs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}})
	newSide(p, allRights)
	u := newUD(p, nil)
	h := must[uabi.CreateAHResp](p, uabi.CmdCreateAH, &uabi.CreateAH{
		PDHandle: u.pd, Attr: uabi.AHAttr{GRH: uabi.GlobalRoute{DGID: addr1.As16(), SGIDIndex: 1}, IsGlobal: 1, PortNum: 1},
	}).AHHandle
	u.posted(udTo(signaled(uabi.WRSend, 3), h, u.qp.QPN, udKey), u.sge(0, 5))
	u.one() // and the datagram is lost, as on a cable
	u.destroy()
	p = started(t, Config{Addr: netip.MustParseAddr("192.0.2.1")})
	pd, cq := p.pd(), p.cq(8, -1)
	_, err := write[uabi.CreateQPResp](p, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: config(pd, cq, cq)})
	assert.Equal(t, syscall.EADDRNOTAVAIL, errnoOf(t, err))
}
