package dissect

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
)

// Layers of a Part.
const (
	layerMPA   = "MPA"
	layerDDP   = "DDP"
	layerRDMAP = "RDMAP"
)

// Part is octets that belong together: of which layer, and what they say.
type Part struct {
	Layer  string // MPA, DDP, RDMAP or VI; "" for payload
	Octets []byte
	Text   string
	Fields []Field // of a whole header, by the names of its RFC
}

// Field is a field of a header.
type Field struct{ Name, Value string }

// cutter cuts parts off the front of octets, as far as there are any.
type cutter struct {
	b     []byte
	parts []Part
	bare  bool // parts have no Fields: the header is not what its RFC demands, or is quoted
}

// cut cuts n octets off. text may be a format for their value as a number.
func (c *cutter) cut(n int, layer, text string, args ...any) {
	n = min(n, len(c.b))
	if n == 0 {
		return
	}
	if len(args) > 0 {
		text = fmt.Sprintf(text, args...)
	}
	c.parts = append(c.parts, Part{Layer: layer, Octets: c.b[:n], Text: text})
	c.b = c.b[n:]
}

// number cuts an unsigned number off; format says how to write it, as "name = %d". Its Field has the same name and
// format, unless of says them.
func (c *cutter) number(n int, layer, format string, of ...string) {
	if len(c.b) < n {
		c.cut(n, layer, "cut off")
		return
	}
	v := uint64(0)
	for _, b := range c.b[:n] {
		v = v<<8 | uint64(b)
	}
	c.cut(n, layer, format, v)
	name, value, _ := strings.Cut(format, " = ")
	if len(of) > 0 {
		name = of[0]
	}
	if len(of) > 1 {
		value = of[1]
	}
	c.field(name, value, v)
}

// field adds a Field to the last part.
func (c *cutter) field(name, format string, v any) {
	if n := len(c.parts); n > 0 && !c.bare && name != "" {
		c.parts[n-1].Fields = append(c.parts[n-1].Fields, Field{name, fmt.Sprintf(format, v)})
	}
}

// headerFields are those of the headers of a segment, in the order in which they are sent.
func headerFields(ulpdu []byte) (list []Field) {
	c := &cutter{b: ulpdu}
	c.segment()
	for _, p := range c.parts {
		list = append(list, p.Fields...)
	}
	return list
}

// startupParts are those of a Request or Reply frame (RFC 5044 7.1.1, RFC 6581 9).
func startupParts(b []byte) []Part {
	c := &cutter{b: b}
	c.cut(keyOctets, layerMPA, "Key %q", b[:min(keyOctets, len(b))])
	enhanced := false
	if len(c.b) > 0 {
		f := c.b[0]
		c.cut(1, layerMPA, "M=%d C=%d R=%d S=%d Res=0x%x", f>>7, f>>6&1, f>>5&1, f>>4&1, f&0xF)
		enhanced = f&flagS != 0
	}
	c.number(1, layerMPA, "Rev = %d")
	c.number(2, layerMPA, "PD_Length = %d")
	if enhanced && len(c.b) >= 4 {
		w := binary.BigEndian.Uint32(c.b)
		c.cut(4, layerMPA, "A=%d B=%d IRD=%d, C=%d D=%d ORD=%d", w>>31, w>>30&1, w>>16&0x3FFF, w>>15&1, w>>14&1, w&0x3FFF)
	}
	c.cut(len(c.b), "", "Private Data, %s", OctetsText(len(c.b)))
	return c.parts
}

// fpduPiece describes an FPDU, or the beginning of one, that starts at a position of
// its stream.
func fpduPiece(raw []byte, pos uint64, markers bool) Piece {
	flat := raw
	if markers {
		flat = withoutMarkers(raw, pos)
	}
	c := &cutter{b: flat}
	p := Piece{Kind: KindFPDU, Octets: raw, Title: "FPDU"}
	if len(flat) < 2 {
		c.cut(2, layerMPA, "cut off")
	} else {
		n := int(binary.BigEndian.Uint16(flat))
		c.number(2, layerMPA, "ULPDU_Length = %d")
		ulpdu := &cutter{b: c.b[:min(n, len(c.b))]}
		p.Title = ulpdu.segment()
		c.parts = append(c.parts, ulpdu.parts...)
		c.b = c.b[min(n, len(c.b)):]
		c.cut(-(2+n)&3, layerMPA, "Pad") // RFC 5044 4.1
		if len(c.b) >= 4 {
			c.cut(4, layerMPA, "CRC = 0x%08x", binary.LittleEndian.Uint32(c.b))
		}
		c.cut(len(c.b), layerMPA, "cut off")
	}
	p.Parts = c.parts
	if markers {
		p.Parts = weave(raw, pos, c.parts)
	}
	return p
}

// A marker of 4 octets stands at every 512th octet of a stream (RFC 5044 4.3).
const (
	markerEvery  = 512
	markerOctets = 4
)

// withoutMarkers is raw without its markers.
func withoutMarkers(raw []byte, pos uint64) []byte {
	var flat []byte
	for len(raw) > 0 {
		if pos%markerEvery == 0 {
			n := min(markerOctets, len(raw))
			raw, pos = raw[n:], pos+uint64(n)
		}
		n := min(int(markerEvery-pos%markerEvery), len(raw))
		flat = append(flat, raw[:n]...)
		raw, pos = raw[n:], pos+uint64(n)
	}
	return flat
}

// weave puts the markers back between, and into, the parts.
func weave(raw []byte, pos uint64, parts []Part) []Part {
	var woven []Part
	take := func(layer, text string, n int) {
		woven = append(woven, Part{Layer: layer, Octets: raw[:n], Text: text})
		raw, pos = raw[n:], pos+uint64(n)
	}
	for _, f := range parts {
		text := f.Text
		for left := len(f.Octets); left > 0; {
			if pos%markerEvery == 0 {
				m := &cutter{b: raw[:min(markerOctets, len(raw))]}
				m.marker()
				take(layerMPA, m.parts[0].Text, len(m.parts[0].Octets))
			}
			n := min(left, int(markerEvery-pos%markerEvery))
			take(f.Layer, text, n)
			left -= n
			text = "(continued) " + f.Text
		}
	}
	if len(raw) > 0 {
		m := &cutter{b: raw}
		m.marker()
		take(layerMPA, m.parts[0].Text, len(raw))
	}
	return woven
}

func (c *cutter) marker() {
	if len(c.b) < markerOctets {
		c.cut(markerOctets, layerMPA, "Marker, cut off")
		return
	}
	c.cut(markerOctets, layerMPA, "Marker: FPDUPTR = %d", binary.BigEndian.Uint16(c.b[2:]))
}

// segment cuts a DDP segment to its end, and says in a few words what it is.
func (c *cutter) segment() string {
	if len(c.b) < 2 {
		c.cut(len(c.b), layerDDP, "no DDP header")
		return "FPDU without a DDP header"
	}
	all := c.b
	control, op := all[0], rdmap.OpcodeOf(all[1])
	tagged := c.header()
	title := op.String()
	if !op.Known() {
		title = fmt.Sprintf("opcode 0x%x", uint8(op))
	}
	if control&0x40 == 0 {
		title += " (more follows)"
	}
	switch {
	case tagged && len(all) >= ddp.TaggedHeader:
		title += fmt.Sprintf(", STag 0x%08x, TO 0x%x", binary.BigEndian.Uint32(all[2:]), binary.BigEndian.Uint64(all[6:]))
	case !tagged && len(all) >= ddp.UntaggedHeader:
		title += fmt.Sprintf(", QN %d, MSN %d, MO %d", binary.BigEndian.Uint32(all[6:]),
			binary.BigEndian.Uint32(all[10:]), binary.BigEndian.Uint32(all[14:]))
	default:
		return title + ", header cut off"
	}
	if op == rdmap.Terminate && len(c.b) >= 2 {
		title = fmt.Sprintf("Terminate %v", rdmap.TermCode(binary.BigEndian.Uint16(c.b)))
	} else if op.HasPayload() {
		title += ", " + OctetsText(len(c.b))
	}
	least, most := op.HeaderSize()
	c.bare = c.bare || tagged || len(c.b) < least || len(c.b) > most
	c.body(op)
	return title
}

// header cuts a DDP header, with what of it is RDMAP's.
func (c *cutter) header() (tagged bool) {
	control := c.b[0]
	tagged = control&0x80 != 0
	c.cut(1, layerDDP, "T=%d L=%d Rsvd=0x%x DV=%d", control>>7, control>>6&1, control>>2&0xF, control&3)
	c.field("T", "%d", control>>7)
	c.field("L", "%d", control>>6&1)
	c.field("DV", "%d", control&3)
	if len(c.b) == 0 {
		return tagged
	}
	ulp := c.b[0]
	c.cut(1, layerRDMAP, "RV=%d Rsv=%d Opcode=0x%x %v", ulp>>6, ulp>>4&3, ulp&0xF, rdmap.OpcodeOf(ulp))
	c.field("RV", "%d", ulp>>6)
	c.field("Opcode", "%v", rdmap.OpcodeOf(ulp))
	if tagged {
		c.number(4, layerDDP, "STag = 0x%08x")
		c.number(8, layerDDP, "TO = 0x%x")
		return tagged
	}
	c.number(4, layerRDMAP, "Invalidate STag = 0x%08x")
	c.number(4, layerDDP, "QN = %d")
	c.number(4, layerDDP, "MSN = %d")
	c.number(4, layerDDP, "MO = %d")
	return tagged
}

// body cuts what follows the DDP header.
func (c *cutter) body(op rdmap.Opcode) {
	const r = layerRDMAP
	switch op {
	case rdmap.ReadRequest:
		c.readRequest("")
	case rdmap.Terminate:
		c.terminate()
	case rdmap.Immediate, rdmap.ImmediateSE:
		c.number(8, r, "Immediate Data = 0x%x", "Immediate Data", "0x%016x")
	case rdmap.AtomicRequest:
		if c.number(4, r, "AOpCode = %d", ""); !c.bare { // four bits of it count (RFC 7306 5.2.1)
			c.field("AOpcode", "%d", c.parts[len(c.parts)-1].Octets[3]&0xF)
		}
		c.number(4, r, "Request Identifier = 0x%x")
		c.number(4, r, "Remote STag = 0x%08x")
		c.number(8, r, "Remote TO = 0x%x")
		c.number(8, r, "Add or Swap Data = 0x%x", "Add or Swap Data", "0x%016x")
		c.number(8, r, "Add or Swap Mask = 0x%x", "Add or Swap Mask", "0x%016x")
		c.number(8, r, "Compare Data = 0x%x", "Compare Data", "0x%016x")
		c.number(8, r, "Compare Mask = 0x%x", "Compare Mask", "0x%016x")
	case rdmap.AtomicResponse:
		c.number(4, r, "Original Request Identifier = 0x%x")
		c.number(8, r, "Original Value = 0x%x", "Original Remote Data Value", "0x%016x")
	default:
	}
	c.cut(len(c.b), "", "Payload, %s", OctetsText(len(c.b)))
}

func (c *cutter) readRequest(prefix string) {
	c.number(4, layerRDMAP, prefix+"Sink STag = 0x%08x", "Data Sink STag")
	c.number(8, layerRDMAP, prefix+"Sink TO = 0x%x", "Data Sink TO")
	c.number(4, layerRDMAP, prefix+"Size = %d", "RDMA Read Message Size")
	c.number(4, layerRDMAP, prefix+"Source STag = 0x%08x", "Data Source STag")
	c.number(8, layerRDMAP, prefix+"Source TO = 0x%x", "Data Source TO")
}

// terminate cuts a Terminate header (RFC 5040 4.8).
func (c *cutter) terminate() {
	const m, d, r = 0x80, 0x40, 0x20
	if len(c.b) < 4 {
		return
	}
	code, bits := rdmap.TermCode(binary.BigEndian.Uint16(c.b)), c.b[2]
	whole, _ := rdmap.ParseTerminate(c.b)
	c.cut(1, layerRDMAP, "Layer = %d EType = %d", code.Layer(), code.Type())
	c.field("Terminate Control", "0x%08x", whole.Raw)
	c.field("Error", "%v", whole.Code)
	if len(whole.DDPHeader) > 0 {
		c.field("Terminated DDP Segment Length", "%d", whole.SegmentLength)
		c.field("Terminated DDP Header", "%x", whole.DDPHeader)
	}
	if len(whole.ReadRequest) > 0 {
		c.field("Terminated RDMA Header", "%x", whole.ReadRequest)
	}
	c.bare = true // what was terminated is quoted
	c.cut(1, layerRDMAP, "Error Code = 0x%02x: %s", code.Code(), code.Text())
	c.cut(2, layerRDMAP, "M=%d D=%d R=%d Reserved=0x%x", bits>>7, bits>>6&1, bits>>5&1,
		binary.BigEndian.Uint16(c.b)&0x1FFF)
	if bits&(m|d) != 0 {
		c.number(2, layerRDMAP, "DDP Segment Length = %d")
	}
	if bits&d != 0 && len(c.b) > 0 {
		n := ddp.UntaggedHeader
		if c.b[0]&0x80 != 0 {
			n = ddp.TaggedHeader
		}
		h := &cutter{b: c.b[:min(n, len(c.b))]}
		h.header()
		for _, f := range h.parts {
			c.cut(len(f.Octets), f.Layer, "Terminated: "+f.Text)
		}
	}
	if bits&r != 0 {
		c.readRequest("Terminated: ")
	}
}
