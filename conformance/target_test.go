package conformance_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
)

// serve is the address of an upper tester that ends with the test.
func serve(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, uppertester.Serve(ctx, l)) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return l.Addr().String()
}

// speaks says that a stream leads to a program that speaks MPA.
func speaks(t *testing.T, c net.Conn, play conformance.Role) {
	if play == conformance.Initiator {
		_, _, err := rawpeer.Initiate(c, mpa.Startup{Rev: 1, CRC: true})
		require.NoError(t, err)
	} else {
		s, err := rawpeer.ReadStartup(c)
		require.NoError(t, err)
		assert.False(t, s.Reply)
	}
	require.NoError(t, c.Close())
}

func TestStreams(t *testing.T) {
	remote, err := conformance.NewRemote(t.Context(), serve(t), conformance.Responder)
	require.NoError(t, err)
	assert.Equal(t, conformance.Responder, remote.Role())
	assert.Empty(t, remote.Lacks(conformance.NeedWire))
	assert.Empty(t, remote.Lacks(conformance.NeedUpper))
	assert.NotEmpty(t, remote.Lacks(conformance.NeedAPI))
	assert.Equal(t, "127.0.0.1", remote.Here())
	for _, target := range []conformance.Target{conformance.InProcess{}, remote} {
		assert.NotEmpty(t, target.Name())
		for _, play := range []conformance.Role{conformance.Initiator, conformance.Responder} {
			c, err := target.Stream(t.Context(), play)
			require.NoError(t, err)
			speaks(t, c, play)
		}
		require.NoError(t, target.Close())
	}
}

// TestUnreachable: nobody there, or somebody who is no upper tester.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail\r\n"))
			_ = c.Close()
		}
	})
	_, err = conformance.NewRemote(t.Context(), l.Addr().String(), conformance.Either)
	require.Error(t, err)
	_, err = conformance.NewRping(t.Context(), l.Addr().String(), conformance.Responder)
	require.Error(t, err, "somebody listens there")
	require.NoError(t, l.Close())
	wg.Wait()
	_, err = conformance.NewRemote(t.Context(), l.Addr().String(), conformance.Either)
	require.Error(t, err)
	_, err = conformance.NewRping(t.Context(), l.Addr().String(), conformance.Initiator)
	require.Error(t, err)
}

// TestRpingRoles: the target has one role, and waits for clients in the other.
func TestRpingRoles(t *testing.T) {
	r, err := conformance.NewRping(t.Context(), "127.0.0.1:0", conformance.Responder)
	require.NoError(t, err)
	assert.Equal(t, conformance.Responder, r.Role())
	assert.Empty(t, r.Lacks(conformance.NeedWire))
	assert.NotEmpty(t, r.Lacks(conformance.NeedUpper))
	assert.NotEmpty(t, r.Lacks(conformance.NeedAPI))
	_, err = r.Upper(t.Context())
	require.Error(t, err)
	_, err = r.Stream(t.Context(), conformance.Initiator)
	require.ErrorIs(t, err, conformance.ErrNoRole)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = r.Stream(ctx, conformance.Either)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, r.Close())
}
