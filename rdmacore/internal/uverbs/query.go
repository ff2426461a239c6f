//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// Limits of the device, where it has less than the RNIC below it.
const (
	maxWR     = 16384
	maxSGE    = 16
	maxCQE    = 1 << 20
	maxReads  = 128
	maxInline = 4096
	// minInline is what a queue pair takes inline, in octets, when the program asks for less: adapters round up, Linux siw
	// too, and programs (rdma_xclient) have come to post inline without having asked.
	minInline = 64
	// maxMessage is max_msg_sz: what Linux devices state.
	maxMessage = 1 << 30
)

func init() {
	legacy[uabi.CmdGetContext] = control("GET_CONTEXT", (*File).getContext)
	legacy[uabi.CmdGetContext].opens = true
	legacy[uabi.CmdQueryDevice] = control("QUERY_DEVICE", func(f *File, _ *uabi.QueryDevice, p *uabi.QueryDeviceResp) error {
		f.dev.attributes(p)
		return nil
	})
	extended[uabi.CmdQueryDevice] = exControl("EX_QUERY_DEVICE", 8, size[uabi.QueryDeviceResp]()+8,
		func(f *File, q *uabi.ExQueryDevice, p *uabi.ExQueryDeviceResp) error {
			if q.CompMask != 0 || q.Reserved != 0 {
				return refuse(syscall.EINVAL, "comp_mask and reserved have to be 0")
			}
			f.dev.attributes(&p.Base)
			p.DeviceCapFlagsEx = uint64(p.Base.DeviceCapFlags)
			return nil
		}, func(p *uabi.ExQueryDeviceResp, n uint32) { p.ResponseLength = n })
	legacy[uabi.CmdQueryPort] = control("QUERY_PORT", (*File).queryPort)
}

// getContext makes the context of the File, with its channel of asynchronous events. Once: EINVAL.
func (f *File) getContext(_ *uabi.GetContext, p *uabi.GetContextResp) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return refuse(syscall.EIO, "the device is closed")
	}
	if f.async.Load() != nil {
		return refuse(syscall.EINVAL, "this open has a context already")
	}
	c, fd, err := newChannel(f.dev, size[uabi.AsyncEventDesc]())
	if err != nil {
		return err
	}
	f.async.Store(c)
	*p = uabi.GetContextResp{AsyncFD: uint32(fd), NumCompVectors: 1}
	return nil
}

// maxReadSGE is how many elements an RDMA Read may have: an RNIC's has one (verbs draft 8.1.2.2), a RoCE adapter's as many as others.
func (d *Device) maxReadSGE() uint32 {
	if d.config.RoCE {
		return maxSGE
	}
	return 1
}

// attributes are those of the device, which are the RNIC's as far as the ABI can say them.
func (d *Device) attributes(p *uabi.QueryDeviceResp) {
	l := &d.limits
	*p = uabi.QueryDeviceResp{
		FWVer: 1 << 32, NodeGUID: d.guid, SysImageGUID: d.guid, MaxMRSize: 1 << 40, PageSizeCap: 0xfffff000,
		VendorID: 0x626d74, VendorPartID: 1, HWVer: 1, // siw's; pyverbs wants some
		MaxQP: uint32(l.QPs), MaxQPWR: maxWR, MaxSGE: maxSGE, MaxSGERd: d.maxReadSGE(),
		MaxCQ: uint32(l.CQs), MaxCQE: maxCQE, MaxMR: uint32(min(l.Regions, maxObjects-1)), MaxPD: uint32(l.PDs),
		MaxQPRdAtom: maxReads, MaxResRdAtom: maxReads, MaxQPInitRdAtom: maxReads,
		MaxMW: uint32(min(l.Windows, maxObjects-1)), MaxAH: maxObjects - 1,
		AtomicCap: atomicGlob,
		MaxSRQ:    uint32(l.SRQs), MaxSRQWR: maxWR, MaxSRQSGE: maxSGE, MaxPkeys: 1, PhysPortCnt: 1,
		DeviceCapFlags: uabi.DeviceMemMgtExtensions | uabi.DeviceSRQResize | uabi.DeviceMemWindow | uabi.DeviceMemWindowType2B,
	}
	if d.config.RoCE {
		p.AtomicCap = atomicHCA
	}
}

// What atomics are atomic with: the device's alone, which is what RoCE adapters say, and programs for them ask whether it is
// just that (UCX up to 1.13); or the processors' too, which is so here.
const (
	atomicHCA  = 1
	atomicGlob = 2
)

// queryPort answers for port 1, the only one: Ethernet, and as the port is.
func (f *File) queryPort(q *uabi.QueryPort, p *uabi.QueryPortResp) error {
	if q.PortNum != 1 {
		return refuse(syscall.EINVAL, "port %d: the device has port 1 alone", q.PortNum)
	}
	s := f.dev.PortState()
	*p = uabi.QueryPortResp{
		MaxMsgSz: maxMessage, GIDTblLen: uint32(f.dev.gids()), PkeyTblLen: 1, State: s.State[0] - '0', MaxMTU: 5, ActiveMTU: f.dev.mtu, MaxVLNum: 1,
		ActiveWidth: s.rate.Width, ActiveSpeed: s.rate.Speed, PhysState: s.PhysState[0] - '0', LinkLayer: 2, PortCapFlags: 1 << 16, // CM
	}
	return nil
}
