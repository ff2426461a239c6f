package nd2

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/verbs"
)

// QueuePair exchanges data with a remote peer (IND2QueuePair). It is connected
// once: after the connection has ended, requests are refused with
// ErrConnectionInvalid, and Receives complete with ErrCanceled.
type QueuePair struct {
	a       *Adapter
	v       *verbs.QP
	cfg     queuePairConfig // as created
	context any
	extra   int // completions of verbs beyond sendDepth
	bound   bindings
	inlines *verbs.MR // room for inlineSize octets a slot; nil: none. It stays, for a Send beside Close
	inlined bool      // it is registered; guarded by recvMu

	// taken says that a connector has the queue pair.
	taken   atomic.Bool
	remains remains
	counted *inventory.Object

	// open says that requests may be posted: from CompleteConnect or Accept
	// until Disconnect or Flush. How a connection ends otherwise verbs knows.
	open atomic.Bool

	// mu makes posts to the Initiator queue one at a time. Within it the mu of
	// a window may be taken.
	mu      sync.Mutex
	sends   *ring                // guarded by mu but for what ring says, as all below
	parts   [parts]verbs.Request // of the request that is being posted
	silent  int                  // requests posted since the last that completes in verbs
	list    []verbs.SGE          // its list
	bindArg verbs.BindRequest

	// recvMu makes posts to the Receive queue one at a time.
	recvMu   sync.Mutex
	receives *ring       // guarded by recvMu but for what ring says; nil with a shared receive queue
	recvList []verbs.SGE // guarded by recvMu, as below
	after    *verbs.QP   // where Receives are canceled after the end; made when needed
	gone     bool        // by Close
	lost     bool        // with the adapter, before Close
}

func newQueuePair(a *Adapter, c queuePairConfig) (*QueuePair, error) {
	q := &QueuePair{
		a: a, cfg: c, context: c.context,
		list: make([]verbs.SGE, max(c.initiatorSge, 1)), recvList: make([]verbs.SGE, c.receiveSge),
	}
	q.remains.init(q)
	q.sends = newRing(q, c.sendDepth)
	elements := max(c.sendDepth, 1) * parts
	q.extra = elements - c.sendDepth + marks + 1
	vc := verbs.QPConfig{
		PD: a.pd, SendCQ: c.initiator.v, RecvCQ: c.receive.v,
		SendDepth: elements, RecvDepth: max(c.receiveDepth, 1),
		SendSGE: max(c.initiatorSge, 1), WriteSGE: max(c.initiatorSge, 1), RecvSGE: max(c.receiveSge, 1),
		NoReads:       true, // until claim
		ReadIntoLocal: true, // a sink is not the peer's to write to
		ReadSGE:       max(c.initiatorSge, 1),
		CloseTimeout:  a.provider.CM.CloseTimeout,
	}
	if c.srq != nil {
		// A Send that finds no Receive there waits (IND2Adapter,
		// CreateQueuePairWithSrq); elsewhere it ends the connection
		// (ND-Receive-M2).
		vc.SRQ, vc.GracefulReceive = c.srq.v, true
	} else {
		q.receives = newRing(q, c.receiveDepth)
	}
	if err := q.makeInlines(); err != nil {
		return nil, err
	}
	if err := c.initiator.grow(q.extra); err != nil {
		q.freeInlines()
		return nil, err
	}
	var err error
	if q.v, err = a.nic.CreateQP(vc); err != nil {
		_ = c.initiator.grow(-q.extra)
		q.freeInlines()
		return nil, explain(err)
	}
	if err := a.adopt(q); err != nil {
		_ = q.v.Destroy()
		_ = c.initiator.grow(-q.extra)
		q.freeInlines()
		return nil, err
	}
	q.counted = inventory.Open(a.counted, "nd2 queue pair", uint32(q.v.ID()), inventory.CounterFunc(q.count))
	return q, nil
}

// count is an inventory.CounterFunc.
func (q *QueuePair) count(tell inventory.Tell) {
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	if q.inlined {
		tell(1, "region of inline octets")
	}
	if q.after != nil {
		tell(1, "queue pair of verbs in which Receives are canceled")
	}
	if !q.gone && !q.lost { // a window that has found no successor stays
		tell(len(q.bound.list()), "bound window")
	}
}

// makeInlines registers room for inline octets, as much as every slot could need.
func (q *QueuePair) makeInlines() error {
	if q.cfg.inline == 0 || q.cfg.sendDepth == 0 {
		return nil
	}
	var err error
	q.inlines, err = q.a.pd.Register(make([]byte, len(q.sends.slots)*q.cfg.inline), verbs.LocalRead)
	q.inlined = err == nil
	return explain(err)
}

func (q *QueuePair) freeInlines() {
	if q.inlined {
		_ = q.inlines.Deregister()
		q.inlined = false
	}
}

// adopt makes q's requests and completions find it.
func (a *Adapter) adopt(q *QueuePair) error {
	for _, r := range []*ring{q.sends, q.receives} {
		if r == nil {
			continue
		}
		n, ok := a.owners.Add(&owner{ring: r})
		if !ok {
			if r == q.receives {
				a.disown(q.sends.id)
			}
			return refuse(ErrInsufficientResources, "too many queue pairs: close some")
		}
		r.id = uint64(n) << ownerShift
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.qps[q.v.ID()] = q
	return nil
}

// claim gives the queue pair to a connector, with these limits on Reads.
func (q *QueuePair) claim(a *Adapter, inbound, outbound int) error {
	if q == nil || q.a != a {
		return refuse(ErrInvalidParameter1, "the queue pair is not this adapter's")
	}
	if !q.taken.CompareAndSwap(false, true) {
		return refuse(ErrConnectionActive, "the queue pair is connected, or was")
	}
	ird, ord := limit(inbound, a.info.MaxInboundReadLimit), limit(outbound, a.info.MaxOutboundReadLimit)
	if err := q.v.Modify(verbs.ModifyQP{Next: verbs.StateIdle, IRD: &ird, ORD: &ord}); err != nil {
		q.taken.Store(false)
		return explain(err)
	}
	return nil
}

// limit is a limit on Reads: what is more than the adapter has is cut silently.
func limit(want, most int) int { return max(0, min(want, most)) }

// Flush cancels all requests of this queue pair, and of no other that uses the
// same completion queues: they complete with ErrCanceled, perhaps only after Flush
// has returned (ND-Flush-R1, M1, M4).
//
// It ends the connection: an iWARP stream cannot lose a request and go on. The
// document leaves no other way, since a result with an error, which ErrCanceled
// is, means that the connection is terminated (ND-Send-M2), and Flush is there to
// stop before disconnecting (ND-Flush-M3). The peer receives what was sent before,
// then a Terminate Message. A queue pair that is not connected yet can be connected
// afterwards.
func (q *QueuePair) Flush() error {
	if q.v.State() == verbs.StateRTS {
		q.open.Store(false)
		_ = q.v.Modify(verbs.ModifyQP{Next: verbs.StateTerminate}) // refused if it ends by itself: that flushes too
		return nil
	}
	q.recvMu.Lock() // not into the moment of another Flush
	defer q.recvMu.Unlock()
	if q.v.Modify(verbs.ModifyQP{Next: verbs.StateError}) == nil && !q.taken.Load() {
		return explain(q.v.Modify(verbs.ModifyQP{Next: verbs.StateIdle}))
	}
	return nil // what has ended is flushed
}

// disconnect ends the connection: in order if everything posted has been sent and
// what the peer reads was sent, after a short while for that; else the requests are
// canceled (ND-Flush-M2). It returns when the connection is gone, or ctx ends. That
// resets a connection whose requests are under way; a close that has begun goes on
// (verbs draft figures 9 and 11).
func (q *QueuePair) disconnect(ctx context.Context) error {
	q.open.Store(false)
	linger, cancel := context.WithTimeout(ctx, lingering)
	defer cancel()
	next := verbs.StateClosing
	if q.v.Drain(linger) != nil {
		if ctx.Err() != nil {
			_ = q.v.Modify(verbs.ModifyQP{Next: verbs.StateError}) // refused as below
			return canceled(ctx)
		}
		next = verbs.StateTerminate
	}
	_ = q.v.Modify(verbs.ModifyQP{Next: next}) // refused if it has ended, or ends at this moment
	select {
	case <-q.v.Done():
		return nil
	case <-ctx.Done():
		return canceled(ctx)
	}
}

// closed reports whether Close has been called.
func (q *QueuePair) closed() bool {
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	return q.gone
}

// Close releases the queue pair. A connection is disconnected. When it returns
// nothing touches the memory of its requests; results that were not retrieved still
// can be. Windows that are bound to it are not any more. Errors: ErrInvalidHandle
// (it is closed), ErrDeviceRemoved.
func (q *QueuePair) Close() error {
	if q.closed() {
		return refuse(ErrInvalidHandle, "the queue pair is closed")
	}
	if q.v.State() == verbs.StateRTS {
		_ = q.disconnect(context.Background()) // bounded by the close timeout of verbs
	}
	q.open.Store(false)
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	if q.gone {
		return refuse(ErrInvalidHandle, "the queue pair is closed")
	}
	_ = q.v.Modify(verbs.ModifyQP{Next: verbs.StateError}) // what waits in Idle is canceled; refused elsewhere
	for _, w := range q.bound.list() {
		w.leave(q)
	}
	if err := q.v.Destroy(); err != nil {
		return explain(err)
	}
	if q.after != nil {
		_ = q.after.Destroy()
	}
	q.gone = true
	q.freeInlines()
	q.retire()
	q.after = nil
	q.counted.Close()
	return nil
}
