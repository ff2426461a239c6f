package nd2

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/handles"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/verbs"
)

// The limits of an adapter.
const (
	maxSge         = 32
	maxInline      = 1024
	maxInitiator   = 4096
	maxReceive     = 16384
	maxSRQ         = 65536
	maxCQDepth     = 1 << 21
	maxEntries     = 1 << 22 // of a completion queue of verbs
	maxRegion      = 1 << 36
	maxPrivateData = 508
	// parts is how many work requests a request may take: one may go ahead to fence it.
	parts = 2
)

// Adapter is an open adapter (IND2Adapter): an RNIC with one protection domain, so
// that its regions can be used on all of its queue pairs.
type Adapter struct {
	provider Provider
	nic      *verbs.RNIC
	pd       *verbs.PD
	info     AdapterInfo
	// fence is an STag that stays Invalid: invalidating it does nothing, when
	// all that was posted before is complete.
	fence  *verbs.MR
	owners handles.Table[owner]

	counted *inventory.Object

	mu      sync.RWMutex
	cqs     map[verbs.CQID]*CompletionQueue // guarded by mu, as all below
	srqs    map[verbs.SRQID]*SharedReceiveQueue
	qps     map[verbs.QPID]*QueuePair // until their results are retrieved
	regions map[uint32]MRFlags        // by token
	// listeners are those that were not closed.
	listeners map[*Listener]struct{}
}

func openAdapter(p *Provider) (*Adapter, error) {
	c := p.RNIC
	c.Limits.WR, c.Limits.SGE, c.Limits.WriteSGE, c.Limits.CQE = 1<<17, maxSge, maxSge, maxEntries
	nic, err := verbs.Open(c)
	if err != nil {
		return nil, explain(err)
	}
	a := &Adapter{
		provider: *p, nic: nic, cqs: map[verbs.CQID]*CompletionQueue{}, srqs: map[verbs.SRQID]*SharedReceiveQueue{},
		qps: map[verbs.QPID]*QueuePair{}, regions: map[uint32]MRFlags{}, listeners: map[*Listener]struct{}{},
	}
	if err := a.prepare(); err != nil {
		_ = nic.Close()
		return nil, explain(err)
	}
	a.counted = inventory.Open(nil, "nd2 adapter", nic.ID(), inventory.CounterFunc(a.count))
	return a, nil
}

// count is an inventory.CounterFunc. Queues are those that a result may be of.
func (a *Adapter) count(tell inventory.Tell) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	tell(a.owners.Len(), "queue")
	tell(len(a.qps), "queue pair")
	tell(len(a.cqs), "completion queue")
	tell(len(a.srqs), "shared receive queue")
	tell(len(a.listeners), "listener")
	tell(len(a.regions), "region")
}

func (a *Adapter) prepare() (err error) {
	if a.pd, err = a.nic.AllocatePD(); err != nil {
		return err
	}
	if a.fence, err = a.pd.AllocateRegion(verbs.AllocateConfig{PBL: 1}); err != nil {
		return err
	}
	if err = a.nic.SetEventHandler(a.event); err != nil {
		return err
	}
	q, err := a.nic.Query()
	a.info = AdapterInfo{
		InfoVersion: 1, AdapterID: adapterID,
		MaxRegistrationSize: maxRegion, MaxWindowSize: maxRegion,
		MaxInitiatorSge: maxSge, MaxReceiveSge: maxSge, MaxReadSge: maxSge,
		MaxTransferLength: verbs.MaxMessage, MaxInlineDataSize: maxInline,
		MaxInboundReadLimit: min(q.Limits.IRD, math.MaxInt16/2), MaxOutboundReadLimit: min(q.Limits.ORD, math.MaxInt16/2),
		MaxReceiveQueueDepth: maxReceive, MaxInitiatorQueueDepth: maxInitiator,
		MaxSharedReceiveQueueDepth: min(q.Limits.SRQWR, maxSRQ), MaxCompletionQueueDepth: maxCQDepth,
		LargeRequestThreshold: 64 << 10,
		MaxCallerData:         maxPrivateData, MaxCalleeData: maxPrivateData,
		AdapterFlags: AdapterFlagMultiEngine | AdapterFlagCQResize | AdapterFlagLoopbackConnections,
	}
	return err
}

// Query tells what the adapter can do.
func (a *Adapter) Query() AdapterInfo { return a.info }

// QueryAddressList lists the addresses of the adapter.
func (a *Adapter) QueryAddressList() ([]netip.Addr, error) { return a.provider.QueryAddressList() }

// Close closes the adapter and all it made; connections are reset. Who waits gets
// ErrDeviceRemoved or ErrCanceled, and every other method fails with
// ErrDeviceRemoved. A request to connect that was not answered is the connector's to
// close.
func (a *Adapter) Close() error {
	a.mu.Lock()
	listeners := slices.Collect(maps.Keys(a.listeners))
	a.listeners = nil // no other is made from here on
	a.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	if err := a.nic.Close(); err != nil {
		return explain(err)
	}
	a.mu.Lock()
	cqs, srqs := a.cqs, a.srqs
	a.cqs, a.srqs = nil, nil
	clear(a.regions) // gone with the RNIC
	a.mu.Unlock()
	for _, s := range srqs {
		s.fail(ErrDeviceRemoved)
		s.retireFrom(slices.Collect(maps.Values(cqs)))
	}
	a.mu.RLock()
	qps := slices.Collect(maps.Values(a.qps))
	a.mu.RUnlock()
	for _, q := range qps {
		q.abandon()
	}
	for _, c := range cqs {
		c.fail(ErrDeviceRemoved)
		c.settle()
	}
	a.counted.Close()
	return nil
}

// event handles what happens beside the requests. The others concern a queue pair
// whose requests tell.
func (a *Adapter) event(e verbs.Event) {
	a.mu.RLock()
	c, s := a.cqs[e.CQ], a.srqs[e.SRQ]
	a.mu.RUnlock()
	switch e.ID {
	case verbs.EventLLPCloseComplete:
		// A queue pair is connected once. In Idle it would take requests
		// again, and keep them.
		if q := a.nic.QP(e.QP); q != nil {
			_ = q.Modify(verbs.ModifyQP{Next: verbs.StateError})
		}
	case verbs.EventCQOverflow:
		if c != nil {
			c.fail(ErrBufferOverflow)
		}
	case verbs.EventCQOperation:
		if c != nil {
			c.fail(ErrInternalError)
		}
	case verbs.EventSRQLimit:
		if s != nil {
			s.limit()
		}
	case verbs.EventSRQCatastrophic:
		if s != nil {
			s.fail(ErrUnsuccessful)
		}
	default:
	}
}

func (a *Adapter) forgetCQ(c *CompletionQueue) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.cqs, c.v.ID())
}

// queuePair is the queue pair of a completion.
func (a *Adapter) queuePair(id verbs.QPID) *QueuePair {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.qps[id]
}

// sinks reports whether all regions of a Read's list may be written to by Reads.
// Tokens of no region are left to verbs. It takes no note of what is registered
// meanwhile: verbs checks again, for the local right to write, when it sends the request
// and when the answer comes.
func (a *Adapter) sinks(sge []SGE) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for i := range sge {
		flags, known := a.regions[sge[i].MemoryRegionToken]
		if known && len(sge[i].Buffer) > 0 && flags&(MRFlagRDMAReadSink|remoteWriteBit) == 0 {
			return false
		}
	}
	return true
}

// cmConfig is the configuration of a connection.
func (a *Adapter) cmConfig(private []byte) cm.Config {
	c := a.provider.CM
	c.PrivateData, c.IRD, c.ORD = private, 0, 0 // the queue pair's: see QueuePair.claim
	return c
}
