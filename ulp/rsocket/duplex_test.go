package rsocket_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

// TestDuplex: both sides write and read at a time, so that the reader and the writer of a connection take one another's completions all the time.
func TestDuplex(t *testing.T) {
	for range 8 {
		a, b := pair(t, rsocket.Config{RecvBuffer: 8 << 10, SendBuffer: 8 << 10})
		ended := make(chan error, 4)
		for c, size := range map[*rsocket.Conn]int{a: 300, b: 17001} {
			body := octets(4 << 20)
			go func() {
				for p := body; len(p) > 0; p = p[min(size, len(p)):] {
					if _, err := c.Write(p[:min(size, len(p))]); err != nil {
						ended <- err
						return
					}
				}
				ended <- c.CloseWrite()
			}()
			go func() {
				got, err := io.ReadAll(c)
				if err == nil && !bytes.Equal(body, got) {
					err = io.ErrUnexpectedEOF
				}
				ended <- err
			}()
		}
		for range 4 {
			require.NoError(t, <-ended)
		}
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		wellEnded(t, a, b)
	}
}
