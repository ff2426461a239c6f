package endpoint_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
)

const benchSize = 64 << 10

// BenchmarkNetConn64K is a plain TCP stream: what BenchmarkStream64K is measured by.
func BenchmarkNetConn64K(b *testing.B) {
	x, y := loopback(b)
	defer x.Close()
	defer y.Close()
	src, dst := make([]byte, benchSize), make([]byte, benchSize)
	b.SetBytes(benchSize)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range b.N {
			if _, err := io.ReadFull(y, dst); err != nil {
				b.Error(err)
				return
			}
		}
	})
	for range b.N {
		if _, err := x.Write(src); err != nil {
			b.Fatal(err)
		}
	}
	wg.Wait()
}

// streamer keeps the queues of the two ends of a stream full.
type streamer struct {
	post   func()
	left   int // to post
	missed int // to complete
	done   chan struct{}
	failed endpoint.Flaws
}

func (s *streamer) more(r *endpoint.Result) {
	s.failed |= r.Flaws
	if s.left > 0 {
		s.left--
		s.post()
	}
	if s.missed--; s.missed == 0 {
		close(s.done)
	}
}

func (s *streamer) SendDone(r *endpoint.Result)    { s.more(r) }
func (s *streamer) ReceiveDone(r *endpoint.Result) { s.more(r) }
func (s *streamer) Event(endpoint.Event)           {}
func (s *streamer) Ended(*endpoint.EndError)       {}

func BenchmarkStream64K(b *testing.B) {
	benchStream(b, benchSize, endpoint.Config{Level: segment.ReliableDelivery})
}

func BenchmarkStream64KFlowControl(b *testing.B) {
	benchStream(b, benchSize, endpoint.Config{Level: segment.ReliableDelivery, FlowControl: true, PeerFlowControl: true})
}

func BenchmarkStream64KReception(b *testing.B) {
	benchStream(b, benchSize, endpoint.Config{Level: segment.ReliableReception})
}

func BenchmarkStream64KCRC(b *testing.B) {
	benchStream(b, benchSize, endpoint.Config{Level: segment.ReliableDelivery, CRC: true})
}

func BenchmarkStream1M(b *testing.B) {
	benchStream(b, 1<<20, endpoint.Config{Level: segment.ReliableDelivery})
}

func BenchmarkStream64(b *testing.B) {
	benchStream(b, 64, endpoint.Config{Level: segment.ReliableDelivery, FlowControl: true, PeerFlowControl: true})
}

// benchStream sends b.N messages one way, with up to 16 of them posted.
func benchStream(b *testing.B, size int, c endpoint.Config) {
	const depth = 16
	x, y := loopback(b)
	tx, rx := &streamer{done: make(chan struct{})}, &streamer{done: make(chan struct{})}
	sender, from := benchEnd(b, x, c, tx, size)
	receiver, to := benchEnd(b, y, c, rx, size)
	send, recv := &endpoint.Request{Op: endpoint.OpSend, Spans: from}, &endpoint.Receive{Spans: to}
	tx.post = func() { _ = sender.PostSend(send) }
	rx.post = func() { _ = receiver.PostReceive(recv) }
	n := min(b.N, depth)
	tx.left, tx.missed, rx.missed = b.N-n, b.N, b.N
	// Without flow control there is a receive for whatever is sent.
	ahead := min(b.N, 4*depth)
	rx.left = b.N - ahead
	for range ahead {
		rx.post()
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	receiver.Start()
	sender.Start()
	for range n {
		tx.post()
	}
	<-tx.done
	<-rx.done
	b.StopTimer()
	require.Zero(b, tx.failed|rx.failed)
	sender.Close()
	receiver.Close()
}

func benchEnd(b *testing.B, conn net.Conn, c endpoint.Config, s *streamer, size int) (*endpoint.Endpoint, []endpoint.Span) {
	b.Helper()
	table := stag.NewTable(stag.Config{})
	m := register(b, table, size, allRights)
	c.STags, c.User, c.Handler, c.MTU = table, stag.User{PD: testPD}, s, 1<<20
	e, err := endpoint.New(conn, c)
	require.NoError(b, err)
	return e, m.all()
}
