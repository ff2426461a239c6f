package rsocket_test

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ulp/rsocket"
	"github.com/softrnic/softrnic/verbs"
)

// Of small writes nobody may be told for long. A call does not wait for them.

func TestLargeWriteAtOfNothingMapped(t *testing.T) {
	a, b := pair(t, rsocket.Config{Mapped: 1})
	_, err := a.Write([]byte("hello"))
	require.NoError(t, err)
	_, err = a.WriteAt(make([]byte, 16<<10), 0)
	require.ErrorIs(t, err, rsocket.ErrNotMapped)
	require.NoError(t, a.Close())
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

// TestLargeWriteWithoutCredit: one that could send nothing ends at its deadline, and leaves the connection as it was.
func TestLargeWriteWithoutCredit(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	const credit = 384 - 8
	for range credit {
		_, err := a.Write([]byte("."))
		require.NoError(t, err)
	}
	require.NoError(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	n, err := a.Write(make([]byte, 16<<10))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Zero(t, n)
	require.NoError(t, a.SetWriteDeadline(time.Time{}))
	_, err = io.ReadFull(b, make([]byte, credit))
	require.NoError(t, err)
	_, err = a.Write(make([]byte, 16<<10))
	require.NoError(t, err)
	_, err = io.ReadFull(b, make([]byte, 16<<10))
	require.NoError(t, err)
}

// TestMapBehindSmallWrites: an entry that does not fit behind small writes goes to the beginning of where they wait.
func TestMapBehindSmallWrites(t *testing.T) {
	a, b := pair(t, rsocket.Config{Mapped: 1})
	const each, count = 1092, 60 // 16 octets less than 64 KiB
	for range count {
		_, err := a.Write(make([]byte, each))
		require.NoError(t, err)
	}
	mapped := make([]byte, 100)
	require.NoError(t, a.SetWriteDeadline(time.Now().Add(30*time.Second)))
	require.NoError(t, a.Map(mapped, 0))
	body := octets(50 << 10)
	_, err := a.Write(body)
	require.NoError(t, err)
	_, err = io.ReadFull(b, make([]byte, each*count))
	require.NoError(t, err)
	got := make([]byte, len(body))
	_, err = io.ReadFull(b, got)
	require.NoError(t, err)
	require.Equal(t, body, got)
	_, err = b.WriteAt(body[:100], 0)
	require.NoError(t, err)
	_, err = b.Write([]byte("."))
	require.NoError(t, err)
	_, err = io.ReadFull(a, make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, body[:100], mapped)
}

// TestReadsWhatCameBeforeTheEnd: more than the receives that are posted together.
func TestReadsWhatCameBeforeTheEnd(t *testing.T) {
	const count = 40
	for name, tt := range map[string]struct {
		end    func(*raw)
		writes bool
		failed bool
	}{
		"reset":           {func(r *raw) { _ = r.conn.Abort() }, false, true},
		"close":           {func(r *raw) { _ = r.conn.Close() }, false, false},
		"reset, a writer": {func(r *raw) { _ = r.conn.Abort() }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			nic, err := verbs.Open(verbs.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = nic.Close() })
			l, err := rsocket.Config{NIC: nic}.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			r := newRaw(t)
			dialed := make(chan error, 1)
			go func() { dialed <- r.dial(l.Addr().String(), nil) }()
			accepted, err := l.Accept()
			require.NoError(t, err)
			require.NoError(t, <-dialed)
			c := accepted.(*rsocket.Conn)
			defer c.Close()
			for i := range count {
				r.say(1, i, 1)
			}
			require.Eventually(t, func() bool { return nic.Stats().CQ.Queue.Now >= count }, time.Minute, time.Millisecond) // what TCP has a reset takes away
			tt.end(r)
			<-c.Connection().Done()
			for tt.writes {
				_, err = c.Write([]byte("."))
				tt.writes = err == nil
			}
			got := 0
			for err = nil; err == nil; {
				var n int
				n, err = c.Read(make([]byte, 7))
				got += n
			}
			require.Equal(t, count, got, "%v", err)
			if tt.failed {
				require.False(t, errors.Is(err, io.EOF), "%v", err)
			}
			_, err = c.Write([]byte("."))
			require.Error(t, err)
			require.False(t, errors.Is(err, syscall.EPIPE), "%v", err)
		})
	}
}
