//go:build linux && (amd64 || arm64)

package uverbs

import (
	"net/netip"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// ah is an address handle: where a datagram goes, and which of the device's addresses it comes from.
type ah struct {
	pd   *pd
	addr netip.Addr
	from int
}

func init() {
	legacy[uabi.CmdCreateAH] = control("CREATE_AH", (*File).createAH)
	legacy[uabi.CmdDestroyAH] = control("DESTROY_AH", func(f *File, q *uabi.DestroyAH, _ *uabi.None) error {
		return destroy(&f.ahs, q.AHHandle, "address handle", func(*ah) error { return nil })
	})
}

// createAH takes the address out of the destination GID. Errors: EINVAL for one that has none, or a multicast one.
func (f *File) createAH(q *uabi.CreateAH, p *uabi.CreateAHResp) error {
	d, err := use(&f.pds, q.PDHandle, "protection domain")
	if err != nil {
		return err
	}
	to, index := plain(netip.AddrFrom16(q.Attr.GRH.DGID)), int(q.Attr.GRH.SGIDIndex)
	from, ok := f.dev.addressAt(index)
	switch {
	case q.Attr.PortNum != 1:
		return refuse(syscall.EINVAL, "port %d: the device has port 1 alone", q.Attr.PortNum)
	case q.Attr.IsGlobal == 0 || to.IsUnspecified():
		f.dev.Report("gid", "a program gives an address no GID of the peer: let it use GID index 0 (often the option -g 0, or -x 0)")
		return refuse(syscall.EINVAL, "the address has no GID")
	case !ok:
		return f.dev.noGID(index)
	case to.IsMulticast():
		return refuse(syscall.EINVAL, "the GID is a multicast one")
	}
	me := f.dev.addrs[from]
	if plain(me).Is4() != to.Is4() {
		return refuse(syscall.EINVAL, "the GID at index %d, %v, reaches no %v: choose one of its kind (sgid_index)", index, me, to)
	}
	if to.IsLinkLocalUnicast() && to.Is6() {
		to = to.WithZone(me.Zone())
	}
	return created(f, &f.ahs, &ah{d, to, from}, &p.AHHandle, func() {})
}
