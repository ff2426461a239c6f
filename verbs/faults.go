package verbs

import (
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/instrument"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// FaultInjector makes things go wrong on purpose: a *fault.Injector of package lab/fault.
type FaultInjector interface{ instrument.FaultInjector }

// Tap captures what goes over streams: a *tap.Tap of package lab/tap.
type Tap interface{ instrument.Tap }

// instrument is the stream of m as the queue pair is to run it.
func (q *QP) instrument(m *ModifyQP) (*mpa.Stream, error) {
	s := m.Stream.mpa()
	plain := q.rnic.faults == nil && q.rnic.tap == nil
	if plain || s == nil || s.Conn == nil || m.Next != StateRTS || q.State() != StateIdle {
		return s, nil
	}
	for _, between := range []instrument.Streams{q.rnic.tap, q.rnic.faults} { // the tap sees what the faults have made
		if between == nil {
			continue
		}
		if err := between.Stream(q.ID(), s, len(m.LastMessage)); err != nil {
			return nil, planned(wr.ErrInsufficientResources, err)
		}
	}
	return s, nil
}

// watchesPosts reports whether a plan has to be asked about posts.
func (r *RNIC) watchesPosts() bool {
	if r.faults == nil {
		return false
	}
	posts, _ := r.faults.Watches()
	return posts
}

// postSendFaulty is PostSend, one by one, each with what the plan makes of it.
func (q *QP) postSendFaulty(reqs []Request) (n int, err error) {
	for i := range reqs {
		r := &reqs[i]
		var s wr.STag
		if len(r.SGL) > 0 {
			s = r.SGL[0].STag
		}
		if err := q.rnic.faults.Post(q.ID(), r.Op, s); err != nil {
			about := q.about()
			about.STag, about.HasSTag, about.Asked = asks(r)
			return n, refused(planned(wr.ErrQueueFull, err), r.Op.Words(), "verbs draft 9.3.1.1", about)
		}
		k, err := q.q.PostSend(reqs[i])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// postRecvFaulty is PostRecv likewise.
func (q *QP) postRecvFaulty(reqs []Recv) (n int, err error) {
	for i := range reqs {
		var s wr.STag
		if len(reqs[i].SGL) > 0 {
			s = reqs[i].SGL[0].STag
		}
		if err := q.rnic.faults.Post(q.ID(), wr.OpRecv, s); err != nil {
			about := q.about()
			about.Asked = octets(reqs[i].SGL)
			return n, refused(planned(wr.ErrQueueFull, err), wr.OpRecv.Words(), "verbs draft 9.3.1.2", about)
		}
		k, err := q.q.PostRecv(reqs[i])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// planned refuses a verb by the plan, whose err is.
func planned(code ImmediateError, err error) error {
	remedy := "take that line out of the plan"
	if errors.Is(err, instrument.ErrUnplugged) {
		remedy = "plug it in: Injector.Plug, or rnic nic quiet"
	}
	return &Reason{Err: fmt.Errorf("%w: %w", code, err), Remedy: remedy}
}

// faultyCompletions is what the plan makes of completions; nil without one.
func (r *RNIC) faultyCompletions() *cq.Faults {
	if r.faults == nil {
		return nil
	}
	return &cq.Faults{
		Watches: func() bool {
			_, completions := r.faults.Watches()
			return completions
		},
		Of: func(e wr.Completion) (time.Duration, bool) { return r.faults.Complete(e.QP, e.Op) },
	}
}
