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

// Where the fields are in the page of a controller.
const (
	ctrlSerial    = 4 // 20 octets
	ctrlModel     = 24
	ctrlFirmware  = 64
	ctrlFeatures  = 76 // cmic
	ctrlMDTS      = 77
	ctrlID        = 78
	ctrlVersion   = 80
	ctrlEvents    = 92
	ctrlAttribute = 96
	ctrlType      = 111
	ctrlAborts    = 258
	ctrlEventsMax = 259
	ctrlLogs      = 261
	ctrlKAS       = 320
	ctrlSQES      = 512
	ctrlCQES      = 513
	ctrlMaxCmd    = 514
	ctrlNN        = 516
	ctrlONCS      = 520
	ctrlVWC       = 525
	ctrlSGLS      = 536
	ctrlNQN       = 768 // 256 octets
	ctrlIOCCSZ    = 1792
	ctrlIORCSZ    = 1796
	ctrlICDOFF    = 1800
	ctrlMSDBD     = 1803

	sglsSupported = 1
	sglsKeyed     = 1 << 2
	sglsOffset    = 1 << 20 // in the capsule
)

func (c *controller) identifyController(b []byte) {
	conf := &c.target.config
	padded(b[ctrlSerial:ctrlModel], "softrnic")
	padded(b[ctrlModel:ctrlFirmware], "softrnic NVMe over Fabrics target")
	padded(b[ctrlFirmware:72], verbs.Version().Release)
	b[ctrlFeatures] = 1 << 1 // several controllers
	b[ctrlMDTS] = mdts
	le.PutUint16(b[ctrlID:], c.id)
	le.PutUint32(b[ctrlVersion:], version)
	le.PutUint32(b[ctrlAttribute:], 1|1<<6) // host identifiers of 128 bits, keep-alive by traffic
	b[ctrlType] = 1
	b[ctrlAborts], b[ctrlEventsMax], b[ctrlLogs] = 3, aerl, 4 // extended data
	le.PutUint16(b[ctrlKAS:], 1)                              // 100 ms
	b[ctrlSQES], b[ctrlCQES] = 0x66, 0x44
	le.PutUint16(b[ctrlMaxCmd:], uint16(conf.Depth))
	le.PutUint32(b[ctrlSGLS:], sglsSupported|sglsKeyed|sglsOffset)
	copy(b[ctrlNQN:], c.nqn)
	ioccsz := conf.capsule(1) / 16
	if c.subsys == nil {
		b[ctrlType] = 2
		ioccsz = commandSize / 16
		le.PutUint16(b[ctrlMaxCmd:], adminDepth)
	} else {
		le.PutUint32(b[ctrlEvents:], eventNSNotice)
		le.PutUint32(b[ctrlNN:], maxNamespaces)
		le.PutUint16(b[ctrlONCS:], oncsDSM|oncsWriteZeroes)
		b[ctrlVWC] = 1
	}
	le.PutUint32(b[ctrlIOCCSZ:], uint32(ioccsz))
	le.PutUint32(b[ctrlIORCSZ:], completionSize/16)
	b[ctrlMSDBD] = 1
}

// identifyLimits fills the page of the NVM command set: what mdts does not bound.
func identifyLimits(b []byte) {
	b[3] = clearRanges
	le.PutUint32(b[4:], clearBlocks)
	le.PutUint64(b[8:], clearBlocks)
}

// And in the page of a namespace.
const (
	nsSize     = 0 // nsze, ncap, nuse: 8 octets each, in blocks
	nsCapacity = 8
	nsUse      = 16
	nsFormat   = 26 // flbas
	nsShared   = 30 // nmic
	nsNGUID    = 104
	nsFormats  = 128 // of 4 octets: metadata (2), the block as a power of two, performance
)

// identify fills the page of a namespace; one that is not there is all zero.
func (s *Subsystem) identify(b []byte, nsid uint32) {
	d := s.disk(nsid)
	if d == nil {
		return
	}
	for _, at := range []int{nsSize, nsCapacity, nsUse} {
		le.PutUint64(b[at:], uint64(d.Size())>>blockShift)
	}
	b[nsShared] = 1
	copy(b[nsNGUID:], s.id(nsid))
	b[nsFormats+2] = blockShift
}
