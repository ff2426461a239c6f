package perf

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

const (
	scaleDepth = 16 // of SQ and RQ
	scaleSGEs  = 4
	scaleSize  = 64 // octets a message

	// scaleDialers is how many connections are made at a time, by either kind.
	scaleDialers = 32
)

// scaleEnd is one end of many connections, which share an RNIC and a CQ for each
// processor: what a program with thousands of connections would set up.
type scaleEnd struct {
	nic  *verbs.RNIC
	pd   *verbs.PD
	cqs  []*verbs.CQ
	pool []scaleQP

	// buf has two messages for each queue pair: one to send and one to
	// receive.
	buf []byte
	mr  *verbs.MR
}

// scaleQP is a queue pair and its connection. It belongs to who makes it, and
// then to who polls its CQ.
type scaleQP struct {
	qp    *verbs.QP
	conn  *cm.Conn
	sends int // posted
}

// newScaleEnd prepares everything for n queue pairs but these. All of its memory
// is touched, so that it does not count as theirs.
func newScaleEnd(n int) (*scaleEnd, error) {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return nil, fmt.Errorf("opening the RNIC: %w", err)
	}
	e := &scaleEnd{nic: nic, pool: make([]scaleQP, n), buf: make([]byte, 2*scaleSize*n)}
	if err := e.prepare(); err != nil {
		nic.Close()
		return nil, err
	}
	return e, nil
}

func (e *scaleEnd) prepare() (err error) {
	n := len(e.pool)
	clear(e.pool)
	clear(e.buf)
	if e.pd, err = e.nic.AllocatePD(); err != nil {
		return fmt.Errorf("allocating a protection domain: %w", err)
	}
	if e.mr, err = e.pd.Register(e.buf, verbs.LocalRead|verbs.LocalWrite); err != nil {
		return fmt.Errorf("registering %d octets of memory: %w", len(e.buf), err)
	}
	e.cqs = make([]*verbs.CQ, min(runtime.GOMAXPROCS(0), n))
	for i := range e.cqs {
		share := (n + len(e.cqs) - 1) / len(e.cqs)
		if e.cqs[i], err = e.nic.CreateCQ(verbs.CQConfig{Entries: 2 * scaleDepth * share}); err != nil {
			return fmt.Errorf("creating a completion queue: %w", err)
		}
	}
	return nil
}

// cq is the one that queue pair i completes to.
func (e *scaleEnd) cq(i int) *verbs.CQ { return e.cqs[i%len(e.cqs)] }

// source and sink are where queue pair i has its messages in buf.
func (e *scaleEnd) source(i int) int { return 2 * i * scaleSize }
func (e *scaleEnd) sink(i int) int   { return e.source(i) + scaleSize }

// create makes queue pair i, with its Receive Queue full.
func (e *scaleEnd) create(i int) (*verbs.QP, error) {
	qp, err := e.nic.CreateQP(verbs.QPConfig{
		PD: e.pd, SendCQ: e.cq(i), RecvCQ: e.cq(i),
		SendDepth: scaleDepth, RecvDepth: scaleDepth, SendSGE: scaleSGEs, RecvSGE: scaleSGEs,
	})
	if err != nil {
		return nil, fmt.Errorf("creating a queue pair: %w", err)
	}
	e.pool[i].qp = qp
	for range scaleDepth {
		if err := e.receive(i); err != nil {
			return nil, err
		}
	}
	return qp, nil
}

// receive posts a Receive of queue pair i.
func (e *scaleEnd) receive(i int) error {
	recv := [1]verbs.Recv{{ID: uint64(i)}}
	sge := [1]verbs.SGE{e.mr.SGE(e.sink(i), scaleSize)}
	recv[0].SGL = sge[:]
	_, err := e.pool[i].qp.PostRecv(recv[:]...)
	return err
}

// send posts a Send of queue pair i: its own message, or back what it received.
// Some are signaled, so that the Send Queue never fills up.
func (e *scaleEnd) send(i int, back bool) error {
	off := e.source(i)
	if back {
		off = e.sink(i)
	}
	send := [1]verbs.Request{{ID: uint64(i)}}
	sge := [1]verbs.SGE{e.mr.SGE(off, scaleSize)}
	send[0].SGL = sge[:]
	q := &e.pool[i]
	if q.sends++; q.sends%(scaleDepth/2) != 0 {
		send[0].Flags = verbs.Unsignaled
	}
	_, err := q.qp.PostSend(send[:]...)
	return err
}

// reaper takes completions of one CQ, polling.
func (e *scaleEnd) reaper(cq *verbs.CQ) endpoint.Reaper {
	return endpoint.Reaper{CQ: cq, Flushed: func() error { return endpoint.ErrDisconnected }, Mode: endpoint.WaitSpin}
}

// scaleMemory is what a process knows of its memory.
type scaleMemory struct {
	Resident   *int64 `json:"resident"`
	Goroutines int    `json:"goroutines"`
}

func measureMemory() (m scaleMemory, err error) {
	m.Goroutines = runtime.NumGoroutine()
	m.Resident, err = residentMemory()
	return m, err
}

// connectMany calls connect for from to to-1, scaleDialers of them at a time, then
// wait, and returns how many a second that makes.
func connectMany(
	ctx context.Context, what string, from, to int, p *cli.Progress,
	connect func(ctx context.Context, i int) error, wait func() error,
) (float64, error) {
	done := make(chan struct{}, scaleDialers)
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	begin := time.Now()
	group.Go(func() error {
		defer close(next)
		for i := from; i < to; i++ {
			select {
			case next <- i:
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	for range scaleDialers {
		group.Go(func() error {
			for i := range next {
				if err := connect(ctx, i); err != nil {
					return err
				}
				done <- struct{}{}
			}
			return nil
		})
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		n := 0
		for range done {
			n++
			p.Show(what, uint64(n), uint64(to-from))
		}
	}()
	err := group.Wait()
	if err == nil {
		err = wait()
	}
	elapsed := time.Since(begin)
	close(done)
	<-shown
	return float64(to-from) / elapsed.Seconds(), err
}
