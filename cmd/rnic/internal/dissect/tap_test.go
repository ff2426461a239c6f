package dissect_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/dissect"
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
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

// canned is a connection that takes all that is written, and gives what it has.
type canned struct {
	net.Conn
	gives io.Reader
}

func (c canned) Read(b []byte) (int, error)  { return c.gives.Read(b) }
func (c canned) Write(b []byte) (int, error) { return len(b), nil }

// TestLostIsRead: how many records are missing is in the capture. A writer that is stuck loses all but those that wait.
func TestLostIsRead(t *testing.T) {
	open := make(chan struct{})
	var out buffer
	tp := tap.New(writerFunc(func(p []byte) (int, error) { <-open; return out.Write(p) }), tap.Config{})
	client, server := net.Pipe()
	proxied := tp.Conn(client, canned{server, nil})
	for tp.Lost() < 7 {
		_, err := proxied.Write([]byte("GET / HTTP/1.1"))
		require.NoError(t, err)
	}
	close(open)
	require.ErrorContains(t, tp.Close(), "7 records are missing")
	r, err := dissect.Read(bytes.NewReader(out.bytes()), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 7, r.Lost)
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// FuzzTap: whatever goes through a proxy, its capture can be read.
func FuzzTap(f *testing.F) {
	startup := func(s mpa.Startup) []byte {
		b, err := s.Append(nil)
		require.NoError(f, err)
		return b
	}
	req := startup(mpa.Startup{Rev: 1, CRC: true, PrivateData: []byte("private")})
	rep := startup(mpa.Startup{Rev: 1, CRC: true, Reply: true, Markers: true})
	send := ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.Send), 0, ddp.QNSend, 1, 0)
	framer := mpa.NewFramer(true, true)
	fpdu := framer.AppendFPDU(nil, send, make([]byte, 100))
	f.Add(append(req, fpdu...), rep, uint16(7), false)
	f.Add(append(req, fpdu[:50]...), rep, uint16(1000), true)
	f.Add([]byte("GET / HTTP/1.1"), []byte("no"), uint16(3), false)
	f.Fuzz(func(t *testing.T, out, in []byte, step uint16, payload bool) {
		if len(out)+len(in) > 1<<17 {
			return
		}
		var capture bytes.Buffer
		tp := tap.New(&capture, tap.Config{Payload: payload})
		client, server := net.Pipe()
		proxied := tp.Conn(client, canned{server, bytes.NewReader(in)})
		took, b := 0, make([]byte, int(step)+1)
		for ended := false; len(out) > 0 || !ended; {
			n := min(len(out), len(b))
			_, err := proxied.Write(out[:n])
			require.NoError(t, err)
			out = out[n:]
			if !ended {
				n, err := proxied.Read(b)
				took, ended = took+n, err != nil
			}
		}
		require.Equal(t, len(in), took)
		require.NoError(t, proxied.Close())
		require.NoError(t, tp.Close())
		_, err := dissect.Read(&capture, nil)
		require.NoError(t, err)
	})
}
