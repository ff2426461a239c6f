package rsocket_test

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

// reading begins a Read of an octet, which returns it, or its error; it sleeps when reading returns.
func reading(t *testing.T, c *rsocket.Conn) <-chan any {
	got := make(chan any, 1)
	go func() { got <- readOne(c) }()
	sleeps(t, func() bool { reader, _ := c.Sleeping(); return reader })
	return got
}

func readOne(c *rsocket.Conn) any {
	var b [1]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return err
	}
	return b[0]
}

func sleeps(t *testing.T, asleep func() bool) {
	t.Helper()
	require.Eventually(t, asleep, time.Minute, time.Millisecond)
}

func write(t *testing.T, c *rsocket.Conn, b ...byte) {
	_, err := c.Write(b)
	require.NoError(t, err)
}

// gives is what comes of a wait.
func gives[V any](t *testing.T, c <-chan V) (v V) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		require.Fail(t, "asleep for ever")
	}
	return v
}

// TestReadWakes has data come before a Read, while it sleeps, twice, and as its deadline passes: none sleeps for ever, and
// no octet is lost or told twice.
func TestReadWakes(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	write(t, b, 1)
	require.Equal(t, byte(1), readOne(a))

	r := reading(t, a)
	write(t, b, 2)
	require.Equal(t, byte(2), gives(t, r))

	r = reading(t, a)
	write(t, b, 3)
	write(t, b, 4)
	require.Equal(t, byte(3), gives(t, r))
	require.Equal(t, byte(4), readOne(a))

	r = reading(t, a)
	require.NoError(t, a.SetReadDeadline(time.Unix(1, 0)))
	require.ErrorIs(t, gives(t, r).(error), os.ErrDeadlineExceeded)
	require.NoError(t, a.SetReadDeadline(time.Time{}))
	for i := byte(5); i < 55; i++ {
		r = reading(t, a)
		passed := make(chan error, 1)
		pass := func() { passed <- a.SetReadDeadline(time.Unix(1, 0)) }
		if i%2 == 0 {
			pass()
		} else {
			go pass()
		}
		write(t, b, i)
		got := gives(t, r)
		require.NoError(t, <-passed)
		require.NoError(t, a.SetReadDeadline(time.Time{}))
		if err, ok := got.(error); ok {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			got = readOne(a)
		}
		require.Equal(t, i, got)
	}
}

// TestLeaderGivesUp has a Read and a Write sleep, one of which waits for completions for both: if the deadline of that
// one passes, or it has what it wants, the other goes on.
func TestLeaderGivesUp(t *testing.T) {
	for _, readerLeads := range []bool{true, false} {
		for _, data := range []bool{true, false} {
			a, b := pair(t, rsocket.Config{})
			body := octets(4 << 20)
			wrote := make(chan error, 1)
			writing := func() {
				go func() {
					_, err := a.Write(body)
					wrote <- err
				}()
				sleeps(t, func() bool { _, writer := a.Sleeping(); return writer })
			}
			var r <-chan any
			if readerLeads {
				r = reading(t, a)
				writing()
			} else {
				writing()
				r = reading(t, a)
			}
			if data {
				write(t, b, 7)
				require.Equal(t, byte(7), gives(t, r))
			} else {
				require.NoError(t, a.SetReadDeadline(time.Unix(1, 0)))
				require.ErrorIs(t, gives(t, r).(error), os.ErrDeadlineExceeded)
			}
			_, err := io.ReadFull(b, make([]byte, len(body)))
			require.NoError(t, err)
			require.NoError(t, gives(t, wrote), "the reader leads %v, data %v", readerLeads, data)
		}
	}
}

// TestWriterGivesUp is the same of a Write that leads and whose deadline passes, with a Read behind it.
func TestWriterGivesUp(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write(make([]byte, 4<<20))
		wrote <- err
	}()
	sleeps(t, func() bool { _, writer := a.Sleeping(); return writer })
	r := reading(t, a)
	require.NoError(t, a.SetWriteDeadline(time.Unix(1, 0)))
	require.ErrorIs(t, gives(t, wrote), os.ErrDeadlineExceeded)
	write(t, b, 9)
	require.Equal(t, byte(9), gives(t, r))
}
