package cases

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// TestRpingClients runs the blind cases as MPA Responder, against clients that are
// started again and again.
func TestRpingClients(t *testing.T) {
	t.Parallel()
	target, err := conformance.NewRping(t.Context(), "127.0.0.1:0", conformance.Responder)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				client(ctx, target.Addr())
			}
		})
	}
	o := conformance.Options{Timeout: 2 * time.Minute, Seed: 4}
	results, err := conformance.Run(t.Context(), All(), target, o)
	require.NoError(t, err)
	passed := 0
	for _, r := range results {
		assert.NotEqual(t, conformance.Fail, r.Verdict, "%s: %s\n%s", r.Case, r.Detail, show(r.Trace))
		if r.Verdict == conformance.Pass {
			passed++
		}
	}
	assert.Greater(t, passed, 30)
	require.NoError(t, target.Close())
}

// client is a program that talks as rping -c does, until its stream ends.
func client(ctx context.Context, addr string) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	s, err := conformance.InProcess{}.Stream(ctx, conformance.Responder)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	defer context.AfterFunc(ctx, func() { _, _ = c.Close(), s.Close() })()
	var wg sync.WaitGroup
	wg.Go(func() { pass(s, c) })
	pass(c, s)
	wg.Wait()
}

// TestCodeOf: whichever way round a control octet is, it is read as it is meant.
func TestCodeOf(t *testing.T) {
	for want, octets := range map[string][]byte{
		"1/2/05": {0x12, 0x05, 0xC0, 0},
		"0/2/06": {0x20, 0x06, 0, 0},
		"2/0/02": {0x02, 0x02, 0, 0},
		"0/1/00": {0x10, 0x00, 0x07, 0},
		"1/1/03": {0x11, 0x03, 0x03, 0},
	} {
		assert.Equal(t, want, codeOf(append(make([]byte, 18), octets...)))
	}
	assert.Equal(t, "1/2/03", codeOf(append(make([]byte, 18), 0x21, 0x03, 0x03, 0)))
	assert.Equal(t, "2/0/02", codeOf(append(make([]byte, 18), 0x20, 0x02, 0, 0)))
}
