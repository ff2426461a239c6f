package dissect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpa"
)

// A startup frame (RFC 5044 7.1.1).
const (
	keyOctets  = 16
	headOctets = keyOctets + 4
	flagsAt    = keyOctets
	flagM      = 0x80
	flagC      = 0x40
	flagR      = 0x20
	flagS      = 0x10
)

// Recording is a connection whose octets were recorded both ways, taken apart. It need not be a good one, and it
// may begin behind MPA's startup: what is not known from startup frames is guessed, so that the fewest FPDUs look
// wrong.
type Recording struct {
	Halves [2]Half
	VI     bool // of VI/TCP
}

// Half is one direction of a Recording.
type Half struct {
	Startup bool // begins as a startup frame does
	Markers bool // in its FPDUs
	Pieces  []Piece
	octets  []byte
}

// Piece is a startup frame, an FPDU, a VI segment, or octets that are none of them.
type Piece struct {
	Kind Kind
	// Number counts the FPDUs, or VI segments, of a direction, from 1.
	Number int
	// Title is the piece in a few words.
	Title string
	// Complaint is what is wrong with the octets as such: a CRC, a marker, a length.
	Complaint string
	Octets    []byte
	Parts     []Part

	crc bool // its CRC field is not zero
}

// Kind is what a Piece is.
type Kind string

// The kinds.
const (
	KindStartup Kind = "startup" // an MPA Request or Reply frame
	KindFPDU    Kind = "fpdu"
	KindSegment Kind = "segment" // of VI/TCP
	KindOctets  Kind = "octets"  // none of these
)

// startupBegin is how both keys begin. A key that goes wrong behind it is shown as
// the startup frame that it was meant to be.
var startupBegin = []byte("MPA ID")

func beginsStartup(b []byte) bool { return bytes.HasPrefix(b, startupBegin) }

// Cut takes both directions of a stream apart.
func Cut(one, other []byte) *Recording {
	s := &Recording{}
	a, b := &s.Halves[0], &s.Halves[1]
	a.octets, b.octets = one, other
	if s.cutVI() {
		return s
	}
	a.Startup, b.Startup = beginsStartup(a.octets), beginsStartup(b.octets)
	from, to := a.cutStartup(), b.cutStartup()
	rejected := a.flag(flagR) || b.flag(flagR)
	for _, h := range []struct {
		h, peer *Half
		at      int
	}{{a, b, from}, {b, a, to}} {
		switch {
		case h.at == len(h.h.octets):
		case rejected || h.h.Startup != h.peer.Startup:
			h.h.cutRest(h.at, "octets outside of FPDUs")
		case h.h.Startup:
			h.h.Markers = h.peer.flag(flagM) // their receiver asks for them
			h.h.Pieces = append(h.h.Pieces, h.h.cutFPDUs(h.at)...)
		default:
			h.h.guess()
		}
	}
	return s
}

// flag is one of a half's startup frame.
func (h *Half) flag(mask byte) bool {
	return h.Startup && len(h.octets) > flagsAt && h.octets[flagsAt]&mask != 0
}

// cutStartup cuts the startup frame off, if there is one, and says where what
// follows begins.
func (h *Half) cutStartup() int {
	if !h.Startup {
		return 0
	}
	n := headOctets
	if len(h.octets) >= headOctets {
		n += int(binary.BigEndian.Uint16(h.octets[headOctets-2:]))
	}
	e := Piece{Kind: KindStartup}
	if n > len(h.octets) {
		n = len(h.octets)
		e.Complaint = "incomplete"
	}
	e.Octets = h.octets[:n]
	e.Parts = startupParts(e.Octets)
	e.Title = "MPA startup frame"
	switch {
	case bytes.HasPrefix(e.Octets, []byte("MPA ID Req Frame")):
		e.Title = "MPA Request"
	case bytes.HasPrefix(e.Octets, []byte("MPA ID Rep Frame")):
		e.Title = "MPA Reply"
	}
	if len(h.octets) > flagsAt+1 {
		e.Title += fmt.Sprintf(", revision %d%s", h.octets[flagsAt+1], flagWords(h.octets[flagsAt]))
	}
	h.Pieces = append(h.Pieces, e)
	return n
}

func flagWords(flags byte) string {
	s := ""
	for _, f := range []struct {
		mask byte
		word string
	}{{flagM, ", markers"}, {flagC, ", CRC"}, {flagR, ", reject"}, {flagS, ", enhanced"}} {
		if flags&f.mask != 0 {
			s += f.word
		}
	}
	return s
}

// CRC reports whether the FPDUs have CRCs.
func (h *Half) CRC() bool { return slices.ContainsFunc(h.Pieces, func(p Piece) bool { return p.crc }) }

// cutRest makes one piece of all that follows.
func (h *Half) cutRest(at int, what string) {
	b := h.octets[at:]
	parts := []Part{{Octets: b, Text: OctetsText(len(b))}}
	h.Pieces = append(h.Pieces, Piece{Kind: KindOctets, Title: what, Octets: b, Parts: parts})
}

// guess cuts FPDUs that no startup frame precedes, with markers or without.
func (h *Half) guess() {
	without := h.cutFPDUs(0)
	h.Markers = true
	with := h.cutFPDUs(0)
	if h.Markers = complaints(with) < complaints(without); h.Markers {
		h.Pieces = with
	} else {
		h.Pieces = without
	}
}

func complaints(pieces []Piece) int {
	n := 0
	for _, p := range pieces {
		if p.Complaint != "" {
			n++
		}
	}
	return n
}

// cutFPDUs cuts FPDUs from octet at on.
func (h *Half) cutFPDUs(at int) []Piece {
	var pieces []Piece
	d := mpa.NewDeframer(false, h.Markers)
	d.SetBuffer(make([]byte, mpa.MinBuffer))
	begin := at
	add := func(end int, f *mpa.FPDU, complaint string) {
		e := fpduPiece(h.octets[begin:end], uint64(begin-at), h.Markers)
		begin = end
		e.Number = len(pieces) + 1
		e.Complaint = complaint
		if f == nil {
			e.Kind, e.Number = KindOctets, 0
		}
		pieces = append(pieces, e)
	}
	for fed := at; ; {
		f, ok, err := d.NextRaw()
		switch {
		case err != nil:
			add(len(h.octets), nil, err.Error())
			return pieces
		case ok:
			add(at+int(d.Position()), &f, frameComplaint(f))
			pieces[len(pieces)-1].crc = f.CRC != 0
		case fed == len(h.octets):
			if begin < len(h.octets) {
				add(len(h.octets), nil, "incomplete")
			}
			return pieces
		default:
			fed += d.Feed(h.octets[fed:])
		}
	}
}

// frameComplaint is what is wrong with an FPDU's frame. A CRC field of zero is that
// of a stream without CRCs.
func frameComplaint(f mpa.FPDU) string {
	switch {
	case !f.MarkersOK:
		return "a marker does not point at the FPDU's length"
	case f.CRC != f.Computed && f.CRC != 0:
		return fmt.Sprintf("CRC is 0x%08x, right is 0x%08x", f.CRC, f.Computed)
	}
	return ""
}

// OctetsText is a number of octets, in words.
func OctetsText(n int) string {
	if n == 1 {
		return "1 octet"
	}
	return fmt.Sprintf("%d octets", n)
}
