package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// servePerf serves the runs of clients until ctx ends.
func servePerf(ctx context.Context, l *cm.Listener, f *connFlags, log io.Writer) error {
	var runs sync.WaitGroup
	defer runs.Wait()
	for {
		req, err := l.Accept(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // stopped by the user
		case err != nil:
			return fmt.Errorf("waiting for a client: %w", err)
		}
		runs.Go(func() {
			if err := servePerfRun(ctx, req, f); err != nil && ctx.Err() == nil {
				fmt.Fprintf(log, "rnic: client %v: %s\n", req.RemoteAddr(), oneLine(err))
			}
		})
	}
}

// perfServer is the answering side of a run.
type perfServer struct {
	*endpoint
	reaper
	perfMemory
	perfRun
}

func servePerfRun(ctx context.Context, req *cm.Request, f *connFlags) error {
	run, err := parsePerfRun(req.PrivateData())
	if err != nil {
		return errors.Join(err, req.Reject([]byte(err.Error())))
	}
	// Room for a stream of Sends: as many messages as the client has on its
	// way at most, and its two markers.
	l := limits{sendDepth: latencyDepth, recvDepth: run.Depth + 2, ird: f.ird, ord: f.ord}
	if run.Latency {
		l.recvDepth = latencyDepth
	}
	ep, err := openEndpoint(l)
	if err != nil {
		return errors.Join(err, req.Reject([]byte("the server has no resources for this depth")))
	}
	s := &perfServer{endpoint: ep, reaper: newReaper(ep, run.answering()), perfRun: run}
	if s.perfMemory, err = newPerfMemory(ep, run.Size); err != nil {
		return errors.Join(err, req.Reject([]byte("the server has no memory for this size")), ep.close())
	}
	err = s.serve(ctx, req, f, l.recvDepth)
	return errors.Join(err, ep.close())
}

func (s *perfServer) serve(ctx context.Context, req *cm.Request, f *connFlags, recvs int) error {
	for i := range recvs {
		// A marker is the first to arrive; then the first message.
		off := s.sinkRest()
		if i == 1 {
			off = s.sinkFirst()
		}
		if err := s.postRecv(verbs.Recv{SGL: s.mr.SGL(off, s.Size)}); err != nil {
			return err
		}
	}
	cfg := f.config()
	cfg.NoCRC = !s.CRC // the client decides
	cfg.PrivateData = marshal(addressOf(s.mr, 0))
	if err := s.accept(ctx, req, cfg); err != nil {
		return err
	}
	ctx, cancel := s.whileConnected(ctx)
	defer cancel()

	var err error
	switch {
	case s.Latency && s.op() != verbs.OpRead:
		err = s.echo(ctx)
	case !s.Latency:
		err = s.sink(ctx)
	}
	if err == nil {
		// Who polls answers Reads at once.
		err = s.untilDisconnected(ctx)
	}
	if errors.Is(err, errDisconnected) {
		return nil // this is how a client ends
	}
	return err
}

func (s *perfServer) untilDisconnected(ctx context.Context) error {
	for {
		if _, err := s.next(ctx); err != nil {
			return err
		}
	}
}

// echo returns each message from where it arrived.
func (s *perfServer) echo(ctx context.Context) error {
	var data, empty [1]verbs.Send
	data[0] = verbs.Send{Op: s.op(), SGL: s.mr.SGL(s.sinkRest(), s.Size)}
	recv := [1]verbs.Recv{{SGL: s.mr.SGL(s.sinkRest(), s.Size)}}
	if s.op() == verbs.OpWrite {
		data[0].Flags = verbs.Unsignaled
		data[0].Remote = s.Memory.at(s.sinkRest())
	}
	for count := 1; ; count++ {
		if err := awaitRecv(ctx, &s.reaper); err != nil {
			return err
		}
		if err := postMessage(s.endpoint, &data, &empty, count); err != nil {
			return err
		}
		if err := s.postRecv(recv[:]...); err != nil {
			return err
		}
	}
}

// sink takes a stream, up to its second marker, and sends the client what it
// counted. Of Writes and Reads it sees the markers only.
func (s *perfServer) sink(ctx context.Context) error {
	answer, err := s.count(ctx)
	if err != nil {
		return err
	}
	if s.op() != verbs.OpRead {
		if err := s.verifyStream(); err != nil {
			answer.Error = err.Error()
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	n := copy(s.buf[s.control(0):][:controlSize], text)
	return s.postSend(verbs.Send{SGL: s.mr.SGL(s.control(0), n)})
}

func (s *perfServer) count(ctx context.Context) (answer perfAnswer, err error) {
	recv := [1]verbs.Recv{{SGL: s.mr.SGL(s.sinkRest(), s.Size)}}
	credit := [1]verbs.Send{{Flags: verbs.Unsignaled}}
	var begin time.Time
	for uncredited := 0; ; {
		wc, err := s.next(ctx)
		switch {
		case err != nil:
			return answer, err
		case wc.Op != verbs.OpRecv:
			continue
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
		if err := s.postRecv(recv[:]...); err != nil {
			return answer, err
		}
		if uncredited++; uncredited == s.creditInterval() {
			uncredited = 0
			if err := s.postSend(credit[:]...); err != nil {
				return answer, err
			}
		}
	}
}
