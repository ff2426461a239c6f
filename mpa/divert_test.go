package mpa

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDivert receives a stream in pieces of any size, and takes what has begun of a
// ULPDU out of the buffer now and then: all ULPDUs come out whole and in order.
func TestDivert(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := NewFramer(false, false)
		var stream []byte
		var want [][]byte
		for range 1 + rng.IntN(20) {
			u := randomOctets(rng, rng.IntN(300))
			want = append(want, u)
			stream = f.AppendFPDU(stream, u)
		}
		d := newTestDeframer(t, false, false)
		var got [][]byte
		var away []byte // the one that is diverted
		diverted := 0
		for at := 0; at < len(stream); {
			n := min(1+rng.IntN(150), len(stream)-at)
			piece := stream[at : at+n]
			at += n
			k := min(n, d.Diverted())
			away = append(away, piece[:k]...)
			copy(d.Space(), piece[k:])
			d.Advance(n)
			for {
				u, ok, err := d.Next()
				require.NoError(t, err)
				if !ok {
					break
				}
				if u == nil {
					u, away = away, nil
				}
				got = append(got, bytes.Clone(u))
			}
			pos := int(d.Position())
			require.Equal(t, at-pos, d.Buffered(), "received and not delivered")
			part, size := d.Begun()
			if size == 0 || rng.IntN(2) == 0 {
				continue
			}
			require.LessOrEqual(t, len(part), size)
			diverted++
			away = bytes.Clone(part)
			d.Divert()
			require.Equal(t, size-len(part), d.Diverted())
			_, size = d.Begun()
			require.Zero(t, size, "one at a time")
		}
		require.Equal(t, nonNil(want), nonNil(got))
		require.Equal(t, len(stream), int(d.Position()))
		require.Zero(t, d.Buffered())
		require.NotNil(t, d.TakeBuffer())
		if len(want) > 10 {
			assert.NotZero(t, diverted)
		}
	}
}

// TestBegunIsUnchecked: where something has to be checked first, there is nothing to
// be had of an FPDU that is not whole.
func TestBegunIsUnchecked(t *testing.T) {
	fpdu := make([]byte, 40) // the length, after a marker or none, is 0 or 100
	for _, o := range []struct{ crc, markers, want bool }{
		{want: true}, {crc: true}, {markers: true}, {crc: true, markers: true},
	} {
		d := newTestDeframer(t, o.crc, o.markers)
		b := bytes.Clone(fpdu)
		if o.markers {
			b[5] = 100
		} else {
			b[1] = 100
		}
		d.Feed(b)
		_, ok, err := d.Next()
		require.NoError(t, err)
		require.False(t, ok)
		part, size := d.Begun()
		assert.Equal(t, o.want, size == 100 && len(part) == 38)
		assert.Equal(t, o.want, size != 0)
	}
	d := newTestDeframer(t, false, false)
	d.Feed([]byte{0xFF})
	_, size := d.Begun()
	assert.Zero(t, size, "half a length")
	d.Feed([]byte{0xFF})
	_, size = d.Begun()
	assert.Zero(t, size, "a length that no FPDU has")
}
