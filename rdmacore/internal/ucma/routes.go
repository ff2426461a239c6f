//go:build linux && (amd64 || arm64)

package ucma

import (
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// queryRouteMin is the command as QUERY_ROUTE of older programs has it, without an option.
const queryRouteMin = int(unsafe.Offsetof(uabi.CMQueryCmd{}.Option))

// queryRoute tells an id's addresses and device. The index of the device stays as the program preset it, which is
// "unknown": librdmacm goes by the GUID then.
func queryRoute(c *call, q *uabi.CMQueryCmd) error {
	return c.with(q.ID, func(i *id) error {
		r := uabi.QueryRouteResp{Src: sockaddr(i.src), Dst: sockaddr(i.dst)}
		r.NodeGUID, r.PortNum = i.device()
		if r.PortNum != 0 {
			r.Path[0] = i.path()
		}
		if i.hasPath() {
			r.NumPaths = 1
		}
		return c.respond(q.Response, umem.Bytes(&r)[:uabi.QueryRouteRespMin], uabi.QueryRouteRespMin)
	})
}

// query is QUERY_ROUTE in three parts.
func query(c *call, q *uabi.CMQueryCmd) error {
	return c.with(q.ID, func(i *id) error {
		guid, port := i.device()
		switch q.Option {
		case uabi.CMQueryAddr:
			r := uabi.QueryAddrResp{NodeGUID: guid, PortNum: port}
			r.Src.SockaddrIn6, r.Dst.SockaddrIn6 = sockaddr(i.src), sockaddr(i.dst)
			r.SrcSize, r.DstSize = uint16(sockaddrLen(&r.Src.SockaddrIn6)), uint16(sockaddrLen(&r.Dst.SockaddrIn6))
			r.Pkey = i.pkey(port)
			return c.respond(q.Response, umem.Bytes(&r)[:uabi.QueryAddrRespMin], uabi.QueryAddrRespMin)
		case uabi.CMQueryPath:
			r := uabi.QueryPathResp{}
			return c.respond(q.Response, umem.Bytes(&r), len(umem.Bytes(&r)))
		case uabi.CMQueryGID:
			// As addresses of AF_IB: 48 octets of which the GID and the P_Key matter.
			r := uabi.QueryAddrResp{NodeGUID: guid, PortNum: port, Pkey: i.pkey(port)}
			r.SrcSize, r.DstSize = sockaddrIBLen, sockaddrIBLen
			putIB(&r.Src, gid(i.src.Addr()))
			putIB(&r.Dst, gid(i.dst.Addr()))
			return c.respond(q.Response, umem.Bytes(&r)[:uabi.QueryAddrRespMin], uabi.QueryAddrRespMin)
		}
		return refuse(syscall.ENOSYS, "there is no option %d of QUERY", q.Option)
	})
}

// A struct sockaddr_ib: family, P_Key and flow information, then the GID.
const (
	afIB          = 27
	sockaddrIBLen = 48
)

func putIB(s *uabi.SockaddrStorage, g uabi.GID) {
	b := umem.Bytes(s)
	s.Family = afIB
	b[2], b[3] = 0xff, 0xff
	copy(b[8:], g[:])
}

// defaultPkey is full membership of the default partition.
const defaultPkey = 0xffff

func (i *id) pkey(port uint8) uint16 {
	if port == 0 {
		return 0
	}
	return defaultPkey
}

// device is the GUID of the device that an id is bound to, and its port: zeros while it
// is not bound, or to all addresses; dev.mu is held.
func (i *id) device() (guid [8]byte, port uint8) {
	if i.nic == nil || wildcard(i.src) {
		return guid, 0
	}
	return i.nic.GUID(), 1
}

// hasPath reports whether to state a path record: an iWARP device never has one.
func (i *id) hasPath() bool {
	return i.roce() && (i.state == routeResolved || i.state == connecting)
}

// path is the path record between an id's addresses, with the GIDs and the P_Key only if
// there is no path; dev.mu is held.
func (i *id) path() uabi.PathRec {
	p := uabi.PathRec{SGID: gid(i.src.Addr()), DGID: gid(i.dst.Addr()), Pkey: [2]uint8{0xff, 0xff}}
	if i.hasPath() {
		p.Reversible, p.NumbPath, p.HopLimit = 1, 1, 64
		mtu, rate := i.nic.Path()
		p.MTU, p.Rate = uint32(mtu), rate
		p.MTUSelector, p.RateSelector = exactly, exactly
		p.PacketLifeTime, p.PacketLifeTimeSelector = 16, exactly
	}
	return p
}

// exactly is of enum ib_sa_selector.
const exactly = 2
