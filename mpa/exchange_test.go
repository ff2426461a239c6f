package mpa

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// terminateHex is the FPDU of a Terminate without headers, as in G8.
func terminateHex(code, crc string) string {
	return "0016 4147 00000000 00000002 00000001 00000000" + code + "0000" + crc
}

func TestTerminateIsG8(t *testing.T) {
	s := Stream{CRC: true}
	assert.Equal(t, unhex(t, terminateHex("2002", "7fe42585")), s.terminate(CodeCRC))
	s.MarkersOut = true
	assert.Equal(t, make([]byte, 4), s.terminate(CodeCRC)[:4], "a marker goes first")
}

func readAll(t *testing.T, c net.Conn) []byte {
	t.Helper()
	b, err := io.ReadAll(c)
	require.NoError(t, err)
	return b
}

// send writes b to c as far as it is read.
func send(c net.Conn, b []byte) { _, _ = c.Write(b) }

// peer takes the Request of n octets from c, sends frame, and hands over what
// comes after, up to the close.
func peer(t *testing.T, c net.Conn, n int, frame []byte) <-chan []byte {
	rest := make(chan []byte, 1)
	go func() {
		_, err := io.ReadFull(c, make([]byte, n))
		assert.NoError(t, err)
		_, _ = c.Write(frame) // whether it is read to its end is the test's matter
		b, err := io.ReadAll(c)
		assert.NoError(t, err)
		rest <- b
	}()
	return rest
}

func TestInitiatorAgainstBadReplies(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cfg   Config
		reply string
		code  Code
		sent  string // the Terminate, if one is due
	}{
		{"another protocol", Config{}, "485454502f312e31", CodeStartup, ""},
		{"both sides Initiator", Config{}, reqHex + "50020004 00100010", CodeStartup, ""},
		{"PD_Length too large", Config{}, repHex + "50020201", CodeStartup, ""},
		{"revision 0", Config{Rev: 1}, repHex + "40000000", CodeStartup, ""},
		{"revision 3", Config{}, repHex + "50030004 00100010", CodeStartup, ""},
		{"unenhanced answer to an enhanced Request", Config{}, repHex + "40020000", CodeStartup, ""},
		{"enhanced answer to an unenhanced Request", Config{Rev: 1}, repHex + "50020004 00100010", CodeStartup, ""},
		{"ORD above our IRD", Config{IRD: 4}, repHex + "50020004 00100005", CodeIRD, terminateHex("2006", "")},
		{"ORD above our IRD, CRC off", Config{IRD: 4, NoCRC: true}, repHex + "10020004 00100005", CodeIRD, terminateHex("2006", "00000000")},
		{"ORD above our IRD, markers", Config{IRD: 4}, repHex + "d0020004 00100005", CodeIRD, "00000000" + terminateHex("2006", "")},
		{"no common RTR", Config{P2P: true}, repHex + "50020004 c0100010", CodeRTR, terminateHex("2007", "")},
		{"no RTR at all", Config{P2P: true}, repHex + "50020004 80100010", CodeRTR, terminateHex("2007", "")},
		{"a Read as RTR, but no IRD for it", Config{P2P: true}, repHex + "50020004 80004010", CodeRTR, terminateHex("2007", "")},
		{"client-server answer to peer-to-peer", Config{P2P: true}, repHex + "50020004 00108010", CodeRTR, terminateHex("2007", "")},
		{"peer-to-peer answer to client-server", Config{}, repHex + "50020004 80108010", CodeRTR, terminateHex("2007", "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pipe(t)
				n := startupHeadLen + enhancedLen
				if tc.cfg.Rev == 1 {
					n = startupHeadLen
				}
				rest := peer(t, b, n, unhex(t, tc.reply))
				s, err := Initiate(t.Context(), a, tc.cfg)
				assert.Nil(t, s)
				var e *Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, tc.code, e.Code, "%v", err)
				got := <-rest // also shows that the connection was closed
				want := unhex(t, tc.sent)
				require.GreaterOrEqual(t, len(got), len(want))
				assert.Equal(t, want, got[:len(want)])
				if tc.sent == "" {
					assert.Empty(t, got)
				} else {
					markers := len(got) == 32
					ulpdus, code := deframe(t, newTestDeframer(t, !tc.cfg.NoCRC, markers), got, len(got))
					assert.Len(t, ulpdus, 1)
					assert.Zero(t, code)
				}
			})
		})
	}
}

func TestInitiatorTakesRejectFromOldResponder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(t)
		rest := peer(t, b, 24, unhex(t, repHex+"20010002 6e6f"))
		_, err := Initiate(t.Context(), a, Config{})
		var rejected *RejectedError
		require.ErrorAs(t, err, &rejected)
		assert.Equal(t, &RejectedError{PrivateData: []byte("no"), PeerIRD: -1, PeerORD: -1}, rejected)
		require.NoError(t, a.Close())
		assert.Empty(t, <-rest)
	})
}

func TestResponderAgainstBadRequests(t *testing.T) {
	for _, tc := range []struct {
		name    string
		cfg     Config
		request string
	}{
		{"another protocol", Config{}, "474554202f"}, // GET /
		{"a Reply", Config{}, repHex + "40010000"},
		{"PD_Length too large", Config{}, reqHex + "40010201"},
		{"too short for S", Config{}, reqHex + "50020002 0000"},
		{"revision 0", Config{}, reqHex + "40000000"},
		{"revision 3", Config{}, reqHex + "50030004 00100010"},
		{"enhanced, but Config.Rev is 1", Config{Rev: 1}, reqHex + "50020004 00100010"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pipe(t)
				rest := peer(t, b, 0, unhex(t, tc.request))
				offer, err := Await(t.Context(), a, tc.cfg)
				assert.Nil(t, offer)
				var e *Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, CodeStartup, e.Code)
				assert.Empty(t, <-rest, "closed without a Reply")
			})
		})
	}
}

func TestPeerCloses(t *testing.T) {
	frame := unhex(t, reqHex+"50020006 00100010 7879")
	for n := range frame {
		synctest.Test(t, func(t *testing.T) {
			a, b := pipe(t)
			go func() {
				_, _ = b.Write(frame[:n])
				b.Close()
			}()
			_, err := Await(t.Context(), a, Config{})
			var e *Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, CodeLLPLost, e.Code)
			assert.ErrorIs(t, err, io.EOF)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(t)
		go func() { _, _ = Initiate(t.Context(), b, Config{}) }()
		offer, err := Await(t.Context(), a, Config{})
		require.NoError(t, err)
		b.Close()
		_, err = offer.Accept(Config{})
		var e *Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, CodeLLPLost, e.Code)
	})
}

// A peer that is silent, or sends an octet at a time, is cut off all the same.
func TestTimeout(t *testing.T) {
	for _, tc := range []struct {
		name    string
		cfg     Config
		trickle time.Duration
		want    time.Duration
	}{
		{"default", Config{}, 0, DefaultTimeout},
		{"own", Config{Timeout: time.Second}, 0, time.Second},
		{"trickling peer", Config{}, time.Second, DefaultTimeout},
	} {
		t.Run("Await "+tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pipe(t)
				var peer sync.WaitGroup
				defer peer.Wait()
				peer.Go(func() { trickle(b, unhex(t, reqHex+"40010000"), tc.trickle) })
				start := time.Now()
				_, err := Await(t.Context(), a, tc.cfg)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, tc.want, time.Since(start))
				_, err = a.Write([]byte("x"))
				assert.ErrorIs(t, err, io.ErrClosedPipe)
			})
		})
		t.Run("Initiate "+tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pipe(t)
				var peer sync.WaitGroup
				defer peer.Wait()
				peer.Go(func() {
					_, _ = io.ReadFull(b, make([]byte, 24))
					trickle(b, unhex(t, repHex+"40010000"), tc.trickle)
				})
				start := time.Now()
				_, err := Initiate(t.Context(), a, tc.cfg)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, tc.want, time.Since(start))
			})
		})
	}
	t.Run("nobody reads the Request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, _ := pipe(t)
			_, err := Initiate(t.Context(), a, Config{})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("nobody reads the Reply", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := pipe(t)
			go send(b, unhex(t, reqHex+"40010000"))
			offer, err := Await(t.Context(), a, Config{})
			require.NoError(t, err)
			_, err = offer.Accept(Config{Timeout: time.Second})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}

// trickle writes b, an octet each pause, and nothing if there is no pause.
func trickle(c net.Conn, b []byte, pause time.Duration) {
	for ; pause > 0 && len(b) > 0; b = b[1:] {
		time.Sleep(pause) // on the bubble's clock
		if _, err := c.Write(b[:1]); err != nil {
			return
		}
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := Await(ctx, a, Config{Timeout: -1})
			done <- err
		}()
		synctest.Wait()
		start := time.Now()
		cancel()
		assert.ErrorIs(t, <-done, context.Canceled)
		assert.Zero(t, time.Since(start))
		assert.Empty(t, readAll(t, b), "closed")

		_, err := Initiate(ctx, b, Config{})
		assert.ErrorIs(t, err, context.Canceled)
	})
}

// noDeadline is a connection that knows no deadlines.
type noDeadline struct{ net.Conn }

func (noDeadline) SetDeadline(time.Time) error { return errors.ErrUnsupported }

func TestCancelWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(t)
		_, err := Await(t.Context(), noDeadline{a}, Config{})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Empty(t, readAll(t, b))
	})
}

// A deadline that the caller has set stays, and is not taken for the context's.
func TestCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pipe(t)
		require.NoError(t, a.SetDeadline(time.Now().Add(time.Second)))
		_, err := Await(t.Context(), a, Config{})
		var e *Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, CodeLLPLost, e.Code)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}

// lateCancel ends a context just as the last octet of a frame is delivered.
type lateCancel struct {
	net.Conn
	frame     *bytes.Reader
	cancel    func()
	set       chan struct{}
	deadlines []time.Time
}

func (c *lateCancel) Read(b []byte) (int, error) {
	n, err := c.frame.Read(b)
	if c.frame.Len() == 0 {
		c.cancel()
		<-c.set // the deadline is there before the frame is
	}
	return n, err
}

func (c *lateCancel) SetDeadline(at time.Time) error {
	c.deadlines = append(c.deadlines, at)
	if len(c.deadlines) == 1 {
		close(c.set)
	}
	return nil
}

func TestDeadlineIsLifted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &lateCancel{frame: bytes.NewReader(unhex(t, reqHex+"40010000")), cancel: cancel, set: make(chan struct{})}
	offer, err := Await(ctx, c, Config{})
	require.NoError(t, err, "the frame was whole before the context ended")
	assert.NotNil(t, offer)
	require.Len(t, c.deadlines, 2)
	assert.True(t, c.deadlines[1].IsZero())
}
