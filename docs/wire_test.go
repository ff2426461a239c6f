package docs

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// field is a field of a frame: its octets in hexadecimal, and what it is.
type field struct{ octets, text string }

// block is an annotated block of wire.md: head is what follows the fence, and
// fields what the document says.
type block struct {
	line   int
	head   []string
	fields []field
}

// octets is the whole frame.
func (b block) octets(t *testing.T) []byte {
	t.Helper()
	var all string
	for _, f := range b.fields {
		all += f.octets + " "
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(all, " ", ""))
	require.NoError(t, err)
	return raw
}

// part is a field that is decoded: how many octets of the frame, and what they are.
type part struct {
	size int
	text string
}

func partf(size int, format string, args ...any) part {
	return part{size, fmt.Sprintf(format, args...)}
}

// split is the frame as the parts divide it, to be compared with the document.
func split(t *testing.T, raw []byte, parts []part) []field {
	t.Helper()
	var fields []field
	for _, p := range parts {
		require.LessOrEqual(t, p.size, len(raw), "%s is cut off", p.text)
		fields = append(fields, field{fmt.Sprintf("% x", raw[:p.size]), p.text})
		raw = raw[p.size:]
	}
	require.Empty(t, raw, "octets behind the last field")
	return fields
}

func TestWireFrames(t *testing.T) {
	seen := map[rdmap.Opcode]bool{}
	for _, b := range wireBlocks(t, "frame") {
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			at, raw := position(t, b), b.octets(t)
			ulpdu := deframe(t, at, raw)
			seg, op := parseSegment(t, ulpdu)
			require.Equal(t, []string{fmt.Sprintf("0x%X", uint8(op)), op.String()}, b.head[1:3])
			seen[op] = true
			parts := fpduParts(t, seg, op, raw)
			if at != 0 {
				parts = withMarkers(t, at, parts, raw)
			}
			require.Equal(t, split(t, raw, parts), b.fields, "wire.md is the second")
		})
	}
	for op := rdmap.Opcode(0); op.Known(); op++ {
		require.True(t, seen[op], "no frame for opcode %v", op)
	}
}

func TestWireStartup(t *testing.T) {
	blocks := wireBlocks(t, "startup")
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			raw := b.octets(t)
			s, n, err := mpa.ParseStartup(raw)
			require.NoError(t, err)
			require.Len(t, raw, n)
			require.Equal(t, map[bool]string{false: "Request", true: "Reply"}[s.Reply], b.head[1])
			again, err := s.Append(nil)
			require.NoError(t, err)
			require.Equal(t, raw, again)
			require.Equal(t, split(t, raw, startupParts(s)), b.fields, "wire.md is the second")
		})
	}
}

// The table of messages says what the code says.
func TestWireOpcodeTable(t *testing.T) {
	var want []string
	for op := rdmap.Opcode(0); op.Known(); op++ {
		header, payload, where, least := "-", "no", "tagged", ddp.TaggedHeader
		control := ddp.AppendTagged(nil, true, rdmap.Control(op), 0, 0)
		if !op.Tagged() {
			where, least = fmt.Sprintf("untagged, QN %d", op.QN()), ddp.UntaggedHeader
			control = ddp.AppendUntagged(nil, true, rdmap.Control(op), 0, 0, 0, 0)
		}
		if op.HasPayload() {
			payload = "yes"
		} else {
			from, to := op.HeaderSize()
			header, least = fmt.Sprint(from), least+from
			if from != to {
				header = fmt.Sprintf("%d to %d", from, to)
			}
		}
		want = append(want, fmt.Sprintf("| 0x%X | %v | %s | %s | %s | `% x` | %d |",
			uint8(op), op, where, header, payload, control[:2], least))
	}
	var have []string
	for _, line := range wireLines(t) {
		if strings.HasPrefix(line, "| 0x") {
			have = append(have, line)
		}
	}
	require.Equal(t, want, have, "wire.md is the second")
}

func wireLines(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("wire.md")
	require.NoError(t, err)
	return strings.Split(string(raw), "\n")
}

// annotated is a line of a block: octets, fields separated by |, and then, at
// least two blanks on, what they are. What follows a semicolon is a remark.
var annotated = regexp.MustCompile(`^([0-9a-f]{2}(?: (?:\| )?[0-9a-f]{2})*)(?: {2,}([^;]+)(?:; .+)?)?$`)

// wireBlocks returns the blocks of one kind.
func wireBlocks(t *testing.T, kind string) []block {
	t.Helper()
	var blocks []block
	inside := false
	for i, line := range wireLines(t) {
		switch {
		case !inside && strings.HasPrefix(line, "```"+kind+" "):
			inside = true
			blocks = append(blocks, block{line: i + 1, head: strings.Fields(line)})
		case inside && line == "```":
			inside = false
		case inside:
			b := &blocks[len(blocks)-1]
			m := annotated.FindStringSubmatch(line)
			require.NotNil(t, m, "line %d: want octets, two blanks, fields", i+1)
			if m[2] == "" { // continues the line above
				require.NotEmpty(t, b.fields, "line %d", i+1)
				b.fields[len(b.fields)-1].octets += " " + m[1]
				continue
			}
			octets, texts := strings.Split(m[1], " | "), strings.Split(m[2], " | ")
			require.Len(t, texts, len(octets), "line %d: as many fields on both sides", i+1)
			for j := range octets {
				b.fields = append(b.fields, field{octets[j], texts[j]})
			}
		}
	}
	require.False(t, inside, "a block does not end")
	return blocks
}

// position is where in a stream with markers the frame begins; 0 for one
// without markers.
func position(t *testing.T, b block) int {
	t.Helper()
	at := 0
	if len(b.head) > 3 {
		_, err := fmt.Sscanf(b.head[3], "at=%d", &at)
		require.NoError(t, err)
		require.Greater(t, at, 32, "there has to be room for an FPDU before it")
		require.Zero(t, at%4)
	}
	return at
}

// deframe receives the frame, CRC and markers checked, and returns its ULPDU.
func deframe(t *testing.T, at int, raw []byte) []byte {
	t.Helper()
	d := mpa.NewDeframer(true, at != 0)
	require.True(t, d.SetBuffer(make([]byte, mpa.MinBuffer)))
	if at != 0 {
		// A leading marker, length and CRC: 10 octets that are not ULPDU.
		f := mpa.NewFramer(true, true)
		before := f.AppendFPDU(nil, make([]byte, at-10))
		require.Len(t, before, at)
		require.Equal(t, at, d.Feed(before))
		_, ok, err := d.Next()
		require.NoError(t, err)
		require.True(t, ok)
	}
	require.Equal(t, len(raw), d.Feed(raw))
	ulpdu, ok, err := d.Next()
	require.NoError(t, err)
	require.True(t, ok, "the frame is longer than the block")
	require.Zero(t, d.Buffered(), "octets behind the frame")
	return ulpdu
}

// parseSegment makes the checks that a queue pair and `rnic dump` make.
func parseSegment(t *testing.T, ulpdu []byte) (ddp.Segment, rdmap.Opcode) {
	t.Helper()
	seg, code := ddp.Parse(ulpdu)
	require.Equal(t, ddp.CodeOK, code)
	op, term := rdmap.CheckExtended(seg)
	require.Equal(t, rdmap.CodeNone, term)
	want := rdmap.CodeNone
	if !op.Basic() { // as the document says of RFC 7306
		want = rdmap.TermCode(0x0206)
	}
	_, term = rdmap.Check(seg)
	require.Equal(t, want, term)
	return seg, op
}

// fpduParts are the fields of an FPDU without markers.
func fpduParts(t *testing.T, seg ddp.Segment, op rdmap.Opcode, raw []byte) []part {
	t.Helper()
	parts := append([]part{partf(2, "ULPDU_Length = %d", seg.Len())}, headerParts(seg)...)
	parts = append(parts, bodyParts(t, seg, op)...)
	if pad := -(2 + seg.Len()) & 3; pad > 0 { // RFC 5044 4.1
		parts = append(parts, partf(pad, "Pad"))
	}
	return append(parts, partf(4, "CRC = 0x%08x", binary.LittleEndian.Uint32(raw[len(raw)-4:])))
}

func headerParts(seg ddp.Segment) []part {
	parts := []part{
		partf(1, "T=%d L=%d DV=%d", bit(seg.Tagged()), bit(seg.Last()), seg.Version()),
		partf(1, "RV=%d opcode 0x%X", seg.RsvdULP()>>6, uint8(rdmap.OpcodeOf(seg.RsvdULP()))),
	}
	if seg.Tagged() {
		return append(parts, partf(4, "STag = %#x", seg.STag()), partf(8, "TO = %#x", seg.TO()))
	}
	return append(parts, partf(4, "Invalidate STag = %#x", seg.RsvdULP32()),
		partf(4, "QN = %d", seg.QN()), partf(4, "MSN = %d", seg.MSN()), partf(4, "MO = %d", seg.MO()))
}

// bodyParts are the fields behind the DDP header.
func bodyParts(t *testing.T, seg ddp.Segment, op rdmap.Opcode) []part {
	t.Helper()
	p := seg.Payload()
	switch op {
	case rdmap.ReadRequest:
		h, ok := rdmap.ParseReadRequest(p)
		require.True(t, ok)
		return []part{
			partf(4, "Sink STag = %#x", h.SinkSTag), partf(8, "Sink TO = %#x", h.SinkTO),
			partf(4, "Size = %d", h.Size),
			partf(4, "Source STag = %#x", h.SourceSTag), partf(8, "Source TO = %#x", h.SourceTO),
		}
	case rdmap.Terminate:
		return terminateParts(t, p)
	case rdmap.Immediate, rdmap.ImmediateSE:
		v, ok := rdmap.ParseImmediate(p)
		require.True(t, ok)
		return []part{partf(8, "Immediate Data = %#x", v)}
	case rdmap.AtomicRequest:
		h, ok := rdmap.ParseAtomicRequest(p)
		require.True(t, ok)
		return []part{
			partf(4, "AOpCode = %d", h.Op), partf(4, "Request Identifier = %#x", h.RequestID),
			partf(4, "Remote STag = %#x", h.STag), partf(8, "Remote TO = %#x", h.TO),
			partf(8, "Add or Swap Data = %#x", h.Data), partf(8, "Add or Swap Mask = %#x", h.Mask),
			partf(8, "Compare Data = %#x", h.Compare), partf(8, "Compare Mask = %#x", h.CompareMask),
		}
	case rdmap.AtomicResponse:
		h, ok := rdmap.ParseAtomicResponse(p)
		require.True(t, ok)
		return []part{partf(4, "Original Request Identifier = %#x", h.RequestID), partf(8, "Original Value = %#x", h.Value)}
	case rdmap.Write, rdmap.ReadResponse, rdmap.Send, rdmap.SendInvalidate, rdmap.SendSE, rdmap.SendSEInvalidate:
		if len(p) > 0 {
			return []part{partf(len(p), "Payload, %d octets", len(p))}
		}
	}
	return nil
}

func terminateParts(t *testing.T, p []byte) []part {
	t.Helper()
	h, ok := rdmap.ParseTerminate(p)
	require.True(t, ok)
	require.False(t, h.Truncated)
	require.Empty(t, h.Rest)
	require.Empty(t, h.ReadRequest, "no block shows one")
	c := h.Code
	require.True(t, c.Defined())
	parts := []part{
		partf(1, "Layer = %d EType = %d", c.Layer(), c.Type()), partf(1, "Error Code = 0x%02x", c.Code()),
		partf(2, "M=%d D=%d R=0", bit(h.HasLength), bit(len(h.DDPHeader) > 0)),
	}
	if h.HasLength {
		parts = append(parts, partf(2, "DDP Segment Length = %d", h.SegmentLength))
	}
	if len(h.DDPHeader) > 0 {
		seg, code := ddp.Parse(h.DDPHeader)
		require.Equal(t, ddp.CodeOK, code)
		for _, q := range headerParts(seg) {
			parts = append(parts, part{q.size, "Terminated: " + q.text})
		}
	}
	return parts
}

// withMarkers puts the markers between the parts of a frame that begins at
// position at. The Deframer has checked where they point.
func withMarkers(t *testing.T, at int, parts []part, raw []byte) []part {
	t.Helper()
	var marked []part
	off := 0
	for _, p := range parts {
		if (at+off)%512 == 0 {
			marked = append(marked, partf(4, "Marker: FPDUPTR = %d", binary.BigEndian.Uint16(raw[off+2:])))
			off += 4
		}
		require.LessOrEqual(t, (at+off)%512+p.size, 512, "a marker within %s", p.text)
		marked = append(marked, p)
		off += p.size
	}
	return marked
}

func startupParts(s mpa.Startup) []part {
	key, word := "MPA ID Req Frame", 0
	if s.Reply {
		key = "MPA ID Rep Frame"
	}
	if s.Enhanced {
		word = 4
	}
	parts := []part{
		partf(16, "Key: %q", key),
		partf(1, "M=%d C=%d R=%d S=%d", bit(s.Markers), bit(s.CRC), bit(s.Reject), bit(s.Enhanced)),
		partf(1, "Rev = %d", s.Rev),
		partf(2, "PD_Length = %d", word+len(s.PrivateData)),
	}
	if s.Enhanced {
		parts = append(parts,
			partf(2, "A=%d B=%d IRD = %d", bit(s.P2P), bit(s.RTR&mpa.RTRSend != 0), s.IRD),
			partf(2, "C=%d D=%d ORD = %d", bit(s.RTR&mpa.RTRWrite != 0), bit(s.RTR&mpa.RTRRead != 0), s.ORD))
	}
	if n := len(s.PrivateData); n > 0 {
		parts = append(parts, partf(n, "Private data = %q", s.PrivateData))
	}
	return parts
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
