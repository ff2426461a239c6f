package report

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

// startupBegin is how both keys begin. A key that goes wrong behind it is shown as
// the startup frame that it was meant to be.
var startupBegin = []byte("MPA ID")

func beginsStartup(b []byte) bool { return bytes.HasPrefix(b, startupBegin) }

// cut takes both halves of a stream apart.
func (s *stream) cut() {
	if s.cutVI() {
		return
	}
	a, b := &s.sent, &s.received
	a.startup, b.startup = beginsStartup(a.octets), beginsStartup(b.octets)
	from, to := a.cutStartup(), b.cutStartup()
	rejected := a.flag(flagR) || b.flag(flagR)
	for _, h := range []struct {
		h, peer *half
		at      int
	}{{a, b, from}, {b, a, to}} {
		switch {
		case h.at == len(h.h.octets):
		case rejected || h.h.startup != h.peer.startup:
			h.h.cutRest(h.at, "octets outside of FPDUs")
		case h.h.startup:
			h.h.markers = h.peer.flag(flagM) // who receives them asks for them
			h.h.pieces = append(h.h.pieces, h.h.cutFPDUs(h.at)...)
		default:
			h.h.guess()
		}
	}
}

// flag is one of a half's startup frame.
func (h *half) flag(mask byte) bool {
	return h.startup && len(h.octets) > flagsAt && h.octets[flagsAt]&mask != 0
}

// cutStartup cuts the startup frame off, if there is one, and says where what
// follows begins.
func (h *half) cutStartup() int {
	if !h.startup {
		return 0
	}
	n := headOctets
	if len(h.octets) >= headOctets {
		n += int(binary.BigEndian.Uint16(h.octets[headOctets-2:]))
	}
	e := Entry{Kind: KindStartup}
	if n > len(h.octets) {
		n = len(h.octets)
		e.Complaint = "incomplete"
	}
	e.Octets = h.octets[:n]
	e.Fields = startupFields(e.Octets)
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
	h.pieces = append(h.pieces, piece{Entry: e, end: n})
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

// crc reports whether a half's FPDUs have CRCs.
func (h *half) crc() bool { return slices.ContainsFunc(h.pieces, func(p piece) bool { return p.crc }) }

// cutRest makes one piece of all that follows.
func (h *half) cutRest(at int, what string) {
	b := h.octets[at:]
	e := Entry{Kind: KindOctets, Title: what, Octets: b, Fields: []Field{{Octets: b, Text: octetsText(len(b))}}}
	h.pieces = append(h.pieces, piece{Entry: e, end: len(h.octets)})
}

// guess cuts FPDUs that no startup frame precedes, with markers or without.
func (h *half) guess() {
	without := h.cutFPDUs(0)
	h.markers = true
	with := h.cutFPDUs(0)
	if h.markers = complaints(with) < complaints(without); h.markers {
		h.pieces = with
	} else {
		h.pieces = without
	}
}

func complaints(pieces []piece) int {
	n := 0
	for _, p := range pieces {
		if p.Complaint != "" {
			n++
		}
	}
	return n
}

// cutFPDUs cuts FPDUs from octet at on.
func (h *half) cutFPDUs(at int) []piece {
	var pieces []piece
	d := mpa.NewDeframer(false, h.markers)
	d.SetBuffer(make([]byte, mpa.MinBuffer))
	add := func(end int, f *mpa.FPDU, complaint string) {
		begin := last(pieces, at)
		e := fpduEntry(h.octets[begin:end], uint64(begin-at), h.markers)
		e.Number = len(pieces) + 1
		e.Complaint = complaint
		if f == nil {
			e.Kind, e.Number = KindOctets, 0
		}
		pieces = append(pieces, piece{Entry: e, end: end})
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
			if last(pieces, at) < len(h.octets) {
				add(len(h.octets), nil, "incomplete")
			}
			return pieces
		default:
			fed += d.Feed(h.octets[fed:])
		}
	}
}

// last is where the last piece ends.
func last(pieces []piece, begin int) int {
	if len(pieces) == 0 {
		return begin
	}
	return pieces[len(pieces)-1].end
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

func octetsText(n int) string {
	if n == 1 {
		return "1 octet"
	}
	return fmt.Sprintf("%d octets", n)
}
