package report

import (
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/dissect"
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

// Kind is what an Entry is: "startup" for an MPA Request or Reply frame, "fpdu", "segment" for one of VI/TCP, "octets" for
// none of these, or one of the kinds that have no octets.
type Kind = dissect.Kind

// The kinds without octets.
const (
	KindNote Kind = "note"
	KindEnd  Kind = "end" // FIN, RST
)

// Field is a part of an Entry's octets: Layer is MPA, DDP, RDMAP or VI, or "" for payload; Text is what Octets say.
type Field = dissect.Part

// half is one direction of a stream.
type half struct {
	octets []byte
	given  int // octets of the marks seen so far
	next   int // the first piece that is not an Entry yet
	ends   int // where the pieces before it end
}

// recordedConn is a connection of a case, both ways: as the conformance runner sent it, and received it.
type recordedConn struct {
	halves [2]half
	*dissect.Recording
}

// exchange is a decoded trace.
type exchange struct {
	entries []Entry
	streams map[int]*recordedConn
}

// Decode makes sense of a case's trace. A piece of a stream stands where its last
// octet was recorded.
func Decode(marks []conformance.Mark) []Entry { return decode(marks).entries }

func decode(marks []conformance.Mark) exchange {
	x := exchange{streams: map[int]*recordedConn{}}
	for _, m := range marks {
		if m.Stream == 0 {
			continue
		}
		if x.streams[m.Stream] == nil {
			x.streams[m.Stream] = &recordedConn{}
		}
		h := &x.streams[m.Stream].halves[side(m.Direction)]
		h.octets = append(h.octets, m.Octets...)
	}
	for _, s := range x.streams {
		s.Recording = dissect.Cut(s.halves[0].octets, s.halves[1].octets)
	}
	for _, m := range marks {
		if m.Stream == 0 {
			if m.Text == "" {
				continue
			}
			x.entries = append(x.entries, Entry{At: m.At, Kind: KindNote, Title: m.Text})
			continue
		}
		s := x.streams[m.Stream]
		h, pieces := &s.halves[side(m.Direction)], s.Halves[side(m.Direction)].Pieces
		h.given += len(m.Octets)
		for ; h.next < len(pieces) && h.ends+len(pieces[h.next].Octets) <= h.given; h.next++ {
			p := pieces[h.next]
			h.ends += len(p.Octets)
			x.entries = append(x.entries, Entry{
				At: m.At, Stream: m.Stream, Direction: m.Direction, Kind: p.Kind, Number: p.Number, Title: p.Title,
				Complaint: p.Complaint, Octets: p.Octets, Fields: p.Parts,
			})
		}
		if m.Text != "" {
			x.entries = append(x.entries, Entry{At: m.At, Stream: m.Stream, Direction: m.Direction, Kind: KindEnd, Title: m.Text})
		}
	}
	return x
}
