package mpa

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFramerAgainstTwin(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, markers := range []bool{false, true} {
			r := newRand()
			f, slow := NewFramer(crc, markers), slowFramer{crc: crc, markers: markers}
			for _, n := range ulpduLengths(r) {
				ulpdu := randomOctets(r, n)
				want := slow.fpdu(ulpdu)
				require.Equal(t, len(want), f.Size(n))
				a := r.IntN(n + 1)
				b := a + r.IntN(n-a+1)
				got := f.AppendFPDU(nil, ulpdu[:a], ulpdu[a:b], nil, ulpdu[b:])
				require.Equal(t, want, got, "crc %t markers %t ULPDU of %d", crc, markers, n)
			}
		}
	}
}

func TestFramerEveryPhase(t *testing.T) {
	for phase := 0; phase < markerPeriod; phase += 4 {
		for n := 480; n < 520; n++ { // around a period, where the cases change
			f := Framer{crc: true, markers: true, phase: uint16(phase)}
			slow := slowFramer{crc: true, markers: true, pos: phase}
			ulpdu := make([]byte, n)
			require.Equal(t, slow.fpdu(ulpdu), f.AppendFPDU(nil, ulpdu), "phase %d length %d", phase, n)
		}
	}
}

func TestFramerGather(t *testing.T) {
	f := NewFramer(false, false)
	require.True(t, f.Gather())
	for n := range 9 {
		header, payload := []byte("head"), make([]byte, n)
		got := f.AppendHead(nil, header, n)
		got = append(got, payload...)
		got = AppendTail(got, len(header)+n)
		assert.Equal(t, f.AppendFPDU(nil, header, payload), got)
	}
	for _, other := range []Framer{NewFramer(true, false), NewFramer(false, true), NewFramer(true, true)} {
		assert.False(t, other.Gather())
	}
}

func TestFramerRefusesLongULPDU(t *testing.T) {
	for _, markers := range []bool{false, true} {
		f := NewFramer(true, markers)
		before := f
		dst := []byte("dst")
		assert.Equal(t, dst, f.AppendFPDU(dst, make([]byte, 14), make([]byte, MaxULPDU-13)))
		assert.Equal(t, before, f, "a refused FPDU takes no stream position")
		assert.Zero(t, f.Size(MaxULPDU+1))
		assert.Zero(t, f.Size(-1))
	}
	f := NewFramer(false, false)
	for _, n := range []int{-1, MaxULPDU - 1, MaxULPDU + 1, int(^uint(0) >> 1)} {
		assert.Empty(t, f.AppendHead(nil, []byte("xx"), n), "payload of %d", n)
	}
	assert.Len(t, f.AppendHead(nil, []byte("xx"), MaxULPDU-2), 4)
}

func TestLargestFPDUFitsMinBuffer(t *testing.T) {
	largest := 0
	for phase := 0; phase < markerPeriod; phase += 4 {
		f := Framer{markers: true, phase: uint16(phase)}
		largest = max(largest, f.Size(MaxULPDU), f.Size(MaxULPDU-1), f.Size(MaxULPDU-2))
	}
	assert.Equal(t, 65288, largest)
	assert.LessOrEqual(t, largest, MinBuffer)
}

func TestFramerDoesNotAllocate(t *testing.T) {
	header, payload := make([]byte, 14), make([]byte, 3000)
	for _, markers := range []bool{false, true} {
		f := NewFramer(true, markers)
		dst := make([]byte, 0, 2*MinBuffer)
		allocs := testing.AllocsPerRun(100, func() {
			dst = f.AppendFPDU(dst[:0], header, payload[:100], payload[100:])
		})
		assert.Zero(t, allocs, "markers %t", markers)
	}
	f := NewFramer(false, false)
	dst := make([]byte, 0, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		dst = AppendTail(f.AppendHead(dst[:0], header, 3000), 3014)
	}))
}

func FuzzFramer(f *testing.F) {
	f.Add(uint8(3), uint16(0), []byte("header"), []byte("payload"))
	f.Add(uint8(3), uint16(122), make([]byte, 18), make([]byte, 1000))
	f.Fuzz(func(t *testing.T, flags uint8, phase uint16, header, payload []byte) {
		crc, markers := flags&1 != 0, flags&2 != 0
		phase = phase % (markerPeriod / 4) * 4
		fast := Framer{crc: crc, markers: markers}
		slow := slowFramer{crc: crc, markers: markers}
		if markers {
			fast.phase, slow.pos = phase, int(phase)
		}
		for range 2 { // the second shows that the first left the right phase
			got := fast.AppendFPDU(nil, header, payload)
			if len(header)+len(payload) > MaxULPDU {
				require.Empty(t, got)
				return
			}
			require.Equal(t, slow.fpdu(append(append([]byte(nil), header...), payload...)), got)
		}
	})
}

func BenchmarkFramer(b *testing.B) {
	for _, bm := range []struct {
		name         string
		crc, markers bool
		size         int
	}{
		{"crc/64", true, false, 64},
		{"crc/16K", true, false, 16 << 10},
		{"nocrc/16K", false, false, 16 << 10},
		{"markers/16K", true, true, 16 << 10},
	} {
		b.Run(bm.name, func(b *testing.B) {
			header, payload := make([]byte, 14), make([]byte, bm.size)
			dst := make([]byte, 0, MinBuffer)
			f := NewFramer(bm.crc, bm.markers)
			b.SetBytes(int64(bm.size))
			b.ReportAllocs()
			for b.Loop() {
				dst = f.AppendFPDU(dst[:0], header, payload[:bm.size/2], payload[bm.size/2:])
			}
		})
	}
}

// FinishSummed, given what Finish computes, makes the same FPDU, pad under the CRC.
func TestFinishSummed(t *testing.T) {
	f := NewFramer(true, false)
	assert.True(t, f.CRC())
	r := newRand()
	for n := range 40 {
		payload := randomOctets(r, n)
		before := []byte("before")
		head := f.AppendHead(before, []byte("header"), n)
		whole := slices.Concat(head, payload)
		from := len(before)
		want := f.Finish(slices.Clone(whole), from)
		assert.Equal(t, want, f.FinishSummed(slices.Clone(whole), from, slowCRC(whole[from:])), "%d octets", n)
		assert.Equal(t, f.AppendFPDU(before, []byte("header"), payload), want, "%d octets", n)
	}
}
