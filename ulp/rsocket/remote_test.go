package rsocket_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

// TestMap: what is written at an offset is in the peer's buffer by the time that what was written behind it is read.
func TestMap(t *testing.T) {
	for name, c := range map[string]rsocket.Config{"iwarp": {Mapped: 2}, "immediate": {Mapped: 2, Immediate: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, c)
			first, second := make([]byte, 100<<10), make([]byte, 1000)
			require.NoError(t, b.Map(first, 0))
			require.NoError(t, b.Map(second, 1<<20))
			require.ErrorIs(t, b.Map(second, 2<<20), rsocket.ErrNotMapped)
			_, err := b.Write([]byte("mapped"))
			require.NoError(t, err)
			_, err = io.ReadFull(a, make([]byte, 6))
			require.NoError(t, err)

			body := octets(100 << 10)
			for _, at := range []struct{ from, to int }{{0, 90 << 10}, {90 << 10, 100 << 10}} { // out of the caller's memory, and of a copy
				n, err := a.WriteAt(body[at.from:at.to], int64(at.from))
				require.NoError(t, err)
				require.Equal(t, at.to-at.from, n)
			}
			n, err := a.WriteAt(body[:700], 1<<20+500)
			require.ErrorIs(t, err, rsocket.ErrNotMapped, "the buffer ends")
			require.Equal(t, 500, n)
			_, err = a.WriteAt(body[:1], -1)
			require.ErrorIs(t, err, rsocket.ErrNotMapped)
			_, err = a.WriteAt(body[:1], 1<<19)
			require.ErrorIs(t, err, rsocket.ErrNotMapped)
			_, err = a.Write([]byte("written"))
			require.NoError(t, err)
			_, err = io.ReadFull(b, make([]byte, 7))
			require.NoError(t, err)
			require.True(t, bytes.Equal(body, first))
			require.True(t, bytes.Equal(body[:500], second[500:]))
			require.Equal(t, make([]byte, 500), second[:500])
			require.NoError(t, a.Close())
			require.Error(t, b.Map(first, 0))
		})
	}
}
