package mpa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newTestDeframer(t testing.TB, crc, markers bool) *Deframer {
	d := NewDeframer(crc, markers)
	require.True(t, d.SetBuffer(make([]byte, MinBuffer)))
	return &d
}

// deframe pushes stream through d, chunk octets at a time, and returns the
// ULPDUs and the code of the error that ended it.
func deframe(t testing.TB, d *Deframer, stream []byte, chunk int) (ulpdus [][]byte, code Code) {
	for len(stream) > 0 {
		n := d.Feed(stream[:min(chunk, len(stream))])
		if n == 0 {
			t.Fatal("no space although Next wanted more")
		}
		stream = stream[n:]
		for {
			ulpdu, ok, err := d.Next()
			if err != nil {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.False(t, ok)
				return ulpdus, e.Code
			}
			if !ok {
				break
			}
			ulpdus = append(ulpdus, bytes.Clone(ulpdu))
		}
	}
	return ulpdus, 0
}

func TestDeframerEveryChunking(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, markers := range []bool{false, true} {
			r := newRand()
			slow := slowFramer{crc: crc, markers: markers}
			var stream []byte
			var want [][]byte
			for _, n := range ulpduLengths(r) {
				ulpdu := randomOctets(r, n)
				want = append(want, ulpdu)
				stream = append(stream, slow.fpdu(ulpdu)...)
			}
			for _, chunk := range []int{1, 2, 3, 5, 511, 512, 513, 1460, 60000, len(stream)} {
				d := newTestDeframer(t, crc, markers)
				got, code := deframe(t, d, stream, chunk)
				require.Zero(t, code)
				require.Len(t, got, len(want))
				for i := range want {
					require.True(t, bytes.Equal(want[i], got[i]), "ULPDU %d of %d octets, chunk %d", i, len(want[i]), chunk)
				}
				assert.Equal(t, uint64(len(stream)), d.Position())
			}
		}
	}
}

func TestDeframerEveryPhase(t *testing.T) {
	r := newRand()
	for phase := 0; phase < markerPeriod; phase += 4 {
		for _, n := range []int{0, 1, 6, 100, 480, 490, 500, 502, 506, 508, 510, 1000, 1016, 1020} {
			slow := slowFramer{crc: true, markers: true, pos: phase}
			ulpdu := randomOctets(r, n)
			fpdu := slow.fpdu(ulpdu)
			d := newTestDeframer(t, true, true)
			d.pos = uint64(phase)
			got, code := deframe(t, d, fpdu, len(fpdu))
			require.Zero(t, code, "phase %d length %d", phase, n)
			require.Equal(t, [][]byte{ulpdu}, nonNil(got), "phase %d length %d", phase, n)
		}
	}
}

func nonNil(bs [][]byte) [][]byte {
	for i, b := range bs {
		if b == nil {
			bs[i] = []byte{}
		}
	}
	return bs
}

// Any one damaged bit of an FPDU is noticed, as CRC32C finds every single-bit
// error; a longer length shows when the octets it claims have come.
func TestDeframerDamagedBit(t *testing.T) {
	for _, markers := range []bool{false, true} {
		slow := slowFramer{crc: true, markers: markers, pos: 0}
		fpdu := slow.fpdu(randomOctets(newRand(), 600))
		stream, buffer := make([]byte, MinBuffer), make([]byte, MinBuffer)
		for i := range len(fpdu) * 8 {
			copy(stream, fpdu)
			stream[i/8] ^= 1 << (i % 8)
			d := NewDeframer(true, markers)
			d.SetBuffer(buffer)
			got, code := deframe(t, &d, stream, len(stream))
			if len(got) > 0 || code != CodeCRC && code != CodeFPDU {
				t.Fatalf("bit %d: %d ULPDUs, %v", i, len(got), code)
			}
		}
	}
}

func TestDeframerWithoutCRCIgnoresIt(t *testing.T) { // R5044-7.1.1-M12
	f := NewFramer(false, false)
	fpdu := f.AppendFPDU(nil, []byte("ulpdu"))
	copy(fpdu[len(fpdu)-4:], "junk")
	got, code := deframe(t, newTestDeframer(t, false, false), fpdu, len(fpdu))
	assert.Zero(t, code)
	assert.Equal(t, [][]byte{[]byte("ulpdu")}, got)
}

func TestDeframerIgnoresPadAndReserved(t *testing.T) {
	f := NewFramer(false, true)
	fpdu := f.AppendFPDU(nil, []byte("x"))
	fpdu[0], fpdu[1] = 0xAA, 0x55 // the marker's reserved half (R5044-4.2-M2)
	fpdu[3] |= 3                  // FPDUPTR's low bits (R5044-4.2-M4)
	fpdu[7] = 0xFF                // pad (R5044-4.1-M2)
	got, code := deframe(t, newTestDeframer(t, false, true), fpdu, len(fpdu))
	assert.Zero(t, code)
	assert.Equal(t, [][]byte{[]byte("x")}, got)
}

func TestDeframerMarkerMismatch(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   int // of the marker to spoil
	}{{"leading", 0}, {"first inner", 512}, {"last inner", 1024}} {
		t.Run(tc.name, func(t *testing.T) {
			for _, crc := range []bool{false, true} {
				f := NewFramer(crc, true)
				fpdu := f.AppendFPDU(nil, make([]byte, 1018))
				fpdu[tc.at+3] ^= 4
				if crc { // a sender that does it wrong, not a damaged octet
					binary.LittleEndian.PutUint32(fpdu[len(fpdu)-4:], checksum(fpdu[:len(fpdu)-4]))
				}
				got, code := deframe(t, newTestDeframer(t, crc, true), fpdu, len(fpdu))
				assert.Empty(t, got)
				assert.Equal(t, CodeFPDU, code)
			}
		})
	}
}

func TestDeframerLongLengthFailsAtOnce(t *testing.T) {
	for _, n := range []uint16{MaxULPDU + 1, 0xFFFF} {
		d := newTestDeframer(t, true, false)
		d.Feed(binary.BigEndian.AppendUint16(nil, n))
		_, ok, err := d.Next()
		assert.False(t, ok)
		var e *Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, CodeFPDU, e.Code)
	}
	d := newTestDeframer(t, true, false)
	d.Feed(binary.BigEndian.AppendUint16(nil, MaxULPDU))
	_, ok, err := d.Next()
	assert.False(t, ok)
	assert.NoError(t, err)
}

func TestDeframerErrorIsSticky(t *testing.T) { // R5044-8-M3
	f := NewFramer(true, false)
	good := f.AppendFPDU(nil, []byte("good"))
	bad := bytes.Clone(good)
	bad[3] ^= 1
	d := newTestDeframer(t, true, false)
	d.Feed(good)
	d.Feed(bad)
	d.Feed(good)
	ulpdu, ok, err := d.Next()
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, "good", string(ulpdu))
	_, _, first := d.Next()
	require.Error(t, first)
	for range 3 {
		assert.Len(t, d.Space(), MinBuffer, "the rest can be drained")
		d.Advance(100)
		_, ok, err := d.Next()
		assert.False(t, ok)
		assert.True(t, errors.Is(err, first))
		_, ok, err = d.NextRaw()
		assert.False(t, ok)
		assert.True(t, errors.Is(err, first))
	}
	assert.Len(t, d.TakeBuffer(), MinBuffer)
}

func TestDeframerBuffer(t *testing.T) {
	var d Deframer
	assert.Empty(t, d.Space())
	assert.Zero(t, d.Feed([]byte("x")))
	assert.Nil(t, d.TakeBuffer())
	assert.False(t, d.SetBuffer(make([]byte, MinBuffer-1)))
	_, ok, err := d.Next()
	assert.False(t, ok)
	assert.NoError(t, err)

	f := NewFramer(false, false)
	fpdu := f.AppendFPDU(nil, []byte("one ulpdu"))
	small := make([]byte, MinBuffer)
	require.True(t, d.SetBuffer(small))
	d.Feed(fpdu[:7])
	assert.Equal(t, 7, d.Buffered())
	assert.Nil(t, d.TakeBuffer(), "octets are buffered")

	large := make([]byte, RecommendedBuffer)
	require.True(t, d.SetBuffer(large), "what is buffered moves over")
	d.Feed(fpdu[7:])
	ulpdu, ok, err := d.Next()
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, "one ulpdu", string(ulpdu))
	assert.Equal(t, cap(ulpdu), len(ulpdu), "appending to a ULPDU must not spoil the buffer")

	d.Feed(bytes.Repeat(fpdu, 5000))
	require.Greater(t, d.Buffered(), MinBuffer)
	assert.False(t, d.SetBuffer(small), "too small for what is buffered")
	for ok = true; ok; {
		_, ok, err = d.Next()
		require.NoError(t, err)
	}
	taken := d.TakeBuffer()
	require.Len(t, taken, RecommendedBuffer)
	assert.Same(t, &large[0], &taken[0])
	assert.Empty(t, d.Space())
	assert.Equal(t, uint64(5001*len(fpdu)), d.Position(), "the stream goes on without a buffer")
}

// TestDeframerPark: what is buffered outlives the buffer.
func TestDeframerPark(t *testing.T) {
	f := NewFramer(true, false)
	fpdu := f.AppendFPDU(nil, []byte("one ulpdu"))
	buffer := make([]byte, MinBuffer)
	var d Deframer
	assert.Nil(t, d.Park())
	d = NewDeframer(true, false)
	for _, at := range []int{0, 1, 7, len(fpdu) - 1} {
		require.True(t, d.SetBuffer(buffer))
		d.Feed(fpdu[d.Buffered():at])
		assert.Same(t, &buffer[0], &d.Park()[0])
		clear(buffer)
		assert.Equal(t, at, d.Buffered())
		assert.Empty(t, d.Space())
		_, ok, err := d.Next()
		require.NoError(t, err)
		require.False(t, ok)
	}
	require.True(t, d.SetBuffer(buffer))
	d.Feed(fpdu[len(fpdu)-1:])
	ulpdu, ok, err := d.Next()
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, "one ulpdu", string(ulpdu))
}

func TestDeframerAdvanceIsBounded(t *testing.T) {
	d := newTestDeframer(t, false, false)
	d.Advance(-1)
	assert.Zero(t, d.Buffered())
	d.Advance(2 * MinBuffer)
	assert.Equal(t, MinBuffer, d.Buffered())
	assert.Empty(t, d.Space())
}

// Moving the rest to the front costs less than one octet for each received,
// even if the caller asks for space between any two ULPDUs.
func TestDeframerCompactsRarely(t *testing.T) {
	f := NewFramer(false, false)
	fpdu := f.AppendFPDU(nil, make([]byte, 94))
	d := newTestDeframer(t, false, false)
	moved, received := 0, 0
	for range 20000 {
		r, held := d.r, d.w-d.r
		space := d.Space()
		if r > 0 && d.r == 0 {
			moved += held
		}
		for len(space) > 0 {
			n := copy(space, fpdu[received%len(fpdu):])
			d.Advance(n)
			received += n
			space = space[n:]
		}
		_, ok, err := d.Next()
		require.NoError(t, err)
		require.True(t, ok)
	}
	assert.LessOrEqual(t, moved, received)
}

func TestNextRaw(t *testing.T) {
	d := newTestDeframer(t, false, true)
	f := NewFramer(true, true)
	stream := f.AppendFPDU(nil, bytes.Repeat([]byte("a"), 600))
	bad := len(stream)
	stream = f.AppendFPDU(stream, bytes.Repeat([]byte("b"), 600))
	stream[bad+2] ^= 1
	require.Less(t, bad, 1024)
	stream[1027] ^= 8 // the marker in the second
	d.Feed(stream)

	fpdu, ok, err := d.NextRaw()
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, bytes.Repeat([]byte("a"), 600), fpdu.ULPDU)
	assert.Equal(t, fpdu.CRC, fpdu.Computed)
	assert.True(t, fpdu.MarkersOK)

	fpdu, ok, err = d.NextRaw()
	require.NoError(t, err)
	require.True(t, ok)
	assert.Len(t, fpdu.ULPDU, 600)
	assert.NotEqual(t, fpdu.CRC, fpdu.Computed)
	assert.False(t, fpdu.MarkersOK)

	_, ok, err = d.NextRaw()
	assert.False(t, ok)
	assert.NoError(t, err)
}

func TestDeframerDoesNotAllocate(t *testing.T) {
	for _, markers := range []bool{false, true} {
		d := newTestDeframer(t, true, markers)
		f := NewFramer(true, markers)
		fpdu := make([]byte, 0, 2048)
		allocs := testing.AllocsPerRun(100, func() {
			fpdu = f.AppendFPDU(fpdu[:0], make([]byte, 1000))
			d.Feed(fpdu)
			if _, ok, err := d.Next(); !ok || err != nil {
				t.Error("no ULPDU")
			}
		})
		assert.Zero(t, allocs)
	}
}

func FuzzDeframer(f *testing.F) {
	r := newRand()
	for flags := range uint8(4) {
		fr := NewFramer(flags&1 != 0, flags&2 != 0)
		var stream []byte
		for _, n := range []int{0, 18, 42, 500, 1100} {
			stream = fr.AppendFPDU(stream, randomOctets(r, n))
		}
		f.Add(flags, uint16(len(stream)), stream)
		f.Add(flags, uint16(1), stream)
	}
	f.Add(uint8(0), uint16(1), []byte{0xFD, 0x01})
	f.Fuzz(func(t *testing.T, flags uint8, chunk uint16, stream []byte) {
		crc, markers := flags&1 != 0, flags&2 != 0
		slow := slowDeframer{crc: crc, markers: markers}
		slow.push(stream)
		got, code := deframe(t, newTestDeframer(t, crc, markers), stream, max(int(chunk), 1))
		require.Equal(t, slow.code, code)
		require.Len(t, got, len(slow.ulpdus))
		for i := range got {
			require.True(t, bytes.Equal(slow.ulpdus[i], got[i]))
		}
	})
}

func BenchmarkDeframer(b *testing.B) {
	for _, bm := range []struct {
		name         string
		crc, markers bool
		size         int
	}{
		{"crc/64", true, false, 64},
		{"crc/16K", true, false, 16 << 10},
		{"nocrc/16K", false, false, 16 << 10},
		{"markers/16K", true, true, 32*(markerPeriod-markerLen) - lengthLen - crcLen}, // whole periods
	} {
		b.Run(bm.name, func(b *testing.B) {
			d := NewDeframer(bm.crc, bm.markers)
			d.SetBuffer(make([]byte, RecommendedBuffer))
			f := NewFramer(bm.crc, bm.markers)
			var batch []byte
			for len(batch) < 100<<10 {
				batch = f.AppendFPDU(batch, make([]byte, bm.size))
			}
			b.SetBytes(int64(bm.size))
			b.ReportAllocs()
			for b.Loop() {
				if d.Buffered() == 0 {
					d.Feed(batch)
				}
				if _, ok, err := d.Next(); !ok || err != nil {
					b.Fatal("no ULPDU: ", err)
				}
			}
		})
	}
}
