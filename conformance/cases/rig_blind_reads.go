package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// What a peer asks and tells a program that speaks rping's language.

// ours are the peer's buffers, in name.
var ours = []offered{{0xABCD1234, 0x1122334455667788, 64}, {0x1234ABCD, 0x99, 64}}

// round plays a client's first half of a round: the target fetches a buffer.
func (b *blind) round() read {
	b.offer(ours[0])
	r := b.fetched(ours[0])
	b.send(aReadResponse(r.sinkSTag, r.sinkTO, blindText(int(r.size))))
	return r
}

// blindText is n octets that rping returns all: it stops behind the first zero.
func blindText(n int) []byte { return append(bytes.Repeat([]byte("x"), max(n-1, 0)), 0)[:n] }

// read reads n octets of a buffer of the target's, and checks the headers of the
// response.
func (b *blind) read(from offered, off, n, sink uint32) []byte {
	b.send(aReadRequest(b.nextRead(), read{sink, nowhereTO, n, from.stag, from.to + uint64(off)}))
	var got []byte
	for {
		u := b.next()
		require.GreaterOrEqual(b.t, len(u), 14, "% x", u)
		first := either(u[0] == lastTagged, lastTagged, byte(moreTagged))
		require.Equal(b.t, tagged(first, opReadResponse, sink, nowhereTO+uint64(len(got)), nil), u[:14], "the response's header")
		got = append(got, u[14:]...)
		if first == lastTagged {
			return got
		}
	}
}

// badSegment is a segment that is refused with this code.
type badSegment struct {
	what  string
	ulpdu []byte
	codes []uint16
}

// blindRefuses tries segments, each on a stream of its own.
func blindRefuses(t *conformance.T, segments ...badSegment) {
	for x := range inTurn(t, "%s", segments) {
		b := startBlind(t, conformance.Either)
		b.send(x.ulpdu)
		b.refusedAs(x.codes...)
		b.close()
	}
}

// aMessage is one that rping understands, as client or as server.
func aMessage() []byte { return ours[0].octets() }
