package nvmeof

const (
	rwFUA    = 1 << 14
	rwDeall  = 1 << 9
	dsmAD    = 1 << 2
	dsmRange = 16
)

func (r *request) io(c *controller) ([]byte, Status) {
	op := r.cmd.opcode()
	switch op {
	case cmdFlush, cmdRead, cmdWrite, cmdWriteZeroes, cmdDSM:
	default:
		return nil, InvalidOpcode | DNR
	}
	if op == cmdFlush && r.cmd.nsid() == 0xffffffff {
		return nil, r.flushAll(c)
	}
	d := c.subsys.disk(r.cmd.nsid())
	if d == nil {
		return nil, InvalidNamespace | DNR
	}
	switch op {
	case cmdFlush:
		return nil, r.flush(d)
	case cmdDSM:
		return nil, r.manage(c, d)
	}
	off, n, status := extent(d, le.Uint64(r.cmd[40:]), uint64(le.Uint16(r.cmd[48:]))+1)
	if status != Success {
		return nil, status
	}
	if op != cmdWriteZeroes && n > maxTransfer {
		return nil, InvalidField | DNR
	}
	fua := le.Uint16(r.cmd[50:])&rwFUA != 0
	switch op {
	case cmdRead:
		b, status := r.reply(int(n))
		if status != Success {
			return nil, status
		}
		k := 0
		if status := r.call(c, func() { k, _ = d.ReadAt(b, off) }); status != Success {
			return nil, status
		}
		if k < len(b) {
			return nil, UnrecoveredRead
		}
		return b, Success
	case cmdWrite:
		b, status := r.fetch(int(n))
		if status != Success {
			return nil, status
		}
		var err error
		if status := r.call(c, func() { _, err = d.WriteAt(b, off) }); status != Success {
			return nil, status
		}
		if err != nil {
			return nil, r.fault("write", err)
		}
	default:
		if r.sgl.length != 0 {
			return nil, SGLInvalidLength | DNR
		}
		if status := r.clear(c, d, []span{{off, n}}, le.Uint16(r.cmd[50:])&rwDeall != 0); status != Success {
			return nil, status
		}
	}
	if fua {
		return nil, r.sync(d)
	}
	return nil, Success
}

func (r *request) fault(what string, err error) Status {
	r.q.target.log.Warn("nvmeof: a disk failed", "call", what, "namespace", r.cmd.nsid(), "error", err)
	return WriteFault
}

// extent checks blocks against the disk, and gives them in octets.
func extent(d Disk, slba, blocks uint64) (off, n int64, status Status) {
	size := uint64(d.Size()) >> blockShift
	if slba > size || blocks > size-slba {
		return 0, 0, LBARange | DNR
	}
	return int64(slba << blockShift), int64(blocks << blockShift), Success
}

func (r *request) sync(d *namespace) Status {
	if err := d.sync(); err != nil {
		return r.fault("flush", err)
	}
	return Success
}

func (r *request) flush(d *namespace) Status {
	if r.sgl.length != 0 {
		return SGLInvalidLength | DNR
	}
	return r.sync(d)
}

func (r *request) flushAll(c *controller) Status {
	for _, nsid := range c.subsys.nsids() {
		if d := c.subsys.disk(nsid); d != nil {
			if status := r.flush(d); status != Success {
				return status
			}
		}
	}
	return Success
}
