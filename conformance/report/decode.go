package report

import (
	"time"

	"github.com/softrnic/softrnic/conformance"
)

// Entry is one thing that happened in a case: a piece of a stream that belongs
// together, the end of a stream, or a note.
type Entry struct {
	At        time.Duration // since the case began
	Stream    int           // from 1; 0 for a note
	Direction conformance.Direction
	// Kind says what Octets are.
	Kind Kind
	// Number counts the FPDUs, or VI segments, of a direction, from 1.
	Number int
	// Title is the entry in a few words; of a note, all of it.
	Title string
	// Complaint is what is wrong with the octets as such: a CRC, a marker, a
	// length.
	Complaint string
	Octets    []byte
	Fields    []Field
}

// Kind is what an Entry is.
type Kind string

// The kinds.
const (
	KindNote    Kind = "note"
	KindEnd     Kind = "end"     // FIN, RST
	KindStartup Kind = "startup" // an MPA Request or Reply frame
	KindFPDU    Kind = "fpdu"
	KindSegment Kind = "segment" // of VI/TCP
	KindOctets  Kind = "octets"  // none of these
)

// Field is a part of an Entry's octets: of which layer, and what it says.
type Field struct {
	Layer  string // MPA, DDP, RDMAP or VI; "" for payload
	Octets []byte
	Text   string
}

// half is one direction of a stream.
type half struct {
	octets  []byte
	startup bool // begins as a startup frame does
	markers bool // in its FPDUs
	pieces  []piece
	next    int // the first piece that is not an Entry yet
	given   int // octets of the marks seen so far
}

// piece is an Entry in the making, up to octet end of its half.
type piece struct {
	Entry
	end int
	crc bool // its CRC field is not zero
}

// stream is a connection of a case, both ways.
type stream struct {
	sent, received half
	vi             bool // of VI/TCP
}

func (s *stream) half(d conformance.Direction) *half {
	if d == conformance.Received {
		return &s.received
	}
	return &s.sent
}

// exchange is a decoded trace.
type exchange struct {
	entries []Entry
	streams map[int]*stream
}

// Decode makes sense of a case's trace. A piece of a stream stands where its last
// octet was recorded.
//
// Streams of cases need not be good ones, and those of API cases begin behind MPA's
// startup: what is not known from startup frames is guessed, so that the fewest
// FPDUs look wrong.
func Decode(marks []conformance.Mark) []Entry { return decode(marks).entries }

func decode(marks []conformance.Mark) exchange {
	x := exchange{streams: map[int]*stream{}}
	for _, m := range marks {
		if m.Stream == 0 {
			continue
		}
		if x.streams[m.Stream] == nil {
			x.streams[m.Stream] = &stream{}
		}
		h := x.streams[m.Stream].half(m.Direction)
		h.octets = append(h.octets, m.Octets...)
	}
	for _, s := range x.streams {
		s.cut()
	}
	for _, m := range marks {
		if m.Stream == 0 {
			if m.Text == "" {
				continue
			}
			x.entries = append(x.entries, Entry{At: m.At, Kind: KindNote, Title: m.Text})
			continue
		}
		h := x.streams[m.Stream].half(m.Direction)
		h.given += len(m.Octets)
		for ; h.next < len(h.pieces) && h.pieces[h.next].end <= h.given; h.next++ {
			e := h.pieces[h.next].Entry
			e.At, e.Stream, e.Direction = m.At, m.Stream, m.Direction
			x.entries = append(x.entries, e)
		}
		if m.Text != "" {
			x.entries = append(x.entries, Entry{At: m.At, Stream: m.Stream, Direction: m.Direction, Kind: KindEnd, Title: m.Text})
		}
	}
	return x
}
