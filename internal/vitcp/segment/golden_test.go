package segment_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// field64 is a discriminator's field: the text and zeros.
func field64(s string) string {
	return hex.EncodeToString(append([]byte(s), make([]byte, 64-len(s))...))
}

// golden are segments written out from the figures of sections 3.2 to 3.5. The
// CRCs come from a program that divides polynomials.
var golden = []struct {
	name    string
	hex     string
	crc     bool
	header  segment.Header
	rdma    segment.RDMA
	ce      segment.CE
	payload string
	dump    string
}{
	{
		name: "Send with immediate data and CRC", crc: true,
		hex: "01 c0 001f 00000000 deadbeef 00000123 00000122 0004 0000 616263 1460474c",
		header: segment.Header{Type: segment.Send, Flags: segment.EndOfMessage | segment.ImmediateValid, Length: 31,
			Immediate: 0xdeadbeef, Number: 0x123, Ack: 0x122, RxPosted: 4},
		payload: "abc",
		dump:    "Send #291 +0 Eom IdV=0xdeadbeef len 31 ack 290 rx 4 crc",
	},
	{
		name: "Send, empty",
		hex:  "01 80 0018 00000000 00000000 ffffffff 00000000 0000 0000",
		header: segment.Header{Type: segment.Send, Flags: segment.EndOfMessage, Length: 24,
			Number: 0xffffffff},
		dump: "Send #4294967295 +0 Eom len 24 ack 0 rx 0",
	},
	{
		name: "Send, not the last, with a transmit error",
		hex:  "01 20 001a 00000500 00000000 00000001 00000000 ffff 0000 6869",
		header: segment.Header{Type: segment.Send, Flags: segment.TransmitError, Length: 26, Offset: 0x500,
			Number: 1, RxPosted: 65535},
		payload: "hi",
		dump:    "Send #1 +1280 TrE len 26 ack 0 rx 65535",
	},
	{
		name: "RDMA Write, last segment", crc: true,
		hex: "01 81 002e 00000500 00000000 00000124 00000000 0000 0000" +
			"000000007f001000 00010002 00000502 beef d875b647",
		header:  segment.Header{Type: segment.RDMAWrite, Flags: segment.EndOfMessage, Length: 46, Offset: 0x500, Number: 0x124},
		rdma:    segment.RDMA{Address: 0x7f001000, Handle: 0x10002, Length: 0x502},
		payload: "\xbe\xef",
		dump:    "RdmaWrite #292 +1280 Eom len 46 ack 0 rx 0 address 0x7f001000 handle 0x10002 length 1282 crc",
	},
	{
		name: "RDMA Read Request", crc: true,
		hex: "01 82 002c 00000000 00000000 00000125 00000000 0000 0000" +
			"0000000000002000 00000003 00010000 c54a0e00",
		header: segment.Header{Type: segment.RDMAReadRequest, Flags: segment.EndOfMessage, Length: 44, Number: 0x125},
		rdma:   segment.RDMA{Address: 0x2000, Handle: 3, Length: 65536},
		dump:   "RdmaReadRequest #293 Eom len 44 ack 0 rx 0 address 0x2000 handle 0x3 length 65536 crc",
	},
	{
		name: "RDMA Read Response, empty", crc: true,
		hex:    "01 83 001c 00000999 00000000 00777660 00000000 0000 0000 76562f43",
		header: segment.Header{Type: segment.RDMAReadResponse, Flags: segment.EndOfMessage, Length: 28, Offset: 0x999, Number: 0x777660},
		dump:   "RdmaReadResponse #7829088 +2457 Eom len 28 ack 0 rx 0 crc",
	},
	{
		name: "NOP with an error", crc: true,
		hex: "01 84 001c 00000000 00000000 00000126 00777661 0010 0b06 e862fc35",
		header: segment.Header{Type: segment.NOP, Flags: segment.EndOfMessage, Length: 28, Number: 0x126, Ack: 0x777661,
			RxPosted: 16, Code: (segment.DescriptorError | segment.TransportError).WithIS(11)},
		dump: "NOP #294 Eom len 28 ack 7829089 rx 16 error VDE|UTE|IS 11 crc",
	},
	{
		name: "ConnectRequest with all options", crc: true,
		hex: "01 85 00b2 00000000 00000000 00000007 00000000 0003 0000" +
			"007a 0005 00100000" + field64("alice") + "0008 0003" + field64("bob") +
			"0001 0004 0002 0004 0000 743ae7f2",
		header: segment.Header{Type: segment.ConnectRequest, Flags: segment.EndOfMessage, Length: 178, Number: 7, RxPosted: 3},
		ce: segment.CE{
			Attributes: (segment.WriteEnable | segment.ReadEnable | segment.FlowControl | segment.PeerToPeer).WithLevel(segment.ReliableDelivery),
			MTU:        1 << 20, ReadWindow: 8, Calling: "alice", Called: "bob",
			Options: segment.OptionCRC | segment.OptionUrgent,
		},
		dump: `ConnectRequest #7 Eom len 178 ack 0 rx 3 RD|RWE|RRE|DFC|P2P mtu 1048576 window 8 ` +
			`calling "alice" called "bob" options CRC|Urgent crc`,
	},
	{
		name: "ConnectAccept without options",
		hex: "01 86 00a6 00000000 00000000 00000001 00000007 0000 0000" +
			"0001 0000 00008000" + field64("") + "0000 0040" + field64(strings.Repeat("x", 64)) + "0000",
		header: segment.Header{Type: segment.ConnectAccept, Flags: segment.EndOfMessage, Length: 166, Number: 1, Ack: 7},
		ce: segment.CE{Attributes: segment.Attributes(0).WithLevel(segment.Unreliable), MTU: 32768,
			Called: segment.Discriminator(strings.Repeat("x", 64))},
		dump: `ConnectAccept #1 Eom len 166 ack 7 rx 0 UR mtu 32768 window 0 calling "" called "` + strings.Repeat("x", 64) + `"`,
	},
	{
		name: "ConnectReject with a reason and CRC", crc: true,
		hex: "01 87 001c 00000000 00000000 00000001 00000007 0000 0200 5b31eb9e",
		header: segment.Header{Type: segment.ConnectReject, Flags: segment.EndOfMessage, Length: 28, Number: 1, Ack: 7,
			Code: segment.ErrorCode(0).WithIS(2)},
		dump: "ConnectReject #1 Eom len 28 ack 7 rx 0 error IS 2 crc",
	},
	{
		name:   "ConnectNoMatch",
		hex:    "01 88 0018 00000000 00000000 00000002 00000007 0000 0000",
		header: segment.Header{Type: segment.ConnectNoMatch, Flags: segment.EndOfMessage, Length: 24, Number: 2, Ack: 7},
		dump:   "ConnectNoMatch #2 Eom len 24 ack 7 rx 0",
	},
}

func TestGoldenRead(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			s, fault := segment.Parse(unhex(t, g.hex), g.crc)
			require.Equal(t, segment.FaultNone, fault)
			assert.Equal(t, g.header, s.Header)
			assert.Equal(t, g.rdma, s.RDMA())
			assert.Equal(t, g.ce, s.CE())
			assert.Equal(t, g.payload, string(s.Payload()))
			assert.Equal(t, g.crc, s.HasTrailer())
			assert.Equal(t, g.dump, s.String())
		})
	}
}

func TestGoldenWrite(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			h := g.header
			h.Length = 0
			front := []byte("in front")
			b := front
			if g.ce.MTU != 0 {
				b = g.ce.Append(b, h)
			} else {
				h.SetLength(len(g.payload), g.crc)
				b = h.Append(b)
				if h.Type.HasRDMA() {
					b = g.rdma.Append(b)
				}
				b = append(b, g.payload...)
				if g.crc {
					b = segment.AppendCRC(b, len(front))
				}
			}
			assert.Equal(t, hex.EncodeToString(unhex(t, g.hex)), hex.EncodeToString(b[len(front):]))
		})
	}
}

// The CRCs of the golden frames are those of the draft's five steps.
func TestGoldenCRC(t *testing.T) {
	for _, g := range golden {
		if g.crc {
			b := unhex(t, g.hex)
			want := fiveSteps(b)
			assert.Equal(t, want[:], b[len(b)-4:], g.name)
		}
	}
}
