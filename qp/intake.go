package qp

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/stag"
)

// recvBuffer is what a stream needs while it has something to receive.
type recvBuffer struct {
	completed [completedAtOnce]cq.Entry // kept back for the CQ
	octets    [mpa.RecommendedBuffer]byte
	room      [netpoll.MaxReadPieces][]byte // of readDirect
}

var recvBuffers = sync.Pool{New: func() any { return new(recvBuffer) }}

// detained is how many buffers have something in them while nothing is received: the
// beginning of an FPDU, or one that waits for a receive.
var detained atomic.Int64

// mayDetain is how many may be: 16 MiB of them.
const mayDetain = 64

// intake is a Deframer with a buffer that is borrowed while there is something
// in it.
type intake struct {
	mpa.Deframer
	buf     *recvBuffer
	counted bool // buf is one of those detained
	// completed is how many completions are in buf.
	completed int
	placement directPlacement
	// kept is what could not be handled when Next returned it: Next returns it again.
	// Until then nothing may be received.
	kept []byte
	// aside is what waits for a receive while the stream is read on.
	aside aside
}

// keep makes Next return what it has returned last again.
func (in *intake) keep(ulpdu []byte) { in.kept = ulpdu }

// Next hides the Deframer's. Of a segment that is placed directly it returns the header, so that
// there is always a ULPDU, or the beginning of one, if ok.
func (in *intake) Next() (ulpdu []byte, ok bool, err error) {
	if in.buf == nil && in.Buffered() > 0 { // given back when it could not be handled
		in.borrow()
	}
	if ulpdu = in.aside.next(); ulpdu != nil {
		return ulpdu, true, nil
	}
	if in.kept != nil {
		ulpdu, in.kept = in.kept, nil
		return ulpdu, true, nil
	}
	ulpdu, ok, err = in.Deframer.Next()
	if in.placement.state != noDirect {
		ulpdu = in.placement.next(ulpdu, ok)
	}
	return ulpdu, ok, err
}

// Buffered hides the Deframer's. What is kept counts, though a ULPDU may have no octet.
func (in *intake) Buffered() int {
	n := len(in.kept) + in.Deframer.Buffered() + in.aside.octets
	if in.kept != nil {
		n++
	}
	return n
}

// space is where to receive, borrowing a buffer if need be.
func (in *intake) space() []byte {
	in.borrow()
	return in.Space()
}

func (in *intake) borrow() {
	if in.buf == nil {
		in.buf = recvBuffers.Get().(*recvBuffer)
		in.SetBuffer(in.buf.octets[:])
	}
}

// rest gives the buffer back if nothing is in it. If many others have kept theirs, so that
// they hold more than the rest of the program may, it gives it back in any case, and what is
// in it gets as much memory as it needs: a peer that stops within an FPDU holds what it
// has sent.
func (in *intake) rest() {
	if in.buf == nil {
		return
	}
	if in.kept != nil || in.TakeBuffer() == nil {
		if in.counted || detained.Add(1) <= mayDetain {
			in.counted = true
			return
		}
		detained.Add(-1)
		in.kept = bytes.Clone(in.kept)
		in.Park()
	}
	in.giveBack()
}

// drop gives the buffer back whatever is in it.
func (in *intake) drop() {
	if in.buf != nil {
		in.giveBack()
	}
	*in = intake{}
}

func (in *intake) giveBack() {
	if in.counted {
		in.counted = false
		detained.Add(-1)
	}
	recvBuffers.Put(in.buf)
	in.buf = nil
}

// early takes octets that were read before the session began, RecommendedBuffer of them at
// most.
func (in *intake) early(b []byte) {
	in.space()
	in.Feed(b)
}

// The payload of a large segment need not go through the receive buffer. Once its
// header is here and names memory that it may be placed in, the rest of the payload
// is read straight into that memory. All checks are made again when the FPDU is
// whole, and it is handled then like any other; only the copy is left out. A
// segment with anything wrong goes the usual way.
//
// That is for streams without CRC and markers: what a CRC covers is not placed
// before it has been checked (RFC 5044 6).

// directPlacement is a segment whose payload is received where it belongs, and whether there
// is one. Owned by the receive side.
type directPlacement struct {
	state  directState
	header [ddp.UntaggedHeader]byte
	hlen   int
	size   int // octets of payload
	ref    stag.Ref
	at     uint64 // where in ref the next octet goes
}

// directState is how far such a segment is.
type directState uint8

const (
	// noDirect: there is none. The rest of a directPlacement means nothing.
	noDirect directState = iota
	// underWay: its FPDU is not whole.
	underWay
	// arrived: it is what Next has returned last.
	arrived
)

// next is what Next returns, given what the Deframer has: the header of the segment that is
// placed directly, if that has arrived now.
func (t *directPlacement) next(ulpdu []byte, ok bool) []byte {
	switch {
	case t.state == arrived: // before, and this is another one
		t.state = noDirect
	case t.state == underWay && ok:
		t.state = arrived
		return t.header[:t.hlen]
	}
	return ulpdu
}

// segment is that segment, as if all its payload were placed.
func (t *directPlacement) segment() ddp.Segment {
	seg, _ := ddp.Parse(t.header[:t.hlen])
	return seg.Placed(t.size)
}

// parse is the segment that what Next has returned last is.
func (in *intake) parse(ulpdu []byte) (ddp.Segment, ddp.Code) {
	if in.placement.state == arrived {
		return in.placement.segment(), ddp.CodeOK
	}
	return ddp.Parse(ulpdu)
}

// scrap is where to receive when nothing is placed any more: the rest of a segment that was
// placed directly is read over, by itself.
func (in *intake) scrap() []byte {
	p := in.space()
	if n := in.Diverted(); n > 0 && n < len(p) {
		p = p[:n]
	}
	return p
}
