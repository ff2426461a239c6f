package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

// perfClient is the measuring end of a run.
type perfClient struct{ perfEnd }

// measure carries out one run against the server at addr.
func measure(ctx context.Context, addr string, f *cli.ConnFlags, run perfRun) (result perfResult, err error) {
	run.CRC = f.CRC
	c, err := openPerf(f, run)
	if err != nil {
		return result, err
	}
	user := ctx
	defer func() { err = c.Finish(user, err) }()
	if err := c.connect(ctx, addr, f); err != nil {
		return result, err
	}
	ctx, cancel := c.WhileConnected(ctx)
	defer cancel()
	ctx, cancelStalled := c.WhileActive(ctx, f.Timeout, fmt.Errorf("%w for %v", endpoint.ErrStalled, f.Timeout))
	defer cancelStalled()
	if run.Latency {
		return c.latency(ctx)
	}
	return c.stream(ctx)
}

// openPerf prepares everything up to the connection.
func openPerf(f *cli.ConnFlags, run perfRun) (*perfClient, error) {
	// Beyond the messages of a stream: its markers.
	l := run.limits(run.Depth+2, controlCount, f)
	l.Waiting = run.waiting()
	if run.Latency {
		l.SendDepth = latencyDepth
	}
	ep, err := endpoint.Open(l)
	if err != nil {
		return nil, err
	}
	e, err := newPerfEnd(ep, run)
	if err != nil {
		return nil, err
	}
	c := &perfClient{e}
	memory := endpoint.AddressOf(c.mr, 0)
	c.Memory = &memory
	for i := range controlCount {
		if err := c.postControl(uint64(i)); err != nil {
			return nil, errors.Join(err, ep.Abort())
		}
	}
	return c, nil
}

func (c *perfClient) connect(ctx context.Context, addr string, f *cli.ConnFlags) error {
	cfg := f.Config()
	cfg.PrivateData = endpoint.Marshal(c.perfRun)
	if err := c.Dial(ctx, addr, cfg); err != nil {
		return err
	}
	if err := json.Unmarshal(c.Conn.PrivateData(), &c.remote); err != nil {
		return fmt.Errorf("the server's private data: %w; is it rnic perf server?", err)
	}
	return nil
}

// postControl posts the Receive with this ID. In a latency run of Send it takes a
// message; in all others, a control message.
func (c *perfClient) postControl(id uint64) error {
	off, n := c.control(int(id)), controlSize
	if c.Latency && c.op() == verbs.OpSend {
		off, n = c.sinkRest(), c.Size
	}
	return c.PostRecv(verbs.Recv{ID: id, SGL: c.mr.SGL(off, n)})
}

// stream posts messages as fast as they are taken, until the time is over.
//
// The stream stands between two empty Sends. The receiving end reads the clock
// at both; for Read and Atomic, the receiving end is here.
func (c *perfClient) stream(ctx context.Context) (perfResult, error) {
	s := streamSender{perfClient: c}
	// The first message arrives in a place of its own, the last one has other contents.
	first := c.request(c.sourceFirst(), c.sinkFirst())
	body := c.request(c.sourceFirst(), c.sinkRest())
	last := c.request(c.sourceLast(), c.sinkRest())
	// A look at the clock costs as much as posting a short message.
	clockInterval := 64
	if c.Size > 16<<10 {
		clockInterval = 1
	}

	if err := s.marker(); err != nil {
		return perfResult{}, err
	}
	begin := time.Now()
	if err := s.post(ctx, &first); err != nil {
		return perfResult{}, err
	}
	for s.posted%clockInterval != 0 || time.Since(begin) < c.Duration {
		if err := s.post(ctx, &body); err != nil {
			return perfResult{}, err
		}
	}
	// The last Read or Atomic is over when it completes, which nothing else shows.
	s.signalAll = true
	if err := s.post(ctx, &last); err != nil {
		return perfResult{}, err
	}
	if c.op().Reads() {
		if err := s.waitCompleted(ctx); err != nil {
			return perfResult{}, err
		}
	}
	elapsed := time.Since(begin)
	if err := s.marker(); err != nil {
		return perfResult{}, err
	}
	answer, err := s.waitAnswer(ctx)
	if err != nil {
		return perfResult{}, err
	}

	switch {
	case answer.Error != "":
		return perfResult{}, errors.New("the server says: " + answer.Error)
	case c.op().IsAtomic(): // each returned the value before it
		answer.Seconds = elapsed.Seconds()
	case c.op() == verbs.OpRead:
		answer.Seconds = elapsed.Seconds()
		if err := c.verifyStream(); err != nil {
			return perfResult{}, err
		}
	case c.takesRecv() && answer.Messages != uint64(s.posted):
		return perfResult{}, fmt.Errorf("the server received %d of %d messages", answer.Messages, s.posted)
	}
	// A receiver that got the processor late sees less time pass than went by.
	return newStreamResult(c.perfRun, uint64(s.posted), max(answer.Seconds, elapsed.Seconds())), nil
}

// streamSender counts the messages of a stream.
type streamSender struct {
	*perfClient
	posted    int
	completed int // at least so many have left the Send Queue
	credited  int // for so many the receiver has had a Receive, and posted another
	answer    []byte
	signalAll bool
	one       [1]verbs.Request // a request on its way to PostSend
}

// marker sends an empty Send.
func (s *streamSender) marker() error {
	return s.PostSend(verbs.Request{Flags: verbs.Unsignaled})
}

// post posts one message, when there is room for it on both sides.
func (s *streamSender) post(ctx context.Context, req *verbs.Request) error {
	for s.posted-s.completed >= s.Depth || s.takesRecv() && s.posted-s.credited >= s.Depth {
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	s.one[0] = *req
	s.posted++
	s.one[0].ID = uint64(s.posted)
	if s.posted%s.signalInterval() != 0 && !s.signalAll {
		s.one[0].Flags = verbs.Unsignaled
	}
	return s.PostSend(s.one[:]...)
}

// step takes one completion into account.
func (s *streamSender) step(ctx context.Context) error {
	wc, err := s.Next(ctx)
	if err != nil {
		return err
	}
	switch {
	case wc.Op.IsAtomic() && wc.Value != wc.ID-1:
		return fmt.Errorf("the FetchAdd with number %d found %d, want one less than its number", wc.ID, wc.Value)
	case wc.Op != verbs.OpRecv:
		s.completed = int(wc.ID) // the queue completes in order (verbs draft 8.2.2)
	case wc.Bytes > 0:
		s.answer = s.buf[s.control(int(wc.ID)):][:wc.Bytes]
	default:
		s.credited += s.creditInterval()
		return s.postControl(wc.ID)
	}
	return nil
}

func (s *streamSender) waitCompleted(ctx context.Context) error {
	for s.completed < s.posted {
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *streamSender) waitAnswer(ctx context.Context) (answer perfAnswer, err error) {
	for s.answer == nil {
		if err := s.step(ctx); err != nil {
			return answer, err
		}
	}
	if err := json.Unmarshal(s.answer, &answer); err != nil {
		return answer, fmt.Errorf("the server's answer: %w", err)
	}
	return answer, nil
}
