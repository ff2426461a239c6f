package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

// What all clients of a server may take.
const (
	perfClients = 64
	perfBudget  = 1 << 30 // octets: four runs with messages of maxPerfSize
)

// servePerf serves the runs of clients until ctx ends.
func servePerf(ctx context.Context, l *cm.Listener, host *endpoint.Host, f *cli.ConnFlags, log *slog.Logger) error {
	return endpoint.Serve(ctx, l.Accept, log, func(req *cm.Request) error {
		if err := servePerfRun(ctx, host, req, f); err != nil && ctx.Err() == nil {
			return fmt.Errorf("client %v: %w", req.RemoteAddr(), err)
		}
		return nil
	})
}

// perfServer is the answering end of a run.
type perfServer struct{ perfEnd }

func servePerfRun(ctx context.Context, host *endpoint.Host, req *cm.Request, f *cli.ConnFlags) error {
	run, err := parsePerfRun(req.PrivateData())
	if err != nil {
		return errors.Join(err, req.Reject([]byte(err.Error())))
	}
	// Room for a stream of Sends: as many messages as the client has on its
	// way at most, and its two markers.
	l := run.limits(latencyDepth, run.Depth+2, f)
	l.Waiting = run.answering()
	if run.Latency {
		l.RecvDepth = latencyDepth
	}
	leave, err := host.Admit(run.need(l))
	if err != nil {
		return errors.Join(fmt.Errorf("refused: %w", err), req.Reject([]byte(err.Error())))
	}
	defer leave()
	ep, err := endpoint.New(host.NIC, l)
	if err != nil {
		return errors.Join(err, req.Reject([]byte("the server has no resources for this depth")))
	}
	e, err := newPerfEnd(ep, run)
	if err != nil {
		return errors.Join(err, req.Reject([]byte("the server has no memory for this size")))
	}
	if run.Memory != nil {
		e.remote = *run.Memory
	}
	s := &perfServer{e}
	if err := s.serve(ctx, host, req, f, l.RecvDepth); err != nil {
		_ = req.Reject(nil) // if it stands
		return errors.Join(err, ep.Abort())
	}
	return ep.Close(ctx)
}

func (s *perfServer) serve(ctx context.Context, host *endpoint.Host, req *cm.Request, f *cli.ConnFlags, recvs int) error {
	for i := range recvs {
		// A marker is the first to arrive; then the first message.
		off := s.sinkRest()
		if i == 1 {
			off = s.sinkFirst()
		}
		if err := s.PostRecv(verbs.Recv{SGL: s.mr.SGL(off, s.Size)}); err != nil {
			return err
		}
	}
	cfg := f.Config()
	cfg.NoCRC = !s.CRC // the client decides
	cfg.PrivateData = endpoint.Marshal(endpoint.AddressOf(s.mr, 0))
	if err := s.Accept(ctx, req, cfg); err != nil {
		return err
	}
	ctx, cancel := s.WhileConnected(ctx)
	defer cancel()
	ctx, cancelIdle := s.whileBusy(ctx, host.Idle)
	defer cancelIdle()

	var err error
	switch {
	case s.Latency && !s.op().Reads():
		err = s.echo(ctx)
	case !s.Latency:
		err = s.sink(ctx)
	}
	if err == nil {
		// A server that polls answers Reads at once.
		err = s.UntilDisconnected(ctx)
	}
	if errors.Is(err, endpoint.ErrDisconnected) {
		return nil // this is how a client ends
	}
	return err
}

// whileBusy returns a context that also ends when the client has done nothing for idle. Of RDMA Writes and Reads there
// is nothing to see here: a run of these may take as long as it does at most, and some time to begin and to end.
func (s *perfServer) whileBusy(ctx context.Context, idle time.Duration) (context.Context, context.CancelFunc) {
	if s.takesRecv() || s.Latency && s.op() == verbs.OpWrite {
		return s.WhileActive(ctx, idle, endpoint.ErrIdle(idle))
	}
	limit := s.longest(idle)
	late := fmt.Errorf("it took longer than %v, its --duration, twice --idle and what it has on its way", limit)
	return context.WithTimeoutCause(ctx, limit, late)
}

// echo returns each message from where it arrived.
func (s *perfServer) echo(ctx context.Context) error {
	var data, empty [1]verbs.Request
	data[0] = s.request(s.sinkRest(), s.sinkRest())
	recv := [1]verbs.Recv{{SGL: s.mr.SGL(s.sinkRest(), s.Size)}}
	for count := 1; ; count++ {
		if err := s.awaitRecv(ctx); err != nil {
			return err
		}
		if err := s.postMessage(&data, &empty, count); err != nil {
			return err
		}
		if err := s.PostRecv(recv[:]...); err != nil {
			return err
		}
	}
}

// sink takes a stream, up to its second marker, and sends the client its
// counts. Of Writes and Reads it sees the markers only.
func (s *perfServer) sink(ctx context.Context) error {
	answer, err := s.count(ctx)
	if err != nil {
		return err
	}
	if !s.op().Reads() {
		if err := s.verifyStream(); err != nil {
			answer.Error = err.Error()
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	n := copy(s.buf[s.control(0):][:controlSize], text)
	return s.PostSend(verbs.Request{SGL: s.mr.SGL(s.control(0), n)})
}

func (s *perfServer) count(ctx context.Context) (answer perfAnswer, err error) {
	recv := [1]verbs.Recv{{SGL: s.mr.SGL(s.sinkRest(), s.Size)}}
	credit := [1]verbs.Request{{Flags: verbs.Unsignaled}}
	var begin time.Time
	for uncredited := 0; ; {
		wc, err := s.Next(ctx)
		switch {
		case err != nil:
			return answer, err
		case wc.Op != verbs.OpRecv:
			continue
		case wc.HasImmediate: // the Write before it is placed
		case wc.Bytes == 0 && begin.IsZero():
			begin = time.Now()
			continue
		case wc.Bytes == 0:
			answer.Seconds = time.Since(begin).Seconds()
			return answer, nil
		case int(wc.Bytes) != s.Size:
			return answer, fmt.Errorf("message of %d octets, want %d", wc.Bytes, s.Size)
		}
		answer.Messages++
		if err := s.PostRecv(recv[:]...); err != nil {
			return answer, err
		}
		if uncredited++; uncredited == s.creditInterval() {
			uncredited = 0
			if err := s.PostSend(credit[:]...); err != nil {
				return answer, err
			}
		}
	}
}
