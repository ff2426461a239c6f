package vipl

// terms are what Descriptors of a VI are checked against when they are posted.
type terms struct {
	level    ReliabilityLevel
	segments int    // most data segments
	transfer uint64 // most octets of payload
}

// checkSend finds what is wrong with the form of a Descriptor for the send queue, before
// anything is transferred: StatusFormatError or StatusLengthError, or nothing
// (VI Architecture 10.2 to 10.4). Memory is looked at when it is accessed (3.2.1).
func (t terms) checkSend(d *Descriptor) Status {
	op := d.Control.Control.op()
	switch {
	case op == controlOpMask: // 10.2, bits 1:0
		return StatusFormatError
	case op == ControlOpRdmaRead && !t.level.reliable(): // 2.5.1
		return StatusFormatError
	}
	segments := 0
	if op != ControlOpSendRecv {
		segments = 1
		if d.Address.Reserved != 0 { // VA-10.3-M3
			return StatusFormatError
		}
	}
	if s := t.checkForm(d, segments); s != 0 {
		return s
	}
	total := d.total()
	if total > t.transfer || total != uint64(d.Control.Length) { // VA-10.2-M4, VA-10.4-M2
		return StatusLengthError
	}
	return 0
}

// checkRecv is checkSend for the receive queue. The immediate and fence bits and the
// Length field mean nothing there.
func (t terms) checkRecv(d *Descriptor) Status {
	if d.Control.Control.op() != ControlOpSendRecv { // 10.2: RDMA is for the send queue
		return StatusFormatError
	}
	if s := t.checkForm(d, 0); s != 0 {
		return s
	}
	if d.total() > t.transfer { // VA-10.4-M2
		return StatusLengthError
	}
	return 0
}

// checkForm checks what every Descriptor has. segments are those in front of the data
// segments.
func (t terms) checkForm(d *Descriptor, segments int) Status {
	c := &d.Control
	switch {
	case c.Control&^controlAll != 0, c.Reserved != 0: // VA-10.2-M1 to VA-10.2-M3
		return StatusFormatError
	case c.Status != 0: // VA-10.2-M5
		return StatusFormatError
	case len(d.Data) > t.segments, int(c.SegCount) != segments+len(d.Data):
		return StatusFormatError
	}
	return 0
}
