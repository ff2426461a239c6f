package fault

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// piece is what a flow makes of octets: they are delivered in the order of pieces, each at once.
type piece struct {
	stall time.Duration // first nothing moves so long
	b     []byte
	late  time.Duration // b and what follows it are held back so long, and nobody is held up
	lump  lump          // b goes together with the pieces around it
	end   What          // Cut, Reset or HalfClose behind b; else 0
}

// lump says whether a piece is one of several that go together. They are late by what the first of them is, at most.
type lump uint8

const (
	alone    lump = iota
	together      // with what comes next
	lastOf
)

// lumpWait is how long a Lump waits for its segments, if its rule does not say.
const lumpWait = 20 * time.Millisecond

// maxEarly is how many octets behind one startup frame wait for the other. More are no iWARP: an Initiator sends no FPDU before it has the
// Reply (RFC 5044 7.1.2), and nobody else is to be kept in memory.
const maxEarly = 64 << 10

// flow is one direction of a stream. Whole FPDUs go in, and are made anew: markers are where they belong whatever is dropped.
// It is used by one goroutine at a time.
type flow struct {
	st    *stream
	dir   Direction
	rules []*counter

	preamble int    // octets that come first and are no FPDUs
	started  bool   // the FPDU stream has begun
	raw      bool   // what comes is no FPDU stream, or none any more: rules that count octets are left
	head     []byte // of the startup, or what has come of an FPDU that is not whole
	crc      bool
	inward   mpa.Deframer
	outward  mpa.Framer

	within bool   // a message has begun
	pos    uint64 // octets that have gone out, of the FPDU stream
	lumped int    // more segments that go with what went last
	wait   time.Duration
	out    []piece
}

// begin starts Full Operation behind so many octets.
func (f *flow) begin(crc, markers bool, preamble int) {
	f.crc, f.started, f.preamble = crc, true, preamble
	f.inward, f.outward = mpa.NewDeframer(crc, markers), mpa.NewFramer(crc, markers)
	f.inward.SetBuffer(make([]byte, mpa.MinBuffer))
}

// feed takes octets that have come, and returns what to deliver; b is not kept.
func (f *flow) feed(b []byte) []piece {
	f.out = nil
	if n := min(f.preamble, len(b)); n > 0 {
		f.preamble -= n
		f.out = append(f.out, piece{b: slices.Clone(b[:n])})
		b = b[n:]
	}
	if !f.started && !f.raw {
		b = f.startup(b)
	}
	for len(b) > 0 && !f.raw {
		n := f.inward.Feed(b)
		f.head = append(f.head, b[:n]...)
		b = b[n:]
		f.frames()
	}
	if f.raw && len(b) > 0 {
		f.deliver(slices.Clone(b), effect{})
	}
	return f.out
}

// rest is what has come and is no whole FPDU, for the end of the flow.
func (f *flow) rest() []byte {
	b := f.head
	f.head = nil
	return b
}

// frames takes the FPDUs that are whole.
func (f *flow) frames() {
	for {
		u, ok, err := f.inward.NextRaw()
		f.head = f.head[len(f.head)-f.inward.Buffered():]
		if err != nil {
			f.raw = true
			f.deliver(f.rest(), effect{})
			return
		}
		if !ok {
			return
		}
		f.fpdu(u)
	}
}

// startup passes on the startup frame of this direction. It returns what is behind it, once the other one is known too.
func (f *flow) startup(b []byte) []byte {
	f.head = append(f.head, b...)
	st := f.st
	st.mu.Lock()
	defer st.mu.Unlock()
	mine := &st.request
	if f.dir == In {
		mine = &st.reply
	}
	if *mine == nil {
		s, n, err := mpa.ParseStartup(f.head)
		if errors.Is(err, mpa.ErrShort) {
			return nil
		}
		switch {
		case err != nil:
			return f.passAll()
		case s.Reject: // a startup as any, and nothing behind it
			f.out = append(f.out, piece{b: f.passAll()})
			return nil
		}
		s.PrivateData = nil
		*mine = &s
		f.out = append(f.out, piece{b: slices.Clone(f.head[:n])})
		f.head = f.head[n:]
	}
	if st.request == nil || st.reply == nil {
		if len(f.head) > maxEarly {
			return f.passAll()
		}
		return nil
	}
	rest := f.rest()
	wants := st.reply // what this direction sends, the other end asked for
	if f.dir == In {
		wants = st.request
	}
	f.begin(st.request.CRC || st.reply.CRC, wants.Markers, 0)
	return rest
}

// passAll gives up: what comes is not iWARP.
func (f *flow) passAll() []byte {
	f.raw, f.started = true, true
	b := f.head
	f.head = nil
	return b
}

// effect is what the rules make of one FPDU.
type effect struct {
	stall, late  time.Duration
	end          What
	drop, double bool
	split        int
	terminate    []uint16
}

// fpdu takes one FPDU, and puts what becomes of it in out.
func (f *flow) fpdu(u mpa.FPDU) {
	ulpdu := slices.Clone(u.ULPDU)
	seg, code := ddp.Parse(ulpdu)
	op, first := AnyOp, !f.within
	if code == ddp.CodeOK {
		op = opNamed(rdmap.OpcodeOf(seg.RsvdULP()).String())
		f.within = !seg.Last()
	}
	bad := uint32(0)
	if f.crc {
		bad = u.CRC ^ u.Computed // stays as wrong as it was
	}
	var e effect
	var behind []int // bits to flip
	for _, c := range f.rules {
		counts := c.When == Segment || c.When == Message && first
		if !counts || c.Op != AnyOp && c.Op != op || !c.hit() {
			continue
		}
		if c.What == LoseSTag {
			if stag, ok := f.named(seg, code); ok {
				f.st.in.loseSTag(f.st.strike(c, f.dir, f.pos), stag)
			}
			continue
		}
		f.st.report(c, f.dir, f.pos)
		if c.What != Flip {
			f.take(&e, c)
		} else if bit := bitOf(c, ulpdu, seg, code); c.Behind {
			behind = append(behind, bit)
		} else {
			flip(ulpdu, bit)
		}
	}
	for _, code := range e.terminate {
		h := rdmap.TerminateHeader{Code: rdmap.TermCode(code)}
		t := ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.Terminate), 0, ddp.QNTerminate, 1, 0)
		f.deliver(f.outward.AppendFPDU(nil, h.Append(t)), effect{})
	}
	if e.drop {
		f.deliver(nil, effect{stall: e.stall, end: e.end})
		return
	}
	copies := 1
	if e.double {
		copies = 2
	}
	for i := range copies {
		if i > 0 {
			e = effect{}
		}
		f.deliver(f.framed(ulpdu, behind, bad), e)
	}
}

// take adds what c does.
func (f *flow) take(e *effect, c *counter) {
	switch c.What {
	case Cut, Reset, HalfClose:
		if e.end == 0 {
			e.end = c.What
		}
	case Stall:
		e.stall += c.For
	case Late:
		e.late = max(e.late, c.For)
	case Split:
		e.split = c.N
	case Lump:
		f.lumped = max(f.lumped, c.N)
		if f.wait = c.For; f.wait == 0 {
			f.wait = lumpWait
		}
	case Drop:
		e.drop = true
	case Double:
		e.double = true
	case Terminate:
		e.terminate = append(e.terminate, c.Code)
	default:
	}
}

// framed makes the FPDU of ulpdu, with the bits flipped that its CRC does not know of, and the CRC as wrong as bad says.
func (f *flow) framed(ulpdu []byte, behind []int, bad uint32) []byte {
	before := f.outward
	b := f.outward.AppendFPDU(nil, ulpdu)
	if len(b) < 4 {
		return b
	}
	crc := binary.LittleEndian.Uint32(b[len(b)-4:]) ^ bad
	if len(behind) > 0 {
		changed := slices.Clone(ulpdu)
		for _, bit := range behind {
			flip(changed, bit)
		}
		b = before.AppendFPDU(nil, changed) // with the same length, so with the same markers
	}
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc)
	return b
}

// deliver puts an FPDU in out, as e has it, cut where rules of octets strike.
func (f *flow) deliver(b []byte, e effect) {
	start := len(f.out)
	if e.end != 0 {
		f.out = append(f.out, piece{stall: e.stall, end: e.end})
		return
	}
	if e.split > 0 && e.split < len(b) {
		f.out = append(f.out, piece{b: b[:e.split]}, piece{b: b[e.split:]})
	} else {
		f.out = append(f.out, piece{b: b})
	}
	f.out[start].stall, f.out[start].late = e.stall, e.late
	if f.lumped > 0 {
		f.lumpIn(start)
	}
	pos := f.pos
	f.pos += uint64(len(b))
	for _, c := range f.rules {
		if c.When == Octet {
			f.octets(c, start, pos, uint64(len(b)))
		}
	}
}

// lumpIn makes the pieces from start on part of a lump.
func (f *flow) lumpIn(start int) {
	f.lumped--
	for i := start; i < len(f.out); i++ {
		p := &f.out[i]
		if p.lump = together; f.lumped == 0 && i == len(f.out)-1 {
			p.lump = lastOf
		}
		p.late = max(p.late, f.wait)
	}
}

// octets has c strike in the n octets behind pos, which the pieces from start on hold.
func (f *flow) octets(c *counter, start int, pos, n uint64) {
	for from := uint64(0); from < n; {
		off, ok := c.within(pos, n, from)
		if !ok {
			return
		}
		f.st.report(c, f.dir, pos+off)
		f.at(c, start, int(off))
		from = off + 1
	}
}

// at has c strike behind off octets of the pieces from i on: they are cut there.
func (f *flow) at(c *counter, i, off int) {
	for i < len(f.out) && (off > len(f.out[i].b) || off == len(f.out[i].b) && off > 0) {
		off -= len(f.out[i].b)
		i++
	}
	if i == len(f.out) {
		return // what was there has been cut off
	}
	p := f.out[i]
	if off > 0 {
		behind := piece{b: p.b[off:], lump: p.lump, end: p.end}
		f.out[i].b, f.out[i].end = p.b[:off], 0
		if p.lump == lastOf {
			f.out[i].lump = together
		}
		i++
		f.out = slices.Insert(f.out, i, behind)
	}
	switch c.What {
	case Cut, Reset, HalfClose:
		f.out = append(f.out[:i], piece{end: c.What})
	case Stall:
		f.out[i].stall += c.For
	case Late:
		f.out[i].late = max(f.out[i].late, c.For)
	case Flip:
		bit := c.N
		if bit < 0 {
			bit = c.random.IntN(8)
		}
		flip(f.out[i].b, bit%8)
	default: // Split
	}
}

// named is the STag of this side that a segment names.
func (f *flow) named(seg ddp.Segment, code ddp.Code) (uint32, bool) {
	if code != ddp.CodeOK {
		return 0, false
	}
	if seg.Tagged() {
		return seg.STag(), f.dir == In
	}
	if rdmap.OpcodeOf(seg.RsvdULP()) == rdmap.ReadRequest {
		h, ok := rdmap.ParseReadRequest(seg.Payload())
		if f.dir == In {
			return h.SourceSTag, ok
		}
		return h.SinkSTag, ok
	}
	return 0, false
}

// bitOf is the bit of ulpdu that c flips: one of the payload, or of the header if there is none.
func bitOf(c *counter, ulpdu []byte, seg ddp.Segment, code ddp.Code) int {
	from := 0
	if code == ddp.CodeOK && seg.Size() > 0 {
		from = len(ulpdu) - seg.Size()
	}
	bits := 8 * (len(ulpdu) - from)
	if bits == 0 {
		return 0
	}
	bit := c.N
	if bit < 0 {
		bit = c.random.IntN(bits)
	}
	return 8*from + bit%bits
}

func flip(b []byte, bit int) {
	if bit/8 < len(b) {
		b[bit/8] ^= 1 << (bit % 8)
	}
}
