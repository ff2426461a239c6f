package interpose

import (
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plan makes a piece of all that comes in a direction.
type plan [2]Piece

func (p plan) Feed(d Direction, b []byte) []Piece {
	piece := p[d]
	piece.Octets = append([]byte(nil), b...)
	return []Piece{piece}
}

func (plan) Rest(Direction) []byte { return nil }
func (plan) Begin() []*time.Timer  { return nil }

// A deadline ends a Read and a Write that faults hold up, when it is due and not before.
func TestDeadlines(t *testing.T) {
	for name, p := range map[string]plan{
		"stall": {In: {Stall: time.Hour}, Out: {Stall: time.Hour}},
		"delay": {In: {Delay: time.Hour}, Out: {Delay: time.Hour}},
	} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			c := New(here, p, nil)
			go func() { _, _ = there.Write(make([]byte, 10)) }()
			began := time.Now()
			require.NoError(t, c.SetDeadline(began.Add(time.Minute)))
			_, err := c.Read(make([]byte, 10))
			assert.ErrorIs(t, err, os.ErrDeadlineExceeded, name)
			assert.Equal(t, time.Minute, time.Since(began), name)

			began = time.Now()
			require.NoError(t, c.SetWriteDeadline(began.Add(time.Minute)))
			for err = error(nil); err == nil; { // until too much is held back
				_, err = c.Write(make([]byte, MaxHeld/2))
			}
			assert.ErrorIs(t, err, os.ErrDeadlineExceeded, name)
			assert.Equal(t, time.Minute, time.Since(began), name)
			require.NoError(t, c.SetLinger(0))
			require.NoError(t, c.Close())
			require.NoError(t, there.Close())
		})
	}
}

// What is held back goes out after Close, and the observer sees the FIN.
func TestCloseDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		seen := &seen{}
		c := New(here, plan{Out: {Delay: time.Minute}}, seen)
		_, err := c.Write([]byte("held back"))
		require.NoError(t, err)
		require.NoError(t, c.Close())
		_, err = c.Write(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		began := time.Now()
		b, err := io.ReadAll(there)
		require.NoError(t, err)
		assert.Equal(t, "held back", string(b))
		assert.Equal(t, time.Minute, time.Since(began))
		synctest.Wait()
		assert.Equal(t, "held back FIN closed", seen.text)
	})
}

type seen struct{ text string }

func (s *seen) Carry(_ Direction, b []byte) { s.text += string(b) }
func (s *seen) Close()                      { s.text += " closed" }

func (s *seen) End(_ Direction, reset bool) {
	if reset {
		s.text += " RST"
	} else {
		s.text += " FIN"
	}
}
