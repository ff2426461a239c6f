package nd2

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/verbs"
)

// SharedReceiveQueue is Receives for several queue pairs, which take them as
// messages arrive (IND2SharedReceiveQueue). Their results go to the receive
// completion queue of the queue pair that took them.
type SharedReceiveQueue struct {
	a      *Adapter
	v      *verbs.SRQ
	id     uint64 // in place for a work request's ID
	maxSge int

	mu        sync.Mutex
	contexts  []any // by slot; guarded by mu, as all below
	free      []uint32
	list      []verbs.SGE
	depth     int
	posted    int // not yet retrieved
	threshold int
	bell      chan struct{} // of those that wait in Notify; nil: none does
	failure   Status
}

func newSRQ(a *Adapter, depth, sge, threshold int) (*SharedReceiveQueue, error) {
	s := &SharedReceiveQueue{a: a, maxSge: sge, list: make([]verbs.SGE, sge), depth: depth, threshold: threshold}
	s.extend(depth)
	number, ok := a.owners.Add(&owner{srq: s})
	if !ok {
		return nil, refuse(ErrInsufficientResources, "too many queues")
	}
	s.id = uint64(number)<<ownerShift | lastPart
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.srqs == nil {
		a.disown(s.id)
		return nil, refuse(ErrDeviceRemoved, "the adapter is closed")
	}
	var err error
	s.v, err = a.nic.CreateSRQ(verbs.SRQConfig{PD: a.pd, Depth: depth, SGE: max(sge, 1), Limit: threshold})
	if err != nil {
		a.disown(s.id)
		return nil, explain(err)
	}
	a.srqs[s.v.ID()] = s
	return s, nil
}

// extend makes slots for n Receives, with mu held or s not shared yet.
func (s *SharedReceiveQueue) extend(n int) {
	for i := len(s.contexts); i < n; i++ {
		s.contexts = append(s.contexts, nil)
		s.free = append(s.free, uint32(i))
	}
}

// Receive posts buffers for one message of any peer. Errors: ErrBufferOverflow (too
// many octets), ErrDataOverrun (too long a list), ErrNoMoreEntries (a Receive counts
// until its result is retrieved), ErrInvalidHandle (it is closed),
// ErrDeviceRemoved.
func (s *SharedReceiveQueue) Receive(requestContext any, sge []SGE) error {
	switch {
	case octets(sge) > verbs.MaxMessage:
		return ErrBufferOverflow
	case len(sge) > s.maxSge:
		return ErrDataOverrun
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failure == ErrCanceled:
		return ErrInvalidHandle
	case s.posted >= s.depth:
		return ErrNoMoreEntries
	}
	last := len(s.free) - 1
	at := s.free[last]
	s.contexts[at] = requestContext
	if _, err := s.v.PostRecv(verbs.Recv{ID: s.id | uint64(at), SGL: gather(s.list, sge)}); err != nil {
		s.contexts[at] = nil
		return explain(err)
	}
	s.free = s.free[:last]
	s.posted++
	return nil
}

// result translates a completion. The caller releases the place.
func (s *SharedReceiveQueue) result(c *verbs.Completion, out *Result) (p place, ok bool) {
	*out = Result{Status: receiveStatus(c.Status), BytesTransferred: c.Bytes, RequestType: RequestTypeReceive}
	if q := s.a.queuePair(c.QP); q != nil {
		out.QueuePairContext = q.context
		q.remains.translated()
	}
	at := uint32(c.ID & posMask)
	s.mu.Lock()
	defer s.mu.Unlock()
	out.RequestContext = s.contexts[at]
	s.contexts[at] = nil
	return place{srq: s, at: at}, true
}

// release says that the result of a Receive was retrieved.
func (s *SharedReceiveQueue) release(at uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, at)
	s.posted--
}

// Modify changes how many Receives may be outstanding, and the threshold of Notify;
// zero leaves one as it is. Errors: ErrInvalidParameter, ErrBufferOverflow (more are
// outstanding; nothing has changed), ErrInvalidHandle, ErrDeviceRemoved.
func (s *SharedReceiveQueue) Modify(queueDepth, notifyThreshold int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	depth, threshold := s.depth, s.threshold
	if queueDepth != 0 {
		depth = queueDepth
	}
	if notifyThreshold != 0 {
		threshold = notifyThreshold
	}
	switch {
	case depth < 1 || depth > s.a.info.MaxSharedReceiveQueueDepth || threshold < 0 || threshold > depth:
		return refuse(ErrInvalidParameter, "%d Receives, at least 1 and at most %d, with a threshold of %d, at most those", depth, s.a.info.MaxSharedReceiveQueueDepth, threshold)
	case depth < s.posted:
		return refuse(ErrBufferOverflow, "%d Receives are outstanding", s.posted)
	}
	if err := s.v.Modify(verbs.ModifySRQ{Depth: &depth, Limit: &threshold}); err != nil {
		return explain(err)
	}
	s.depth, s.threshold = depth, threshold
	s.extend(depth)
	return nil
}

// Notify waits until fewer Receives wait for a message than the threshold says; at once
// if that is so now. Errors: ErrCanceled if ctx ends or the queue is closed;
// ErrUnsuccessful if it failed; ErrInvalidDeviceState without a threshold;
// ErrDeviceRemoved.
func (s *SharedReceiveQueue) Notify(ctx context.Context) error {
	bell, err := s.arm()
	if bell == nil || err != nil {
		return err
	}
	select {
	case <-bell:
	case <-ctx.Done():
		return canceled(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure.Err()
}

// arm asks for an event; without a bell there is no need to wait.
func (s *SharedReceiveQueue) arm() (chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failure != Success:
		return nil, s.failure
	case s.threshold == 0:
		return nil, refuse(ErrInvalidDeviceState, "the queue has no threshold")
	}
	if err := s.v.Modify(verbs.ModifySRQ{Rearm: true}); err != nil {
		return nil, explain(err)
	}
	if s.low() {
		return nil, nil
	}
	if s.bell == nil {
		s.bell = make(chan struct{})
	}
	return s.bell, nil
}

// low reports whether there are fewer Receives than the threshold says that no message has taken, with mu held. What
// has been taken before the event was asked for raises none, and its result may not have been retrieved.
func (s *SharedReceiveQueue) low() bool {
	n := s.v.Stats()
	return n.Posted-n.Taken < uint64(s.threshold)
}

// limit is told of the event. One of before, since when Receives were posted, is not for those that wait now.
func (s *SharedReceiveQueue) limit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bell == nil {
		return
	}
	_ = s.v.Modify(verbs.ModifySRQ{Rearm: true}) // refused if it is closed, which rings too
	if s.low() {
		s.ring()
	}
}

// ring wakes the waiters, with mu held.
func (s *SharedReceiveQueue) ring() {
	if s.bell != nil {
		close(s.bell)
		s.bell = nil
	}
}

// fail makes the queue unusable.
func (s *SharedReceiveQueue) fail(status Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = status
	s.ring()
}

// Close destroys the queue; Receives that no message took are lost. When it returns
// nothing touches their memory. Errors: ErrDeviceBusy (a queue pair uses it),
// ErrInvalidHandle (it is closed), ErrDeviceRemoved.
func (s *SharedReceiveQueue) Close() error {
	if err := s.v.Destroy(); err != nil {
		return explain(err)
	}
	s.fail(ErrCanceled)
	s.retire()
	return nil
}

// retire forgets the queue once the results of its Receives are retrieved, which may
// be in any completion queue.
func (s *SharedReceiveQueue) retire() {
	s.a.mu.Lock()
	delete(s.a.srqs, s.v.ID())
	cqs := slices.Collect(maps.Values(s.a.cqs))
	s.a.mu.Unlock()
	s.retireFrom(cqs)
}

// retireFrom is retire where results can be in those queues only.
func (s *SharedReceiveQueue) retireFrom(cqs []*CompletionQueue) {
	r := &retirement{forget: func() { s.a.disown(s.id) }}
	r.left.Store(int32(len(cqs)) + 1)
	for _, c := range cqs {
		c.retire(r)
	}
	r.over()
}
