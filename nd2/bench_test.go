package nd2_test

import (
	"context"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/verbs"
)

// BenchmarkPingPong is a Send of 64 octets and its answer, both sides polled by one
// goroutine: through nd2, and for comparison through verbs. "both" does a few of each in
// turn, so that what else the machine does concerns both, and says how many times the
// median time of verbs that of nd2 is.
func BenchmarkPingPong(b *testing.B) {
	run := func(make func(*testing.B) func()) func(*testing.B) {
		return func(b *testing.B) {
			round := make(b)
			b.ReportAllocs()
			for b.Loop() {
				round()
			}
		}
	}
	b.Run("nd2", run(pingPong))
	b.Run("verbs", run(verbsPingPong))
	b.Run("both", func(b *testing.B) {
		rounds := [2]func(){pingPong(b), verbsPingPong(b)}
		var times [2][]time.Duration
		for b.Loop() {
			for i, round := range rounds {
				round() // wakes who receives
				start := time.Now()
				for range 50 {
					round()
				}
				times[i] = append(times[i], time.Since(start))
			}
		}
		median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2]) }
		b.ReportMetric(median(times[0])/median(times[1]), "nd2/verbs")
	})
}

var noCRC = cm.Config{NoCRC: true}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

func pingPong(b *testing.B) func() {
	x, y := pair(b, shape{depth: 256, cqDepth: 1024, provider: nd2.Provider{CM: noCRC}})
	var results [1]nd2.Result
	next := func(cq *nd2.CompletionQueue) {
		for spin := 1; cq.GetResults(results[:]) == 0; spin++ {
			if spin%64 == 0 {
				runtime.Gosched()
			}
		}
		must(b, results[0].Err())
	}
	recvX, recvY, ping, pong := x.sge(0, 64), y.sge(0, 64), x.sge(64, 64), y.sge(64, 64)
	return func() {
		must(b, y.qp.Receive(y, recvY))
		must(b, x.qp.Send(x, ping, nd2.OpFlagSilentSuccess))
		next(y.in)
		must(b, x.qp.Receive(x, recvX))
		must(b, y.qp.Send(y, pong, nd2.OpFlagSilentSuccess))
		next(x.in)
	}
}

// verbsSide is what a side is made of, without nd2.
type verbsSide struct {
	qp *verbs.QP
	cq *verbs.CQ
	mr *verbs.MR
}

func newVerbsSide(b *testing.B) (s verbsSide) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, nic.Close()) })
	pd, err := nic.AllocatePD()
	require.NoError(b, err)
	out, err := nic.CreateCQ(verbs.CQConfig{Entries: 1024})
	require.NoError(b, err)
	s.cq, err = nic.CreateCQ(verbs.CQConfig{Entries: 1024})
	require.NoError(b, err)
	s.qp, err = nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: out, RecvCQ: s.cq, SendDepth: 256, RecvDepth: 256})
	require.NoError(b, err)
	s.mr, err = pd.Register(make([]byte, 1<<16), verbs.LocalRead|verbs.LocalWrite)
	require.NoError(b, err)
	return s
}

// verbsPair is two sides that are connected.
func verbsPair(b *testing.B) (x, y verbsSide) {
	x, y = newVerbsSide(b), newVerbsSide(b)
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	l := cm.NewListener(nl, cm.ListenConfig{})
	defer l.Close()
	cfg := noCRC
	accepted := nd2.Overlap(bounded(b), func(ctx context.Context) error {
		req, err := l.Accept(ctx)
		if err == nil {
			_, err = req.Accept(ctx, y.qp, cfg)
		}
		return err
	})
	_, err = cm.Dial(bounded(b), l.Addr().String(), x.qp, cfg)
	require.NoError(b, err)
	require.NoError(b, accepted.GetOverlappedResult(true))
	return x, y
}

func verbsPingPong(b *testing.B) func() {
	x, y := verbsPair(b)
	var done [1]verbs.Completion
	next := func(cq *verbs.CQ) {
		for spin := 1; cq.Poll(done[:]) == 0; spin++ {
			if spin%64 == 0 {
				runtime.Gosched()
			}
		}
		must(b, done[0].Err())
	}
	recvX, recvY := verbs.Recv{SGL: x.mr.SGL(0, 64)}, verbs.Recv{SGL: y.mr.SGL(0, 64)}
	ping := verbs.Request{Flags: verbs.Unsignaled, SGL: x.mr.SGL(64, 64)}
	pong := verbs.Request{Flags: verbs.Unsignaled, SGL: y.mr.SGL(64, 64)}
	return func() {
		_, err := y.qp.PostRecv(recvY)
		must(b, err)
		_, err = x.qp.PostSend(ping)
		must(b, err)
		next(y.cq)
		_, err = x.qp.PostRecv(recvX)
		must(b, err)
		_, err = y.qp.PostSend(pong)
		must(b, err)
		next(x.cq)
	}
}

// BenchmarkPaths is one request, or one pair, of every kind after the other.
func BenchmarkPaths(b *testing.B) {
	for _, p := range paths(b) {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, p.run())
			}
		})
	}
}
