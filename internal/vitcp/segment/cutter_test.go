package segment_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// cut feeds a stream to a Cutter in pieces of the sizes that next gives, and
// returns its segments' octets, faults and the fault that ended it.
func cut(t testing.TB, c *segment.Cutter, stream []byte, next func() int) (lines []string, faults []segment.ParseFault, lost segment.ParseFault) {
	for {
		s, ok, fault := c.Next()
		if ok {
			lines = append(lines, s.String()+" "+string(s.Payload()))
			faults = append(faults, fault)
			continue
		}
		if fault != segment.FaultNone || len(stream) == 0 {
			return lines, faults, fault
		}
		space := c.Space()
		require.NotEmpty(t, space)
		n := copy(space, stream[:min(max(next(), 1), len(stream))])
		c.Advance(n)
		stream = stream[n:]
	}
}

// sends is a stream of Sends with random payload, and their payloads.
func sends(rng *rand.Rand, count, most int, crc bool) (stream []byte, payloads [][]byte) {
	for i := range count {
		p := make([]byte, rng.IntN(most+1))
		for k := range p {
			p[k] = byte(rng.Uint32())
		}
		h := segment.Header{Type: segment.Send, Flags: segment.EndOfMessage, Number: uint32(i)}
		h.SetLength(len(p), crc)
		start := len(stream)
		stream = append(h.Append(stream), p...)
		if crc {
			stream = segment.AppendCRC(stream, start)
		}
		payloads = append(payloads, p)
	}
	return stream, payloads
}

func TestCutterAnyChopping(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	whole := func() int { return 1 << 20 }
	for name, next := range map[string]func() int{
		"octet by octet": func() int { return 1 },
		"three":          func() int { return 3 },
		"random":         func() int { return rng.IntN(2000) },
		"all at once":    whole,
	} {
		t.Run(name, func(t *testing.T) {
			for _, crc := range []bool{false, true} {
				for _, size := range []int{0, 1000, 100_000} {
					stream, payloads := sends(rng, 40, 3000, crc)
					lines, faults, lost := cut(t, segment.NewCutter(size, crc), stream, next)
					require.Equal(t, segment.FaultNone, lost)
					require.Len(t, lines, len(payloads))
					for i, p := range payloads {
						require.True(t, bytes.HasSuffix([]byte(lines[i]), p), "segment %d", i)
						require.Equal(t, segment.FaultNone, faults[i])
					}
				}
			}
		})
	}
}

func TestCutterLargestSegment(t *testing.T) {
	h := segment.Header{Type: segment.Send, Flags: segment.EndOfMessage}
	h.SetLength(segment.Send.MaxPayload(false), false)
	b := append(h.Append(nil), make([]byte, segment.Send.MaxPayload(false))...)
	c := segment.NewCutter(0, false)
	lines, _, lost := cut(t, c, append(b, b...), func() int { return 5000 })
	assert.Equal(t, segment.FaultNone, lost)
	assert.Len(t, lines, 2)
	assert.LessOrEqual(t, len(c.Space()), segment.MaxSegment, "the buffer is bounded")
}

// A segment with a fault leaves the next one in place; a lost frame does not.
func TestCutterFaults(t *testing.T) {
	good := sized(t, "0180 0000 00000000 00000000"+rest+"6869", true)
	bad := append([]byte(nil), good...)
	bad[25] ^= 0x20
	all := func() int { return 1 << 20 }

	stream := append(append(append([]byte(nil), good...), bad...), good...)
	lines, faults, lost := cut(t, segment.NewCutter(0, true), stream, all)
	assert.Len(t, lines, 3)
	assert.Equal(t, []segment.ParseFault{segment.FaultNone, segment.FaultCRC, segment.FaultNone}, faults)
	assert.Equal(t, segment.FaultNone, lost)

	for want, broken := range map[segment.ParseFault][]byte{
		segment.FaultVersion: {2, 0x80, 0, 24},
		segment.FaultFrame:   {1, 0x80, 0, 23},
	} {
		c := segment.NewCutter(0, true)
		stream = append(append(append([]byte(nil), good...), broken...), good...)
		lines, _, lost = cut(t, c, stream, all)
		assert.Len(t, lines, 1, "what came before is delivered")
		assert.Equal(t, want, lost)
		n := copy(c.Space(), good)
		c.Advance(n)
		_, ok, fault := c.Next()
		assert.False(t, ok)
		assert.Equal(t, want, fault, "and nothing comes after")
		_, ok = c.Divert()
		assert.False(t, ok)
	}
}

// With Divert a payload goes where it belongs, and the Cutter goes on behind it.
func TestCutterDivert(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, crc := range []bool{false, true} {
		stream, payloads := sends(rng, 60, 9000, crc)
		src := bytes.NewReader(stream)
		c := segment.NewCutter(0, crc)
		var got [][]byte
		diverted := 0
		for len(got) < len(payloads) {
			s, ok, fault := c.Next()
			require.Equal(t, segment.FaultNone, fault)
			if ok {
				got = append(got, bytes.Clone(s.Payload()))
				continue
			}
			if s, ok := c.Divert(); ok {
				diverted++
				p := make([]byte, s.Size())
				n := copy(p, s.Payload())
				require.Equal(t, s.Missing(), len(p)-n)
				_, err := io.ReadFull(src, p[n:])
				require.NoError(t, err)
				if crc {
					var trailer [4]byte
					_, err := io.ReadFull(src, trailer[:])
					require.NoError(t, err)
					require.True(t, s.Sum().Add(p[n:]).Matches(trailer[:]))
				}
				got = append(got, p)
				continue
			}
			space := c.Space()
			n, err := src.Read(space[:min(len(space), 1+rng.IntN(700))])
			require.NoError(t, err)
			c.Advance(n)
		}
		assert.Equal(t, payloads, got)
		assert.Positive(t, diverted)
		assert.Zero(t, c.Buffered()+src.Len())
	}
}

// Nothing is diverted that Next would complain about, or that has no payload on
// its way.
func TestCutterDivertRefuses(t *testing.T) {
	for name, hex := range map[string]string{
		"headers not here": "0181 0100 00000000 00000000" + rest + "0000000000001000 00000001 000001",
		"no payload":       "0182 0100 00000000 00000000" + rest + "0000000000001000 00000001 00000100",
		"establishment":    "0185 0100 00000000 00000000" + rest,
		"too long":         "0180 0100 ffffffff 00000000" + rest,
		"unknown type":     "0190 0100 00000000 00000000" + rest,
		"only its trailer": "0180 001e 00000000 00000000" + rest + "aabb",
		"nothing":          "0180",
	} {
		c := segment.NewCutter(0, true)
		c.Advance(copy(c.Space(), unhex(t, hex)))
		_, ok, fault := c.Next()
		require.False(t, ok, name)
		require.Equal(t, segment.FaultNone, fault, name)
		_, ok = c.Divert()
		assert.False(t, ok, name)
		assert.Equal(t, len(unhex(t, hex)), c.Buffered(), name)
	}
}

func TestCutterAllocatesNothing(t *testing.T) {
	stream, _ := sends(rand.New(rand.NewPCG(7, 8)), 20, 100, true)
	c := segment.NewCutter(1<<16, true)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		c.Advance(copy(c.Space(), stream))
		for {
			if _, ok, _ := c.Next(); !ok {
				return
			}
		}
	}))
}
