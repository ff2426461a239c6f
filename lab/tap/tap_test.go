package tap_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/verbs"
)

// What a tap has written is decoded in the tests of the decoder, cmd/rnic/internal/dissect.

// traffic is ten Sends, and the end.
func traffic(t *testing.T, c rnictest.Config) {
	c.Recvs = 10
	a, b := rnictest.Pair(t, c)
	_, mr := a.Memory(100)
	for range c.Recvs {
		a.Post(verbs.Request{SGL: mr.All()})
		require.NoError(t, a.Wait().Err())
		require.NoError(t, b.Wait().Err())
	}
	require.NoError(t, a.Conn.Close())
	require.NoError(t, b.Over())
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

// TestWriterFails: the traffic goes on, and what is missing is counted.
func TestWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp := tap.New(&failing{after: 2000}, tap.Config{})
		c := rnictest.Config{}
		c.RNIC.Tap = tp
		traffic(t, c)
		err := tp.Close()
		assert.ErrorContains(t, err, "disk full")
		assert.Greater(t, tp.Lost(), uint64(10))
	})
}

type blocking struct{ ctx context.Context }

func (b blocking) Write([]byte) (int, error) { <-b.ctx.Done(); return 0, b.ctx.Err() }

// TestWriterBlocks: likewise, and Close does not wait for it.
func TestWriterBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tp := tap.New(blocking{ctx}, tap.Config{})
		c := rnictest.Config{}
		c.RNIC.Tap = tp
		traffic(t, c)
		assert.ErrorContains(t, tp.Close(), "the writer blocks")
	})
}
