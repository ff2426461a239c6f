package cases

import (
	"encoding/binary"
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// parcel is a message that came, put together from its segments.
type parcel struct {
	tagged   bool
	control  byte   // RsvdULP: RDMAP's control octet
	inv      uint32 // the other 32 bits of an untagged message's
	stag     uint32 // of a tagged message
	to       uint64 // of its first octet
	qn, msn  uint32 // of an untagged message
	payload  []byte
	segments []int // the length of each ULPDU
}

// message reads segments up to one with the Last flag. All fields that belong to the
// message have to be the same in each of them, and the offsets have to go on (RFC
// 5041 4.1 to 4.3, 5.2).
func message(t *conformance.T, next func() []byte) parcel {
	var p parcel
	for k := 0; ; k++ {
		u := next()
		require.GreaterOrEqual(t, len(u), 14, "a segment of % x", u)
		require.Equal(t, byte(1), u[0]&0x3F, "the reserved bits and the version in % x", u[:14])
		q := parcel{tagged: u[0]&0x80 != 0, control: u[1]}
		first := u[0] // of the header that is expected
		var header []byte
		if q.tagged {
			q.stag, q.to = binary.BigEndian.Uint32(u[2:]), binary.BigEndian.Uint64(u[6:])
			if k == 0 {
				p = q
			}
			header = tagged(first, p.control, p.stag, p.to+uint64(len(p.payload)), nil)
		} else {
			require.GreaterOrEqual(t, len(u), 18, "an untagged segment of % x", u)
			q.inv, q.qn = binary.BigEndian.Uint32(u[2:]), binary.BigEndian.Uint32(u[6:])
			q.msn = binary.BigEndian.Uint32(u[10:])
			if k == 0 {
				p = q
			}
			header = untagged(first, p.control, p.inv, p.qn, p.msn, uint32(len(p.payload)), nil)
		}
		require.Equal(t, p.tagged, q.tagged, "segment %d of a message: the T flag in % x", k, u[:14])
		require.Equal(t, header, u[:len(header)], "segment %d of a message: its header", k)
		p.payload = append(p.payload, u[len(header):]...)
		p.segments = append(p.segments, len(u))
		if u[0]&0x40 != 0 {
			return p
		}
	}
}

// message is the next message from the queue pair.
func (r *rig) message() parcel { return message(r.t, r.next) }

// message is the next message that the peer of a line gets.
func (l *line) message() parcel { return message(l.t, l.heard) }

// number is a queue and a number on it.
type number struct{ qn, msn uint32 }

// counter says of untagged messages that their numbers are consecutive, from 1 on
// each queue (RFC 5041 4.3).
type counter map[uint32]uint32

func (c counter) counts(t *conformance.T, p parcel) {
	if !p.tagged {
		c[p.qn]++
		require.Equal(t, number{p.qn, c[p.qn]}, number{p.qn, p.msn}, "the number of a message on its queue")
	}
}

// over makes a line whose stream is s, the queue pair being the side that may send
// first. near is the peer's end of it.
func (l *line) over(s verbs.Stream, near io.ReadWriter) {
	l.renumber()
	begin(l.t, l.qp, s)
	if c, ok := near.(interface{ Close() error }); ok {
		l.t.Cleanup(func() { _ = c.Close() })
	}
}

// paced makes a line over TCP segments of that many octets at most, as its LLP says.
func (n *node) paced(emss int, markers bool, c verbs.QPConfig) *line {
	l := n.loose(c)
	x, y := tcpPair(n.t)
	l.over(verbs.Stream{Conn: y, Role: asInitiator, CRC: true, MarkersOut: markers, EMSS: emss}, x)
	l.peer = newRawEnd(n.t.Trace().Conn(x), framing{crc: true, markersIn: markers, patience: patience(n.t)})
	return l
}

// pieces sends ULPDUs with each write of the LLP no longer than n octets.
func (r *rig) pieces(n int, ulpdus ...[]byte) {
	var b []byte
	for _, u := range ulpdus {
		b = append(b, r.peer.Frame(u)...)
	}
	for len(b) > 0 {
		k := min(n, len(b))
		require.NoError(r.t, r.peer.Raw(b[:k]), "sending")
		b = b[k:]
	}
}

// cutUp makes an untagged message of segments whose payloads have these lengths, the
// last one with the Last flag.
func cutUp(control byte, inv, msn uint32, payload []byte, lengths ...int) [][]byte {
	var list [][]byte
	mo := 0
	for i, n := range lengths {
		first := either(i == len(lengths)-1, lastUntagged, byte(moreUntagged))
		list = append(list, untagged(first, control, inv, 0, msn, uint32(mo), payload[mo:mo+n]))
		mo += n
	}
	return list
}

// cutTagged is cutUp for a tagged message.
func cutTagged(control byte, stag uint32, to uint64, payload []byte, lengths ...int) [][]byte {
	var list [][]byte
	off := 0
	for i, n := range lengths {
		first := either(i == len(lengths)-1, lastTagged, byte(moreTagged))
		list = append(list, tagged(first, control, stag, to+uint64(off), payload[off:off+n]))
		off += n
	}
	return list
}
