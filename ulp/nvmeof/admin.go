package nvmeof

// Features.
const (
	featVolatileWC = 0x06
	featNumQueues  = 0x07
	featAsyncEvent = 0x0b
	featKATO       = 0x0f
)

func (r *request) admin(c *controller) (out []byte, result uint64, status Status) {
	switch r.cmd.opcode() {
	case adminIdentify:
		out, status = r.identify(c)
	case adminGetLogPage:
		out, status = r.logPage(c)
	case adminKeepAlive: // heard has noted it
	case adminAsyncEvent:
		result, status = c.awaitEvent(r)
	case adminAbort:
		result = c.abort(r.q, uint16(r.cmd.dw(10)), uint16(r.cmd.dw(10)>>16))
	case adminSetFeatures:
		result, status = c.setFeature(r.cmd.dw(10), r.cmd.dw(11))
	case adminGetFeatures:
		result, status = c.feature(r.cmd.dw(10))
	default:
		status = InvalidOpcode | DNR
	}
	return out, result, status
}

func queueCount(n int) uint64 { return uint64(n-1)<<16 | uint64(n-1) }

func (c *controller) setFeature(dw10, v uint32) (uint64, Status) {
	if dw10&(1<<31) != 0 { // nothing is saved
		return 0, InvalidField | DNR
	}
	switch dw10 & 0xff {
	case featNumQueues:
		sq, cq := int(v&0xffff), int(v>>16)
		if c.subsys == nil || sq == 0xffff || cq == 0xffff {
			return 0, InvalidField | DNR
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ioQueues() > 0 { // not while there are I/O queues
			return 0, SequenceError | DNR
		}
		c.granted = min(sq+1, cq+1, c.target.config.Queues)
		return queueCount(c.granted), Success
	case featAsyncEvent:
		if v&^uint32(eventNSNotice) != 0 {
			return 0, InvalidField | DNR
		}
		c.mu.Lock()
		c.eventMask = v
		c.mu.Unlock()
		return 0, Success
	case featKATO:
		c.setKATO(v)
		return 0, Success
	case featVolatileWC:
		if v&1 == 0 {
			return 0, NotChangeable | DNR
		}
		return 0, Success
	}
	return 0, InvalidField | DNR
}

func (c *controller) feature(dw10 uint32) (uint64, Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch dw10 & 0xff {
	case featNumQueues:
		return queueCount(max(c.granted, 1)), Success
	case featAsyncEvent:
		return uint64(c.eventMask), Success
	case featKATO:
		return uint64(c.kato.Milliseconds()), Success
	case featVolatileWC:
		return 1, Success
	}
	return 0, InvalidField | DNR
}
