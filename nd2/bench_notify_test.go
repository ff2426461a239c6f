package nd2_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/verbs"
)

// BenchmarkNotify is a Send of 64 octets and its answer, both ends asleep until it has come:
// in Notify, GetResults behind it, and for comparison in Wait of verbs. The two take turns.
// It reports p50 and p99 of both in microseconds, and their ratios.
func BenchmarkNotify(b *testing.B) {
	const turn = 8
	loops := [2]func(){notifyPingPong(b), waitPingPong(b)}
	var took [2][]time.Duration
	for n := 0; b.Loop() || n < 2*turn; n++ {
		i := n / turn % 2
		begin := time.Now()
		loops[i]()
		took[i] = append(took[i], time.Since(begin))
	}
	for name, at := range map[string]int{"p50": 50, "p99": 99} {
		var us [2]float64
		for i, d := range took {
			slices.Sort(d)
			us[i] = float64(d[len(d)*at/100]) / 1e3
		}
		b.ReportMetric(us[0], name+"-us")
		b.ReportMetric(us[1], name+"-verbs-us")
		b.ReportMetric(us[0]/us[1], name+"-ratio")
	}
}

func notifyPingPong(b *testing.B) func() {
	x, y := pair(b, shape{depth: 256, cqDepth: 1024, provider: nd2.Provider{CM: noCRC}})
	ctx, cancel := context.WithCancel(context.Background())
	next := func(s *side, results []nd2.Result) error {
		for {
			if err := s.in.Notify(ctx, nd2.CQNotifyAny); err != nil {
				return err
			}
			if s.in.GetResults(results) > 0 {
				return results[0].Err()
			}
		}
	}
	in, out := y.sge(0, 64), y.sge(64, 64)
	must(b, y.qp.Receive(y, in))
	over := make(chan struct{})
	b.Cleanup(func() { cancel(); <-over })
	go func() {
		defer close(over)
		var results [1]nd2.Result
		for next(y, results[:]) == nil {
			_ = y.qp.Receive(y, in)
			_ = y.qp.Send(y, out, nd2.OpFlagSilentSuccess)
		}
	}()
	recv, ping := x.sge(0, 64), x.sge(64, 64)
	var results [1]nd2.Result
	return func() {
		must(b, x.qp.Receive(x, recv))
		must(b, x.qp.Send(x, ping, nd2.OpFlagSilentSuccess))
		must(b, next(x, results[:]))
	}
}

func waitPingPong(b *testing.B) func() {
	x, y := verbsPair(b)
	ctx, cancel := context.WithCancel(context.Background())
	next := func(s *verbsSide, done []verbs.Completion) error {
		if _, err := s.cq.Wait(ctx, done); err != nil {
			return err
		}
		return done[0].Err()
	}
	recvX, recvY := verbs.Recv{SGL: x.mr.SGL(0, 64)}, verbs.Recv{SGL: y.mr.SGL(0, 64)}
	ping := verbs.Request{Flags: verbs.Unsignaled, SGL: x.mr.SGL(64, 64)}
	pong := verbs.Request{Flags: verbs.Unsignaled, SGL: y.mr.SGL(64, 64)}
	_, err := y.qp.PostRecv(recvY)
	require.NoError(b, err)
	over := make(chan struct{})
	b.Cleanup(func() { cancel(); <-over })
	go func() {
		defer close(over)
		var done [1]verbs.Completion
		for next(&y, done[:]) == nil {
			_, _ = y.qp.PostRecv(recvY)
			_, _ = y.qp.PostSend(pong)
		}
	}()
	var done [1]verbs.Completion
	return func() {
		_, err := x.qp.PostRecv(recvX)
		must(b, err)
		_, err = x.qp.PostSend(ping)
		must(b, err)
		must(b, next(&x, done[:]))
	}
}
