package cases

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
)

// on runs all cases that a target can be asked for, and says that all pass and that
// the others are skipped.
func on(t *testing.T, target conformance.Target, needs ...conformance.Need) {
	o := conformance.Options{Timeout: 2 * time.Minute, Seed: 2, Parallel: 4}
	results, err := conformance.Run(t.Context(), All(), target, o)
	require.NoError(t, err)
	need := map[string]conformance.Need{}
	for _, c := range All() {
		need[c.Name] = c.Need
	}
	for _, r := range results {
		want := conformance.Skip
		for _, n := range needs {
			if need[r.Case] == n {
				want = conformance.Pass
			}
		}
		assert.Equal(t, want, r.Verdict, "%s: %s\n%s", r.Case, r.Detail, show(r.Trace))
	}
}

// TestRemote runs the wire cases against an upper tester that is reached over TCP.
func TestRemote(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { assert.NoError(t, uppertester.Serve(ctx, l)) })
	target, err := conformance.NewRemote(t.Context(), l.Addr().String(), conformance.Either)
	require.NoError(t, err)
	on(t, target, conformance.NeedWire, conformance.NeedUpper)
	require.NoError(t, target.Close())
}

// TestRping runs the blind cases against a server that nobody can tell anything.
func TestRping(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { _ = l.Close() }()
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serveRping(t, c.(*net.TCPConn)) })
		}
	})
	target, err := conformance.NewRping(t.Context(), l.Addr().String(), conformance.Initiator)
	require.NoError(t, err)
	o := conformance.Options{Timeout: 2 * time.Minute, Seed: 3, Parallel: 4}
	results, err := conformance.Run(t.Context(), All(), target, o)
	require.NoError(t, err)
	for _, r := range results {
		assert.NotEqual(t, conformance.Fail, r.Verdict, "%s: %s\n%s", r.Case, r.Detail, show(r.Trace))
	}
	require.NoError(t, target.Close())
}

// serveRping passes a connection on to a program that talks as rping -s does.
func serveRping(t *testing.T, c *net.TCPConn) {
	defer func() { _ = c.Close() }()
	s, err := conformance.InProcess{}.Stream(t.Context(), conformance.Initiator)
	if !assert.NoError(t, err) {
		return
	}
	defer func() { _ = s.Close() }()
	var wg sync.WaitGroup
	wg.Go(func() { pass(s, c) })
	pass(c, s)
	wg.Wait()
}

// pass copies one direction, its end included.
func pass(dst, src net.Conn) {
	if _, err := io.Copy(dst, src); err != nil {
		_ = dst.Close()
		return
	}
	_ = dst.(interface{ CloseWrite() error }).CloseWrite()
}
