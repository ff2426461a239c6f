package uppertester

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Service is an upper tester over an RNIC of its own. Make one with New.
type Service struct {
	host   string
	rnic   *verbs.RNIC
	events *eventLog
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // what Listen, Dial and Ping began

	mu      sync.Mutex
	last    int // the number given last; guarded by mu, as all below
	pds     map[int]*verbs.PD
	cqs     map[int]*verbs.CQ
	srqs    map[int]*verbs.SRQ
	qps     map[int]*end
	regions map[int]*verbs.MR
	windows map[int]*verbs.MW
}

// end is a queue pair and its connection.
type end struct {
	qp *verbs.QP
	// conn is what came of Listen or Dial; with room for one.
	conn chan Connection
}

var _ Tester = (*Service)(nil)

// numbersFrom is where the numbers that a Service gives out begin: above those
// that a case chooses.
const numbersFrom = 1000

// New opens an RNIC. Listen listens on an address of host.
func New(host string) (*Service, error) {
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return nil, fmt.Errorf("uppertester: %w", err)
	}
	s := &Service{
		host: host, rnic: rnic, events: newEventLog(), last: numbersFrom,
		pds: map[int]*verbs.PD{}, cqs: map[int]*verbs.CQ{}, srqs: map[int]*verbs.SRQ{},
		qps: map[int]*end{}, regions: map[int]*verbs.MR{}, windows: map[int]*verbs.MW{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := rnic.SetEventHandler(s.events.add); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("uppertester: %w", err)
	}
	return s, nil
}

// Close closes the RNIC, and waits for all that runs.
func (s *Service) Close() error {
	s.cancel()
	err := s.rnic.Close()
	s.wg.Wait()
	return err
}

// Open creates a queue pair, and the PD, CQs and S-RQ that are new.
func (s *Service) Open(a OpenArgs, r *Opened) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := verbs.QPConfig{
		RQLimit: a.RQLimit, SendDepth: a.SendDepth, RecvDepth: a.RecvDepth,
		SendSGE: a.SendSGE, WriteSGE: a.WriteSGE, RecvSGE: a.RecvSGE,
		IRD: a.IRD, ORD: a.ORD, NoReads: a.NoReads,
		NoInboundRead: a.NoInboundRead, NoInboundWrite: a.NoInboundWrite,
		NoBind: a.NoBind, Privileged: a.Privileged, GracefulReceive: a.GracefulReceive,
		Extensions: a.Extensions, NoInboundAtomic: a.NoInboundAtomic,
		CloseTimeout: a.CloseTimeout,
	}
	if a.SendCQ == 0 && a.RecvCQ == 0 {
		a.SendCQ = s.number()
		a.RecvCQ = a.SendCQ
	}
	var err error
	if c.PD, err = s.pd(a.PD); err != nil {
		return err
	}
	if c.SendCQ, err = s.cq(a.SendCQ, a.CQEntries); err != nil {
		return err
	}
	if c.RecvCQ, err = s.cq(a.RecvCQ, a.CQEntries); err != nil {
		return err
	}
	if c.SRQ, err = s.srq(a); err != nil {
		return err
	}
	qp, err := s.rnic.CreateQP(c)
	if err != nil {
		return err
	}
	*r = Opened{QP: s.number(), SendCQ: a.SendCQ, RecvCQ: a.RecvCQ, ID: qp.ID()}
	s.qps[r.QP] = &end{qp: qp, conn: make(chan Connection, 1)}
	return nil
}

// number is a new number, with mu held, as in the three functions below.
func (s *Service) number() int {
	s.last++
	return s.last
}

func (s *Service) pd(n int) (*verbs.PD, error) {
	if p := s.pds[n]; p != nil {
		return p, nil
	}
	p, err := s.rnic.AllocatePD()
	if err == nil {
		s.pds[n] = p
	}
	return p, err
}

func (s *Service) cq(n, entries int) (*verbs.CQ, error) {
	if c := s.cqs[n]; c != nil {
		return c, nil
	}
	c, err := s.rnic.CreateCQ(verbs.CQConfig{Entries: entries})
	if err == nil {
		s.cqs[n] = c
	}
	return c, err
}

func (s *Service) srq(a OpenArgs) (*verbs.SRQ, error) {
	if q := s.srqs[a.SRQ]; q != nil || a.SRQ == 0 {
		return q, nil
	}
	pd, err := s.pd(a.SRQPD)
	if err != nil {
		return nil, err
	}
	q, err := s.rnic.CreateSRQ(verbs.SRQConfig{PD: pd, Depth: a.SRQDepth, Limit: a.SRQLimit})
	if err == nil {
		s.srqs[a.SRQ] = q
	}
	return q, err
}

// Destroy destroys a queue pair.
func (s *Service) Destroy(qp int, _ *None) error {
	e, err := s.end(qp)
	if err != nil {
		return err
	}
	return e.qp.Destroy()
}

// end is the queue pair of a number.
func (s *Service) end(n int) (*end, error) { return find(s, s.qps, n, "queue pair") }

// find looks up a number.
func find[T any](s *Service, objects map[int]*T, n int, kind string) (*T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := objects[n]; o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("uppertester: there is no %s %d", kind, n)
}

// bounded is a context of the Service that ends after d.
func (s *Service) bounded(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, d)
}
