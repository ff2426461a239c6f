package nvmeof

import "github.com/softrnic/softrnic/verbs"

// CNS values.
const (
	idNS         = 0x00
	idController = 0x01
	idActiveList = 0x02
	idDescList   = 0x03
	idCommandSet = 0x06 // of the controller, for a command set

	// oncs
	oncsDSM         = 1 << 2
	oncsWriteZeroes = 1 << 3
)

func (r *request) identify(c *controller) ([]byte, Status) {
	nsid := r.cmd.nsid()
	var fill func([]byte)
	switch r.cmd[40] {
	case idController:
		fill = c.identifyController
	case idNS:
		if c.subsys == nil || nsid == 0 || nsid > maxNamespaces {
			return nil, InvalidNamespace | DNR
		}
		fill = func(b []byte) { c.subsys.identify(b, nsid) }
	case idActiveList:
		if c.subsys == nil || nsid >= 0xfffffffe {
			return nil, InvalidNamespace | DNR
		}
		fill = func(b []byte) {
			for _, id := range c.subsys.nsids() {
				if id > nsid && len(b) >= 4 {
					le.PutUint32(b, id)
					b = b[4:]
				}
			}
		}
	case idDescList:
		if c.subsys == nil || c.subsys.disk(nsid) == nil {
			return nil, InvalidNamespace | DNR
		}
		fill = func(b []byte) {
			for _, kind := range []byte{3, 2} { // UUID, NGUID
				b[0], b[1] = kind, 16
				copy(b[4:], c.subsys.id(nsid))
				b = b[20:]
			}
		}
	case idCommandSet:
		if c.subsys == nil || r.cmd[47] != 0 { // csi: NVM
			return nil, InvalidField | DNR
		}
		fill = identifyLimits
	default:
		return nil, InvalidField | DNR
	}
	b, status := r.reply(identifySize)
	if status == Success {
		clear(b)
		fill(b)
	}
	return b, status
}

func padded(b []byte, s string) {
	for i := copy(b, s); i < len(b); i++ {
		b[i] = ' '
	}
}

func (c *controller) identifyController(b []byte) {
	conf := &c.target.config
	padded(b[4:24], "softrnic")
	padded(b[24:64], "softrnic NVMe over Fabrics target")
	padded(b[64:72], verbs.Version)
	b[76] = 1 << 1 // cmic: several controllers
	b[77] = mdts
	le.PutUint16(b[78:], c.id)
	le.PutUint32(b[80:], version)
	le.PutUint32(b[96:], 1|1<<6) // ctratt: host identifiers of 128 bits, keep-alive by traffic
	b[111] = 1
	b[258], b[259], b[261] = 3, aerl, 4 // acl; lpa: extended data
	le.PutUint16(b[320:], 1)            // kas, 100 ms
	b[512], b[513] = 0x66, 0x44
	le.PutUint16(b[514:], uint16(conf.Depth))
	le.PutUint32(b[536:], 1|1<<2|1<<20) // sgls: supported, keyed, offset in the capsule
	copy(b[768:], c.nqn)
	ioccsz := conf.capsule(1) / 16
	if c.subsys == nil {
		b[111] = 2
		ioccsz = commandSize / 16
		le.PutUint16(b[514:], adminDepth)
	} else {
		le.PutUint32(b[92:], eventNSNotice)
		le.PutUint32(b[516:], maxNamespaces)
		le.PutUint16(b[520:], oncsDSM|oncsWriteZeroes)
		b[525] = 1 // vwc
	}
	le.PutUint32(b[1792:], uint32(ioccsz))
	le.PutUint32(b[1796:], completionSize/16)
	b[1803] = 1 // msdbd
}

// identifyLimits fills the page of the NVM command set: what mdts does not bound.
func identifyLimits(b []byte) {
	b[3] = clearRanges
	le.PutUint32(b[4:], clearBlocks)
	le.PutUint64(b[8:], clearBlocks)
}

// identify fills the page of a namespace; one that is not there is all zero.
func (s *Subsystem) identify(b []byte, nsid uint32) {
	d := s.disk(nsid)
	if d == nil {
		return
	}
	for _, at := range []int{0, 8, 16} { // nsze, ncap, nuse
		le.PutUint64(b[at:], uint64(d.Size())>>blockShift)
	}
	b[30] = 1 // nmic: shared
	copy(b[104:], s.id(nsid))
	b[128+2] = blockShift
}
