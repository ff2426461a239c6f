package rsocket

import (
	"github.com/softrnic/softrnic/verbs"
)

// ofControl marks the ID of a message that brings no data. The rest of an ID counts messages of its kind.
const ofControl = 1 << 63

// post sends a message, unless it is none, and before it payload, which goes to the memory at that is the peer's. slot has place for the message.
func (c *Conn) post(f *frame, id uint64, slot int, flags verbs.Flags, m message, payload verbs.SGE, at target) error {
	reqs := f.reqs[:0]
	remote := verbs.Remote{STag: verbs.STag(at.key), TO: at.addr}
	f.sges[0] = payload
	switch {
	case m == none:
		reqs = append(reqs, verbs.Request{ID: id, Op: verbs.OpWrite, Flags: flags, SGL: f.sges[:1], Remote: remote})
	case c.config.Immediate:
		r := verbs.Request{ID: id, Op: verbs.OpWriteImmediate, Flags: flags, Immediate: uint64(m)<<32 | uint64(payload.Length)}
		if payload.Length > 0 {
			r.SGL, r.Remote = f.sges[:1], remote
		}
		reqs = append(reqs, r)
	default:
		if payload.Length > 0 {
			reqs = append(reqs, verbs.Request{ID: id, Op: verbs.OpWrite, Flags: verbs.Unsignaled, SGL: f.sges[:1], Remote: remote})
		}
		off := slot * messageSize
		order.PutUint32(c.mem.out[off:], uint32(m))
		f.sges[1] = c.mem.own.SGE(c.mem.outAt+off, messageSize)
		reqs = append(reqs, verbs.Request{ID: id, Op: verbs.OpSend, Flags: flags, SGL: f.sges[1:]})
	}
	_, err := c.qp.PostSend(reqs...)
	return err
}

// say sends a message without data, with a descriptor before it, which goes to the memory at, if it has a length. It reports false without a slot;
// mu is held. A failure is that of the stream, of which completions tell.
func (c *Conn) say(m message, desc []byte, at target) bool {
	if c.said-c.heard == controlSlots {
		return false
	}
	slot := int(c.said % controlSlots)
	var payload verbs.SGE
	if len(desc) > 0 {
		off := slot * mappedSize
		copy(c.mem.descs[off:], desc)
		payload = c.mem.own.SGE(c.mem.descsAt+off, len(desc))
	}
	id := ofControl | c.said
	c.said++
	_ = c.post(&c.control, id, dataSlots+slot, 0, m, payload, at)
	return true
}

// update tells the peer what it may write, if that is due. It looks for the peer's end first: what is said behind that would be a bad close of the
// peer's. The last slots are left to the end of the connection; mu is held.
func (c *Conn) update() {
	if !c.mayGrant() {
		return
	}
	for c.collect(); c.mayGrant(); {
		limit, off, n := c.in.grant()
		if n == 0 {
			c.say(newMessage(opGrant, limit), nil, target{})
			continue
		}
		ring := c.mem.open.Remote(off)
		var desc [targetSize]byte
		target{ring.TO, uint32(ring.STag), uint32(n)}.put(desc[:])
		entry := uint64(c.grants%c.peer.list.length) * targetSize
		c.say(newMessage(opGrant, limit), desc[:], target{addr: c.peer.list.addr + entry, key: c.peer.list.key})
		c.grants++
	}
}

func (c *Conn) mayGrant() bool {
	return c.in.due() && c.said-c.heard < controlSlots/2 && !c.disconnected && !c.gone
}
