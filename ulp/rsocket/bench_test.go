package rsocket_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/abbench"
	"github.com/softrnic/softrnic/ulp/rsocket"
)

// network is how a benchmark connects: over rsocket, or over TCP.
type network struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	listen func() (net.Listener, error)
}

var overRDMA = network{rsocket.Config{}.DialContext, func() (net.Listener, error) { return rsocket.Listen("tcp", "127.0.0.1:0") }}

var overTCP = network{(&net.Dialer{}).DialContext, func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }}

func (n network) pair(b *testing.B) (x, y net.Conn) {
	l, err := n.listen()
	require.NoError(b, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
		close(accepted)
	}()
	x, err = n.dial(b.Context(), "tcp", l.Addr().String())
	require.NoError(b, err)
	y, ok := <-accepted
	require.True(b, ok)
	b.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x, y
}

// BenchmarkPingPong: a message of 64 octets there and back, both ends in one process.
func BenchmarkPingPong(b *testing.B) {
	step := func(n network) func() time.Duration {
		x, y := n.pair(b)
		go func() {
			buf := make([]byte, 64)
			for {
				if _, err := io.ReadFull(y, buf); err != nil {
					return
				}
				if _, err := y.Write(buf); err != nil {
					return
				}
			}
		}()
		buf := make([]byte, 64)
		return abbench.Timed(func() {
			for range 16 {
				if _, err := x.Write(buf); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(x, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	abbench.Run(b, "tcp", step(overRDMA), step(overTCP))
}

// BenchmarkStream: writes of 1 MiB, 16 in a row, read with a buffer as large.
func BenchmarkStream(b *testing.B) {
	const size, count = 1 << 20, 16
	step := func(n network) func() time.Duration {
		x, y := n.pair(b)
		got := make(chan error, 1)
		go func() {
			buf := make([]byte, size)
			for {
				var err error
				for range count {
					if _, err = io.ReadFull(y, buf); err != nil {
						break
					}
				}
				got <- err
				if err != nil {
					return
				}
			}
		}()
		buf := make([]byte, size)
		return abbench.Timed(func() {
			for range count {
				if _, err := x.Write(buf); err != nil {
					b.Fatal(err)
				}
			}
			if err := <-got; err != nil {
				b.Fatal(err)
			}
		})
	}
	abbench.Run(b, "tcp", step(overRDMA), step(overTCP))
}

// BenchmarkCrowd: a thousand connections of net/http's client to its server, of which 32 at a time ask something.
func BenchmarkCrowd(b *testing.B) {
	const clients, busy = 1000, 32
	step := func(n network) func() time.Duration {
		l, err := n.listen()
		require.NoError(b, err)
		answer := octets(200)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })}
		go func() { _ = server.Serve(l) }()
		b.Cleanup(func() { _ = server.Close() })
		all := make([]*http.Client, clients)
		for i := range all {
			t := &http.Transport{DialContext: n.dial, MaxConnsPerHost: 1}
			b.Cleanup(t.CloseIdleConnections)
			all[i] = &http.Client{Transport: t}
		}
		url := "http://" + l.Addr().String() + "/"
		return abbench.Timed(func() {
			var workers sync.WaitGroup
			for w := range busy {
				workers.Go(func() {
					for i := w; i < clients; i += busy {
						resp, err := all[i].Get(url)
						if err != nil {
							b.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				})
			}
			workers.Wait()
		})
	}
	ours, theirs := step(overRDMA), step(overTCP)
	ours() // connect
	theirs()
	abbench.Run(b, "tcp", ours, theirs)
}
