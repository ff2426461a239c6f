package qp

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/wr"
)

// lateConn is a connection on which something arrives just when the session has stopped, and bounds the time for its end.
type lateConn struct {
	net.Conn
	reading chan struct{} // a token when the first Read begins
	arrives chan []byte
	stopped atomic.Bool
}

func (c *lateConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (c *lateConn) Read(b []byte) (int, error) {
	signal(c.reading)
	n, err := c.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && c.stopped.Load() {
		select {
		case late := <-c.arrives:
			return copy(b, late), nil
		default:
		}
	}
	return n, err
}

// SetReadDeadline makes a Read that is under way return, once.
func (c *lateConn) SetReadDeadline(at time.Time) error {
	if !at.IsZero() && c.stopped.CompareAndSwap(false, true) {
		return c.Conn.SetReadDeadline(tcpsock.Past)
	}
	return c.Conn.SetReadDeadline(at)
}

// TestArrivesAsVerbStops: what a read brings when a verb has just ended RTS has
// arrived in the state that follows (draft figures 9 and 11).
func TestArrivesAsVerbStops(t *testing.T) {
	whole := terminate(0x1202, echoNone, nil)
	for name, c := range map[string]struct {
		next   wr.State
		ulpdu  []byte
		cut    int // octets of the FPDU that have not arrived
		event  []wr.EventID
		keeps  bool
		closes bool // the peer has to
	}{
		"Closing, a Terminate Message": {wr.StateClosing, whole, 0, []wr.EventID{wr.EventBadClose}, true, false},
		"Closing, a segment":           {wr.StateClosing, rawpeer.Send(1, nil).Octets(), 0, []wr.EventID{wr.EventBadClose}, false, false},
		"Closing, part of a segment":   {wr.StateClosing, whole, 5, []wr.EventID{wr.EventBadClose}, false, false},
		"Terminate, the peer's too":    {wr.StateTerminate, whole, 0, nil, false, true},
		"Error":                        {wr.StateError, whole, 0, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newIdleRig(t, setup{})
			mine, theirs, err := rawpeer.Pair()
			require.NoError(t, err)
			conn := &lateConn{Conn: mine, reading: make(chan struct{}, 1), arrives: make(chan []byte, 1)}
			r.start(conn, theirs)
			f := r.peer.Frame(c.ulpdu)
			conn.arrives <- f[:len(f)-c.cut]
			<-conn.reading
			require.NoError(t, r.q.Modify(Modify{Next: c.next}))
			if c.closes {
				require.NoError(t, r.peer.CloseWrite())
			}
			r.requireSettled(wr.StateError, c.event...)
			if got := r.q.Query().Terminate; c.keeps {
				require.Equal(t, whole[18:], got.Raw)
				require.False(t, got.Sent)
			} else if c.next == wr.StateClosing {
				require.Nil(t, got)
			}
		})
	}
}

// TestFaultAsVerbStops: a segment that is found bad when a verb has just ended RTS is
// one that came while closing.
func TestFaultAsVerbStops(t *testing.T) {
	var q atomic.Pointer[QP]
	modified := make(chan error, 1)
	shared := srq.New(srq.Config{ID: 5, PD: ownPD, Depth: 8, SGE: 4, Limit: 1, Events: func(wr.Event) {
		// The receive side has just taken the only receive.
		s := q.Load().session.Load()
		go func() { modified <- q.Load().Modify(Modify{Next: wr.StateClosing}) }()
		for !s.stopping.Load() {
			runtime.Gosched()
		}
	}})
	r := newRig(t, setup{config: func(c *Config) { c.SRQ = shared }})
	q.Store(r.q)
	_, err := shared.Post(wr.Recv{ID: 1})
	require.NoError(t, err)
	r.send(rawpeer.Send(1, filled(3)).Octets()) // too long
	select {
	case err := <-modified:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("Modify QP does not return")
	}
	r.requireSettled(wr.StateError, wr.EventBadClose)
}

// TestDoneBehindLastEvent: who waits for Done finds everything as it stays.
func TestDoneBehindLastEvent(t *testing.T) {
	var q atomic.Pointer[QP]
	open := make(chan bool, 1)
	r := newRig(t, setup{config: func(c *Config) {
		c.Events = func(wr.Event) {
			select {
			case <-q.Load().Done():
				open <- false
			default:
				open <- true
			}
		}
	}})
	q.Store(r.q)
	peerResets(r)
	r.over()
	require.Equal(t, wr.StateError, r.q.State())
	require.True(t, <-open, "at the last event")
}
