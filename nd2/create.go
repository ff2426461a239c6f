package nd2

import (
	"context"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/verbs"
)

// CreateCompletionQueue makes a completion queue for queueDepth results. It has to
// have room for all requests of its queue pairs that can be outstanding. Errors:
// ErrInvalidParameter3 (the depth), ErrInsufficientResources, ErrDeviceRemoved.
func (a *Adapter) CreateCompletionQueue(queueDepth int) (*CompletionQueue, error) {
	if queueDepth < 1 || queueDepth > maxCQDepth {
		return nil, refuse(ErrInvalidParameter3, "a completion queue of %d entries, at least 1 and at most %d", queueDepth, maxCQDepth)
	}
	c := &CompletionQueue{a: a, depth: queueDepth, gone: make(chan struct{}), vacant: make(chan struct{}, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cqs == nil {
		return nil, refuse(ErrDeviceRemoved, "the adapter is closed")
	}
	var err error
	if c.v, err = a.nic.CreateCQ(verbs.CQConfig{Entries: queueDepth}); err != nil {
		return nil, explain(err)
	}
	a.cqs[c.v.ID()] = c
	c.counted = inventory.Open(a.counted, "nd2 completion queue", uint32(c.v.ID()), inventory.CounterFunc(c.count))
	return c, nil
}

// CreateMemoryRegion makes a region without memory; see MemoryRegion.Register.
func (a *Adapter) CreateMemoryRegion() (*MemoryRegion, error) { return &MemoryRegion{a: a}, nil }

// CreateMemoryWindow makes a window that is not bound; see QueuePair.Bind. Errors:
// ErrInsufficientResources, ErrDeviceRemoved.
func (a *Adapter) CreateMemoryWindow() (*MemoryWindow, error) {
	v, err := a.pd.AllocateWindow()
	if err != nil {
		return nil, explain(err)
	}
	return &MemoryWindow{a: a, v: v}, nil
}

// CreateSharedReceiveQueue makes a queue of receives for several queue pairs:
// queueDepth of them may be outstanding, with lists of up to maxRequestSge entries.
// SharedReceiveQueue.Notify returns when fewer than notifyThreshold are; 0 turns
// that off. Errors: ErrInvalidParameter3 (the depth), ErrInvalidParameter4 (the
// lists), ErrInvalidParameter5 (the threshold), ErrNotSupported,
// ErrInsufficientResources, ErrDeviceRemoved.
func (a *Adapter) CreateSharedReceiveQueue(queueDepth, maxRequestSge, notifyThreshold int) (*SharedReceiveQueue, error) {
	switch {
	case a.info.MaxSharedReceiveQueueDepth == 0:
		return nil, refuse(ErrNotSupported, "this adapter has no shared receive queues")
	case queueDepth < 1 || queueDepth > a.info.MaxSharedReceiveQueueDepth:
		return nil, refuse(ErrInvalidParameter3, "a shared receive queue of %d, at least 1 and at most %d", queueDepth, a.info.MaxSharedReceiveQueueDepth)
	case maxRequestSge < 0 || maxRequestSge > maxSge:
		return nil, refuse(ErrInvalidParameter4, "lists of %d entries, at most %d", maxRequestSge, maxSge)
	case notifyThreshold < 0 || notifyThreshold > queueDepth:
		return nil, refuse(ErrInvalidParameter5, "a threshold of %d Receives, at most %d: the depth", notifyThreshold, queueDepth)
	}
	return newSRQ(a, queueDepth, maxRequestSge, notifyThreshold)
}

// queuePairConfig are the parameters of CreateQueuePair.
type queuePairConfig struct {
	receive, initiator       *CompletionQueue
	srq                      *SharedReceiveQueue
	context                  any
	receiveDepth, sendDepth  int
	receiveSge, initiatorSge int
	inline                   int
}

// CreateQueuePair makes a queue pair. Results of Receives go to receive, all
// others to initiator, which may be the same. At most receiveQueueDepth Receives and
// initiatorQueueDepth other requests may be outstanding, with lists of up to
// maxReceiveRequestSge and maxInitiatorRequestSge entries (of a Read up to
// MaxReadSge), and up to inlineDataSize octets inline. context comes back in each
// result.
//
// Errors: ErrInvalidParameter2 and ErrInvalidParameter3 (a completion queue is not
// this adapter's), ErrInvalidParameter5 to ErrInvalidParameter9 (a number is out of
// range, in the order of NetworkDirect's parameters), ErrInsufficientResources,
// ErrDeviceRemoved.
func (a *Adapter) CreateQueuePair(receive, initiator *CompletionQueue, context any,
	receiveQueueDepth, initiatorQueueDepth, maxReceiveRequestSge, maxInitiatorRequestSge, inlineDataSize int,
) (*QueuePair, error) {
	if err := a.owns(receive, initiator); err != nil {
		return nil, err
	}
	switch {
	case receiveQueueDepth < 0 || receiveQueueDepth > maxReceive:
		return nil, refuse(ErrInvalidParameter5, "%d Receives, at most %d", receiveQueueDepth, maxReceive)
	case initiatorQueueDepth < 0 || initiatorQueueDepth > maxInitiator:
		return nil, refuse(ErrInvalidParameter6, "%d requests, at most %d", initiatorQueueDepth, maxInitiator)
	case maxReceiveRequestSge < 0 || maxReceiveRequestSge > maxSge:
		return nil, refuse(ErrInvalidParameter7, "lists of %d entries, at most %d", maxReceiveRequestSge, maxSge)
	case maxInitiatorRequestSge < 0 || maxInitiatorRequestSge > maxSge:
		return nil, refuse(ErrInvalidParameter8, "lists of %d entries, at most %d", maxInitiatorRequestSge, maxSge)
	case inlineDataSize < 0 || inlineDataSize > maxInline:
		return nil, refuse(ErrInvalidParameter9, "%d octets inline, at most %d", inlineDataSize, maxInline)
	}
	return newQueuePair(a, queuePairConfig{
		receive: receive, initiator: initiator, context: context,
		receiveDepth: receiveQueueDepth, sendDepth: initiatorQueueDepth,
		receiveSge: maxReceiveRequestSge, initiatorSge: maxInitiatorRequestSge, inline: inlineDataSize,
	})
}

// CreateQueuePairWithSrq is CreateQueuePair for a queue pair whose Receives come
// from srq. Unlike others it makes a peer wait that sends while there is none.
// Errors: ErrInvalidParameter2 to ErrInvalidParameter4 (a queue is not this
// adapter's), ErrInvalidParameter6 to ErrInvalidParameter8 (a number is out of
// range), ErrInsufficientResources, ErrDeviceRemoved.
func (a *Adapter) CreateQueuePairWithSrq(receive, initiator *CompletionQueue, srq *SharedReceiveQueue, context any,
	initiatorQueueDepth, maxInitiatorRequestSge, inlineDataSize int,
) (*QueuePair, error) {
	if err := a.owns(receive, initiator); err != nil {
		return nil, err
	}
	switch {
	case srq == nil || srq.a != a:
		return nil, refuse(ErrInvalidParameter4, "the shared receive queue is not this adapter's")
	case initiatorQueueDepth < 0 || initiatorQueueDepth > maxInitiator:
		return nil, refuse(ErrInvalidParameter6, "%d requests, at most %d", initiatorQueueDepth, maxInitiator)
	case maxInitiatorRequestSge < 0 || maxInitiatorRequestSge > maxSge:
		return nil, refuse(ErrInvalidParameter7, "lists of %d entries, at most %d", maxInitiatorRequestSge, maxSge)
	case inlineDataSize < 0 || inlineDataSize > maxInline:
		return nil, refuse(ErrInvalidParameter8, "%d octets inline, at most %d", inlineDataSize, maxInline)
	}
	return newQueuePair(a, queuePairConfig{
		receive: receive, initiator: initiator, srq: srq, context: context,
		sendDepth: initiatorQueueDepth, initiatorSge: maxInitiatorRequestSge, inline: inlineDataSize,
	})
}

// owns refuses completion queues for a queue pair that are not this adapter's.
func (a *Adapter) owns(receive, initiator *CompletionQueue) error {
	switch {
	case receive == nil || receive.a != a:
		return refuse(ErrInvalidParameter2, "the receive completion queue is not this adapter's")
	case initiator == nil || initiator.a != a:
		return refuse(ErrInvalidParameter3, "the initiator completion queue is not this adapter's")
	}
	return nil
}

// CreateConnector makes a connector, which connects one queue pair once.
func (a *Adapter) CreateConnector() (*Connector, error) {
	c := &Connector{a: a}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// CreateListener makes a listener. Errors: ErrDeviceRemoved.
func (a *Adapter) CreateListener() (*Listener, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners == nil {
		return nil, refuse(ErrDeviceRemoved, "the adapter is closed")
	}
	l := &Listener{a: a}
	a.listeners[l] = struct{}{}
	return l, nil
}
