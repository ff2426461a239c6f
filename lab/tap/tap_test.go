package tap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/dissect"
	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/verbs"
)

// buffer is a writer that a Tap and a test share.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}

var secret = bytes.Repeat([]byte("tell nobody "), 300)

// traffic is one of each operation, from a.
func traffic(t *testing.T, c rnictest.Config) {
	c.Recvs, c.QP.Extensions = 8, true
	c.CM.PrivateData = []byte("private: tell nobody either")
	a, b := rnictest.Pair(t, c)
	src, mr := a.Memory(len(secret))
	copy(src, secret)
	there, remote := b.Memory(len(secret))
	copy(there, secret)
	at := remote.Buffer().SGE(0, len(secret))
	far := verbs.Remote{STag: at.STag, TO: at.TO}
	a.Post(
		verbs.Request{SGL: mr.All()},
		verbs.Request{Op: verbs.OpWrite, SGL: mr.All(), Remote: far},
		verbs.Request{Op: verbs.OpRead, Local: mr.SGE(0, len(secret)), Remote: far},
		verbs.Request{Op: verbs.OpImmediate, Immediate: 0x7365637265743132},
		verbs.Request{Op: verbs.OpFetchAdd, Local: mr.SGE(0, 8), Remote: far, Atomic: &verbs.AtomicRequest{Data: 0x7365637265743132}},
	)
	for range 5 {
		require.NoError(t, a.Wait().Err())
	}
	for range 2 {
		require.NoError(t, b.Wait().Err())
	}
	require.NoError(t, a.Conn.Close())
	require.NoError(t, b.Over())
}

// check has the capture decoded: whole, without a violation, and without what is secret unless it is to be there.
func check(t *testing.T, raw []byte, secrets bool, connections int) *dissect.Report {
	r, err := dissect.Read(bytes.NewReader(raw), nil)
	require.NoError(t, err)
	require.Len(t, r.Connections, connections)
	for _, c := range r.Connections {
		for _, s := range c.Streams {
			assert.Empty(t, s.Violations)
			assert.Zero(t, s.Incomplete)
			assert.Zero(t, s.CRC.Bad+s.CRC.Zero)
		}
		ops, err := json.Marshal(c.Streams[0].Ops)
		require.NoError(t, err)
		for _, op := range []string{"Send", "Write", "ReadRequest", "Immediate", "AtomicRequest"} {
			assert.Contains(t, string(ops), `"`+op+`"`)
		}
	}
	for _, s := range []string{"tell nobody", "tell nobody either", "secret12"} {
		assert.Equal(t, secrets, bytes.Contains(raw, []byte(s)), s)
	}
	return r
}

func TestTap(t *testing.T) {
	for name, c := range map[string]rnictest.Config{
		"CRC": {}, "markers": {CM: cm.Config{Markers: true}}, "revision 1": {CM: cm.Config{Rev: 1}},
	} {
		for _, payload := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var out buffer
					c := c
					tp := tap.New(&out, tap.Config{Payload: payload})
					c.RNIC.Tap = tp
					traffic(t, c)
					require.NoError(t, tp.Close())
					check(t, out.bytes(), payload, 2) // of a pipe, both ends
				})
			})
		}
	}
}

// TestOneConnectionOnce: two ends of one TCP connection are one in the capture.
func TestOneConnectionOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcapng")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	tp, err := tap.Create(path, tap.Config{})
	require.NoError(t, err)
	c := rnictest.Config{Loopback: true}
	c.RNIC.Tap = tp
	traffic(t, c)
	require.NoError(t, tp.Close())
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	r := check(t, raw, false, 1)
	assert.Contains(t, r.Connections[0].Client, "127.0.0.1:")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	assert.NoError(t, tp.Close(), "again")
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
