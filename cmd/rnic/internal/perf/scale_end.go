package perf

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
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

// scaleShape is the configuration of the queue pairs of a scaleEnd, and how it waits.
type scaleShape struct {
	cqs       int // shared by all of them
	sendDepth int
	recvDepth int
	sges      int
	crc       bool
	waiting   endpoint.Waiting
}

// idleShape is that of `rnic perf scale`.
func idleShape() scaleShape {
	return scaleShape{
		cqs: runtime.GOMAXPROCS(0), sendDepth: scaleDepth, recvDepth: scaleDepth, sges: scaleSGEs,
		crc: true, waiting: endpoint.WaitSpin,
	}
}

// connFlags are the flags that its connections are made with.
func (s scaleShape) connFlags() cli.ConnFlags {
	f := cli.DefaultConnFlags()
	f.CRC = s.crc
	return f
}

// scaleEnd is one end of many connections, which share an RNIC and a few CQs: what
// a program with thousands of connections would set up.
type scaleEnd struct {
	scaleShape
	nic  *verbs.RNIC
	pd   *verbs.PD
	cq   []*verbs.CQ // queue pair i completes to the one with the number i modulo their number
	pool []scaleQP

	// buf has two messages for each queue pair: one to send and one to
	// receive.
	buf []byte
	mr  *verbs.MR
}

// scaleQP is a queue pair and its connection. It belongs to the goroutine that makes it, and
// then to the poller of its CQ, whose completions have it as their Context.
type scaleQP struct {
	qp     *verbs.QP
	conn   *cm.Conn
	index  int // in the pool
	sends  int // posted
	signal int // how many sends share a completion

	source, sink [1]verbs.SGE // of its messages
}

// newScaleEnd prepares everything for n queue pairs but these. All of its memory
// is touched, so that it does not count as theirs.
func newScaleEnd(n int, shape scaleShape) (*scaleEnd, error) {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return nil, fmt.Errorf("opening the RNIC: %w", err)
	}
	e := &scaleEnd{scaleShape: shape, nic: nic, pool: make([]scaleQP, n), buf: make([]byte, 2*scaleSize*n)}
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
	e.cq = make([]*verbs.CQ, min(e.cqs, n))
	for i := range e.cq {
		share := (n + len(e.cq) - 1) / len(e.cq)
		if e.cq[i], err = e.nic.CreateCQ(verbs.CQConfig{Entries: (e.sendDepth + e.recvDepth) * share}); err != nil {
			return fmt.Errorf("creating a completion queue: %w", err)
		}
	}
	return nil
}

// source and sink are where queue pair i has its messages in buf.
func (e *scaleEnd) source(i int) int { return 2 * i * scaleSize }
func (e *scaleEnd) sink(i int) int   { return e.source(i) + scaleSize }

// create makes queue pair i, with its Receive Queue full.
func (e *scaleEnd) create(i int) (*verbs.QP, error) {
	q := &e.pool[i]
	cq := e.cq[i%len(e.cq)]
	qp, err := e.nic.CreateQP(verbs.QPConfig{
		PD: e.pd, SendCQ: cq, RecvCQ: cq, Context: q,
		SendDepth: e.sendDepth, RecvDepth: e.recvDepth, SendSGE: e.sges, RecvSGE: e.sges,
	})
	if err != nil {
		return nil, fmt.Errorf("creating a queue pair: %w", err)
	}
	*q = scaleQP{
		qp: qp, index: i, signal: e.sendDepth / 2,
		source: [1]verbs.SGE{e.mr.SGE(e.source(i), scaleSize)},
		sink:   [1]verbs.SGE{e.mr.SGE(e.sink(i), scaleSize)},
	}
	for range e.recvDepth {
		if err := q.receive(); err != nil {
			return nil, err
		}
	}
	return qp, nil
}

// receive posts a Receive.
func (q *scaleQP) receive() error {
	recv := [1]verbs.Recv{{SGL: q.sink[:]}}
	_, err := q.qp.PostRecv(recv[:]...)
	return err
}

// send posts a Send of the queue pair's own message.
func (q *scaleQP) send() error { return q.post(q.source[:]) }

// echo posts a Send of the message that it received.
func (q *scaleQP) echo() error { return q.post(q.sink[:]) }

// post posts a Send. Some are signaled, so that the Send Queue never fills up.
func (q *scaleQP) post(sgl []verbs.SGE) error {
	send := [1]verbs.Request{{SGL: sgl}}
	if q.sends++; q.sends%q.signal != 0 {
		send[0].Flags = verbs.Unsignaled
	}
	_, err := q.qp.PostSend(send[:]...)
	return err
}

// reaper takes completions of one CQ.
func (e *scaleEnd) reaper(cq *verbs.CQ) endpoint.Reaper {
	return endpoint.NewReaper(cq, e.waiting, func() error { return endpoint.ErrDisconnected })
}

// scaleMemory is the memory of a process.
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
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	next.Store(int64(from))
	begin := time.Now()
	for worker := range scaleDialers {
		group.Go(func() error {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= to {
					break
				}
				if err := connect(ctx, i); err != nil {
					return err
				}
				if worker == 0 {
					p.Show(what, uint64(i+1-from), uint64(to-from))
				}
			}
			return nil
		})
	}
	err := group.Wait()
	if err == nil {
		err = wait()
	}
	return float64(to-from) / time.Since(begin).Seconds(), err
}
