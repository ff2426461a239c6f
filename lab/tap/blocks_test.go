package tap

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// read is what the blocks of a capture hold: of each sender how many sequence numbers its segments take, and how many
// records are missing.
type read struct {
	sent map[netip.AddrPort]uint32
	lost uint64
}

// blocks reads a capture of IPv4, octet by octet as draft-ietf-opsawg-pcapng, 3.1, RFC 791 3.1 and RFC 9293 3.1 have it. The
// decoder of `rnic dump`, which other people's captures hold to the same, reads taps in its own tests.
func blocks(t *testing.T, capture []byte) read {
	t.Helper()
	r := read{sent: map[netip.AddrPort]uint32{}}
	for len(capture) > 0 {
		require.GreaterOrEqual(t, len(capture), 12)
		kind, n := le.Uint32(capture), le.Uint32(capture[4:])
		require.Zero(t, n%4)
		require.LessOrEqual(t, int(n), len(capture))
		require.Equal(t, n, le.Uint32(capture[n-4:]), "both lengths")
		body := capture[8 : n-4]
		switch capture = capture[n:]; kind {
		case blockStatistics:
			require.Equal(t, uint16(optDropped), le.Uint16(body[12:]))
			r.lost = le.Uint64(body[16:])
		case blockPacket:
			p := body[20:]
			require.Equal(t, le.Uint32(body[12:]), le.Uint32(body[16:]), "captured whole")
			p = p[:le.Uint32(body[12:])]
			require.EqualValues(t, 0x45, p[0])
			require.Len(t, p, int(binary.BigEndian.Uint16(p[2:])))
			src, _ := netip.AddrFromSlice(p[12:16])
			from, tcp := netip.AddrPortFrom(src, binary.BigEndian.Uint16(p[20:])), p[20:]
			n := uint32(len(tcp) - int(tcp[12]>>4)*4)
			for _, flag := range []byte{syn, fin} {
				if tcp[13]&flag != 0 {
					n++
				}
			}
			if tcp[13]&rst == 0 {
				r.sent[from] += n
			}
		}
	}
	return r
}
