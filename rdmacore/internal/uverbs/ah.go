//go:build linux && (amd64 || arm64)

package uverbs

import (
	"net/netip"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// ah is an address handle: where a datagram goes.
type ah struct {
	pd   *pd
	addr netip.Addr
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
	to := plain(netip.AddrFrom16(q.Attr.GRH.DGID))
	switch {
	case q.Attr.PortNum != 1:
		return refuse(syscall.EINVAL, "port %d: the device has port 1 alone", q.Attr.PortNum)
	case q.Attr.IsGlobal == 0 || to.IsUnspecified():
		f.dev.Report("gid", "a program gives an address no GID of the peer: let it use GID index 0 (often the option -g 0, or -x 0)")
		return refuse(syscall.EINVAL, "the address has no GID")
	case int(q.Attr.GRH.SGIDIndex) != f.dev.GIDIndex():
		return refuse(syscall.EINVAL, "GID index %d: datagrams leave from index %d alone", q.Attr.GRH.SGIDIndex, f.dev.GIDIndex())
	case to.IsMulticast():
		return refuse(syscall.EINVAL, "the GID is a multicast one")
	case to.IsLinkLocalUnicast() && to.Is6():
		to = to.WithZone(f.dev.config.Addr.Zone())
	}
	return created(f, &f.ahs, &ah{d, to}, &p.AHHandle, func() {})
}
