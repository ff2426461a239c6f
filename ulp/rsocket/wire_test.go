package rsocket

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHelloOfLibrdmacm: private data as librdmacm of x86 makes it by default, by docs/decisions/0022.
func TestHelloOfLibrdmacm(t *testing.T) {
	b, err := hex.DecodeString("01020180000000000000000102030405a1a2a3a4000000020000000a0b0c0d0eb1b2b3b400010000")
	require.NoError(t, err)
	h, err := parseHello(b)
	require.NoError(t, err)
	require.Equal(t, hello{
		flags: flagMap, credits: 384,
		list: target{0x0102030405, 0xa1a2a3a4, 2}, data: target{0xa0b0c0d0e, 0xb1b2b3b4, 65536},
	}, h)
	require.Equal(t, b, h.append(nil))
	padded, err := parseHello(append(b, make([]byte, 16)...))
	require.NoError(t, err)
	require.Equal(t, h, padded)
}

// TestMessages: octets of messages as the stock peer sends them.
func TestMessages(t *testing.T) {
	for octets, m := range map[string]message{
		"05000000": newMessage(opData, 5),
		"80010080": newMessage(opGrant, 384),
		"000000c0": newMessage(opMap, 0),
		"000000e0": newMessage(opState, stateDisconnect),
		"020000e0": newMessage(opState, stateShutdown),
	} {
		var b [4]byte
		order.PutUint32(b[:], uint32(m))
		require.Equal(t, octets, hex.EncodeToString(b[:]))
	}
}

func TestScale(t *testing.T) {
	for _, n := range []int{0, 1, 128, 256, 512, 127 << 8} {
		require.Equal(t, n, unscaled(scaled(n)))
	}
	require.Equal(t, 127<<8, unscaled(scaled(1<<20)))
	require.Equal(t, 128, unscaled(scaled(200)), "rounded down")
}

// FuzzHello: nothing that a peer sends as private data does harm, and what is taken goes back as it came.
func FuzzHello(f *testing.F) {
	f.Add(hello{flags: flagMap, credits: 384, mapped: 256, list: target{1, 2, 3}, data: target{4, 5, 6}}.append(nil))
	f.Add([]byte{1, 2, 1, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		again, err := parseHello(h.append(nil))
		require.NoError(t, err)
		if h.mapped == 0 || unscaled(scaled(h.mapped)) == h.mapped {
			require.Equal(t, h, again)
		}
	})
}

// FuzzMessages: any messages, and reads between them, leave a ring whose parts add up, or are refused.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 5, 0, 0, 0x80, 3, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newInbound(64, 16)
		for ; len(b) >= 4; b = b[4:] {
			m := message(order.Uint32(b))
			switch m.op() {
			case opData:
				if in.data(m.value()) != nil {
					return
				}
			case opMap:
				if in.skip() != nil {
					return
				}
			default:
				in.consume(min(int(m.value()), in.unread))
			}
			if m.value()%2 == 0 && in.due() {
				in.grant()
			}
			whole := in.unread + in.room + in.spare
			if in.ahead {
				whole += in.half
			}
			require.Equal(t, in.size, whole, "each octet of the ring is read, granted, or spare")
			require.GreaterOrEqual(t, in.unread, 0)
			a, c := in.span(make([]byte, in.size))
			require.Equal(t, in.unread, len(a)+len(c))
		}
	})
}

// TestHalves plays both sides against one another, with sizes at random, and a memory for the target list between them.
func TestHalves(t *testing.T) {
	const size, credits = 64, 16
	r := rand.New(rand.NewPCG(1, 2))
	in := newInbound(size, credits)
	list := make([]byte, 2*targetSize)
	out := newOutbound(hello{credits: credits, data: target{addr: 1000, key: 7, length: size / 2}}, list)
	ring := make([]byte, size)
	var wrote, read byte
	entry := 1
	for range 100000 {
		if n := out.room(); n > 0 && r.IntN(2) == 0 {
			n = 1 + r.Uint32N(n)
			at := out.take(n)
			for i := range at.length {
				ring[at.addr-1000+uint64(i)] = wrote
				wrote++
			}
			require.EqualValues(t, 7, at.key)
			require.NoError(t, in.data(n))
		}
		if in.unread > 0 && r.IntN(2) == 0 {
			a, b := in.span(ring)
			n := 1 + r.IntN(in.unread)
			for _, v := range append(append([]byte{}, a...), b...)[:n] {
				require.Equal(t, read, v)
				read++
			}
			in.consume(n)
		}
		for in.due() && r.IntN(2) == 0 {
			limit, off, n := in.grant()
			if n > 0 {
				target{1000 + uint64(off), 7, uint32(n)}.put(list[entry*targetSize:])
				entry ^= 1
			}
			out.granted(limit)
		}
	}
	require.Positive(t, read)
}

// TestHalfWritten: an entry that the peer is writing is not taken.
func TestHalfWritten(t *testing.T) {
	list := make([]byte, 2*targetSize)
	out := newOutbound(hello{credits: 16, data: target{1, 1, 1}}, list)
	whole := target{addr: 10, key: 11, length: 12}
	for _, part := range []target{{addr: 10}, {addr: 10, key: 11}, {key: 11, length: 12}, {length: 12}, {addr: 10, length: 12}} {
		part.put(list[targetSize:])
		out.granted(16)
		require.Empty(t, out.ahead)
	}
	whole.put(list[targetSize:])
	out.granted(16)
	require.Equal(t, []target{whole}, out.ahead)
	require.Equal(t, target{1, 1, 1}, out.to)
	out.take(1)
	require.Equal(t, whole, out.to)
	require.Equal(t, make([]byte, len(list)), list)
}

// TestReserve: data leaves receives of the peer to what does not count.
func TestReserve(t *testing.T) {
	out := newOutbound(hello{credits: 16, data: target{1, 1, 1000}}, make([]byte, 32))
	n := 0
	for out.room() > 0 {
		out.take(1)
		n++
	}
	require.Equal(t, 16-reserve, n)
}
