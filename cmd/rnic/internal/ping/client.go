package ping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/internal/rping"
	"github.com/softrnic/softrnic/verbs"
)

// runClient connects, does its rounds and prints a summary.
func (p *ping) runClient(ctx context.Context, out *pingOutput, log *slog.Logger) (err error) {
	e, err := open(endpoint.Open(p.limits()))
	if err != nil {
		return err
	}
	finish, err := p.stats.Serve(log, e.NIC)
	if err != nil {
		return errors.Join(err, e.Abort())
	}
	defer func() { err = finish(err) }()
	summary, err := p.ping(ctx, e, out)
	if err = e.Finish(ctx, err); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return out.summary(summary)
}

func (p *ping) ping(ctx context.Context, e *pingEnd, out *pingOutput) (pingSummary, error) {
	n := int(p.size)
	start, startMR, err := e.Register(n, verbs.LocalRead|verbs.RemoteRead)
	if err != nil {
		return pingSummary{}, err
	}
	sink, sinkMR, err := e.Register(n, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		return pingSummary{}, err
	}
	if err := e.Dial(ctx, p.hostPort(), p.flags.Config()); err != nil {
		return pingSummary{}, err
	}
	connected, cancel := e.WhileConnected(ctx)
	defer cancel()

	summary := pingSummary{Role: "client", Peer: e.Conn.RemoteAddr().String(), Validated: p.validate}
	var rounds histogram.Histogram
	begin := time.Now()
	for round := 0; p.count == 0 || round < p.count; round++ {
		if p.count == 0 && ctx.Err() != nil {
			break // stopped by the user, as -C 0 promises
		}
		rping.Fill(start, round)
		// The data of the last round must not pass for an answer.
		for i := range sink {
			sink[i] = 0xff
		}
		roundBegin := time.Now()
		if err := p.round(connected, e, advert(startMR, n), advert(sinkMR, n)); err != nil {
			if p.count == 0 && ctx.Err() != nil {
				break
			}
			return summary, err
		}
		rounds.Record(time.Since(roundBegin))
		if p.validate {
			if err := compare(round, start, sink); err != nil {
				return summary, err
			}
		}
		if p.verbose {
			out.data("ping data: ", sink)
		}
		summary.Rounds++
		summary.Bytes += p.size
	}
	summary.Seconds = time.Since(begin).Seconds()
	summary.Times = newTimes(&rounds)
	return summary, nil
}

// round is the client's part of a round, for which the server has the time of --timeout.
func (p *ping) round(ctx context.Context, e *pingEnd, start, sink rping.Buffer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.flags.Timeout,
		fmt.Errorf("%w within %v; a slow path needs a longer --timeout", endpoint.ErrStalled, p.flags.Timeout))
	defer cancel()
	return e.round(ctx, start, sink)
}

// round names the two buffers to the server, each followed by its go-ahead: the
// first when it has read the data, the second when it has written them back.
func (e *pingEnd) round(ctx context.Context, start, sink rping.Buffer) error {
	for _, b := range [...]rping.Buffer{start, sink} {
		if err := e.sendBuffer(b); err != nil {
			return err
		}
		if _, err := e.recvBuffer(ctx); err != nil {
			return err
		}
	}
	return nil
}

func advert(mr *verbs.MR, n int) rping.Buffer {
	return rping.Buffer{Remote: mr.Remote(0), Length: uint32(n)}
}
