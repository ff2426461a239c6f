package stress

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/lab/relay"
	"github.com/softrnic/softrnic/ulp/nvmeof"
	"github.com/softrnic/softrnic/ulp/rsocket"
)

// rsocketHello is the private data of a peer of rsockets, with a ring and a target list that it does not have.
var rsocketHello = []byte{
	1, 2, 1, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 1, 1, 0, 0, 0, 2,
	0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 1, 1, 0, 1, 0, 0,
}

// startRsocket serves echoes: a client is served when it has had one.
func startRsocket(t *testing.T) server {
	l, err := rsocket.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	serving(t, func(_ context.Context, wg *sync.WaitGroup) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	}, func() { _ = l.Close() })
	addr := l.Addr().String()
	return server{addr, droppedpeer.MPA(rsocketHello), func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		c, err := rsocket.Config{}.DialContext(ctx, "tcp", addr)
		if err != nil {
			return 0, err
		}
		_, err = c.Write([]byte{1})
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return time.Since(start), errors.Join(err, c.Close())
	}}
}

// nvmeHello is the private data of a host for an I/O queue of 128 commands.
var nvmeHello = append([]byte{0, 0, 1, 0, 128, 0, 127, 0}, make([]byte, 24)...)

func startNVMe(t *testing.T) server {
	s, err := nvmeof.NewSubsystem("nqn.2026-01.org.softrnic:siege", []nvmeof.Disk{nvmeof.Memory(1 << 20)})
	require.NoError(t, err)
	target, err := nvmeof.New(nvmeof.Config{}, s)
	require.NoError(t, err)
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	near, addr := newEnd(t), l.Addr().String()
	serving(t, func(ctx context.Context, _ *sync.WaitGroup) {
		assert.NoError(t, target.Serve(ctx, l))
		assert.NoError(t, target.Close())
	}, func() {})
	return server{addr, droppedpeer.MPA(nvmeHello), near.connector(addr, nvmeHello)}
}

// startProxy has cm's listener behind it.
func startProxy(t *testing.T) server {
	// All clients of a proxy are one source to its target, which shares its places by source: it needs room for them all.
	return proxied(t, listen(t, cm.ListenConfig{MaxStartups: 1 << 14, Backlog: 1 << 14}))
}

// startProxySending has a target that sends.
func startProxySending(t *testing.T) server { return proxied(t, startSending(t)) }

func proxied(t *testing.T, behind server) server {
	near := newEnd(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := relay.New(behind.addr, relay.Config{})
	serving(t, func(ctx context.Context, _ *sync.WaitGroup) { assert.NoError(t, p.Serve(ctx, l)) }, func() {})
	addr := l.Addr().String()
	return server{addr, droppedpeer.MPA(nil), near.connector(addr, nil)}
}
