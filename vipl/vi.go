package vipl

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
)

// Vi is a Virtual Interface: a Send Queue and a Receive Queue, and the connection with
// one other VI (VI Architecture 2.1.1). Make one with Nic.CreateVi.
type Vi struct {
	nic   *Nic
	gone  chan struct{} // closed when it is destroyed
	group *group        // constant: what serves its connection

	mu         lockorder.Mutex[lockorder.VI]
	state      ViState      // guarded by mu, as all below
	attributes ViAttributes // as requested
	granted    grant        // what the connection has of them, if link is not nil
	send, recv workQueue
	attempt    *attempt // while StateConnectPending
	peer       *attempt // of the last ConnectPeerRequest, until it is waited for
	link       *link    // of the connection, until Disconnect has closed it
	deferred   []ErrorDescriptor
	destroyed  bool

	spans []endpoint.Span // scratch of feed

	counted *inventory.Object
}

// grant is what the two ends of a connection have agreed on.
type grant struct {
	transfer uint32 // MaxTransferSize
	crc      bool
}

// CreateVi is VipCreateVi (VI Architecture 9.3.1). sendCQ and recvCQ, which may be nil
// and may be the same, are where the completions of the two queues are told; callers
// then wait there.
//
// Errors: ErrInvalidParameter (the Nic is closed, no attributes, a CQ of another Nic or
// destroyed), ErrResource (MaxVI), ErrInvalidReliabilityLevel, ErrInvalidMTU,
// ErrInvalidQoS, ErrInvalidPtag, ErrInvalidRdmaRead (for an Unreliable VI).
func (n *Nic) CreateVi(attributes *ViAttributes, sendCQ, recvCQ *CQ) (*Vi, error) {
	if err := n.checkVi(attributes); err != nil {
		return nil, err
	}
	v := &Vi{nic: n, attributes: n.requested(attributes), gone: make(chan struct{})}
	v.group = groupOf(sendCQ, recvCQ)
	v.send.init(v, false, sendCQ)
	v.recv.init(v, true, recvCQ)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, errNicClosed
	case len(n.vis) >= int(n.attributes.MaxVI): // VA-3.3-M1
		return nil, resource("%d VIs are in use", len(n.vis))
	}
	for _, q := range []*CQ{sendCQ, recvCQ} {
		if q == nil {
			continue
		}
		if _, ok := n.cqs[q]; !ok { // VA-3.1-M1, VA-3.4-M1
			return nil, invalid("a completion queue that is not of this NIC, or destroyed")
		}
	}
	if err := n.usePtag(attributes.Ptag); err != nil {
		return nil, err
	}
	v.tie(1)
	n.vis[v] = struct{}{}
	v.counted = inventory.Open(n.counted, "vipl VI", nil, inventory.CounterFunc(v.count))
	if sendCQ == nil && recvCQ == nil {
		v.group.Inventory = v.counted
	}
	return v, nil
}

// count is an inventory.CounterFunc.
func (v *Vi) count(tell inventory.Tell) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.link != nil {
		tell(1, "connection")
	}
	if v.attempt != nil {
		tell(1, "attempt to connect")
	}
	for _, q := range []*workQueue{&v.send, &v.recv} {
		if !v.destroyed {
			tell(q.count(), "Descriptor")
		}
		tell(len(q.handlers), "handler")
		q.waitq.count(tell)
	}
}

// groupOf is what serves the connection of a VI: the group of the CQ for its receives, or
// for its sends if that is the only one, or one of its own.
func groupOf(sendCQ, recvCQ *CQ) *group {
	switch {
	case recvCQ != nil:
		return &recvCQ.group
	case sendCQ != nil:
		return &sendCQ.group
	}
	g := new(group)
	g.Serve(g)
	return g
}

// tie counts the users of the CQs up or down. The caller has nic.mu.
func (v *Vi) tie(by int) {
	for _, q := range []*CQ{v.send.cq, v.recv.cq} {
		if q != nil {
			q.users += by
			q.tie(v.group, by)
		}
	}
}

// checkVi checks attributes but for the protection tag.
func (n *Nic) checkVi(a *ViAttributes) error {
	switch {
	case a == nil:
		return invalid("no attributes")
	case a.ReliabilityLevel >= numLevels:
		return fmt.Errorf("%w: there is no %v", ErrInvalidReliabilityLevel, a.ReliabilityLevel)
	case a.MaxTransferSize == 0 || a.MaxTransferSize > n.attributes.MaxTransferSize:
		return fmt.Errorf("%w: %d, not within 1 to %d", ErrInvalidMTU, a.MaxTransferSize, n.attributes.MaxTransferSize)
	case a.QoS != 0:
		return fmt.Errorf("%w: there is only best effort, 0", ErrInvalidQoS)
	case a.EnableRdmaRead && !n.attributes.RDMAReadSupport[a.ReliabilityLevel]: // table 1
		return fmt.Errorf("%w at %v", ErrInvalidRdmaRead, a.ReliabilityLevel)
	}
	return nil
}

// requested are attributes with what the Nic asks for by itself.
func (n *Nic) requested(a *ViAttributes) ViAttributes {
	r := *a
	r.CRC = r.CRC || n.config.CRC || n.config.RequireCRC
	return r
}

// DestroyVi is VipDestroyVi (VI Architecture 9.3.2). Handlers that wait are cancelled.
// Errors: ErrInvalidParameter (destroyed already), ErrResource (not StateIdle, or there
// are Descriptors on its queues, VA-3.3-M2).
func (v *Vi) DestroyVi() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.destroyed {
		return errViGone
	}
	if t := On(v.state, EventDestroyVi); t.Code != Success {
		return inUse("the VI is %v: Disconnect it first", v.state)
	}
	if !v.send.empty() || !v.recv.empty() { // VA-5.1-M1
		return inUse("there are descriptors on the work queues: dequeue them")
	}
	v.destroy()
	return nil
}

// destroy ends the VI. The caller has mu.
func (v *Vi) destroy() {
	n := v.nic
	n.mu.Lock()
	defer n.mu.Unlock()
	v.destroyed = true
	v.deferred = nil
	close(v.gone)
	v.send.end()
	v.recv.end()
	n.ptags[v.attributes.Ptag]--
	v.tie(-1)
	delete(n.vis, v)
	v.counted.Close()
	for _, q := range []*CQ{v.send.cq, v.recv.cq} {
		if q != nil {
			q.forget(v)
		}
	}
}

// end disconnects and destroys the VI, whatever is on it.
func (v *Vi) end() {
	_ = v.Disconnect() // an error says that it is destroyed
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.destroyed {
		v.destroy()
	}
}

// QueryVi is VipQueryVi (VI Architecture 9.8.3). MaxTransferSize and CRC are what the
// connection has if there is one, until Disconnect. Errors: ErrInvalidParameter
// (destroyed).
func (v *Vi) QueryVi() (ViState, *ViAttributes, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.destroyed {
		return StateIdle, nil, errViGone
	}
	a := v.attributes
	a.MaxTransferSize = v.transfer()
	if v.link != nil {
		a.CRC = v.granted.crc
	}
	return v.state, &a, nil
}

// transfer is the maximum transfer size in force. The caller has mu.
func (v *Vi) transfer() uint32 {
	if v.link != nil {
		return v.granted.transfer
	}
	return v.attributes.MaxTransferSize
}

// SetViAttributes is VipSetViAttributes (VI Architecture 9.8.2), for a VI in StateIdle:
// a connection is made with the attributes, and keeps them. Errors: those of CreateVi;
// ErrInvalidParameter in another state, or if it is destroyed. Nothing has changed then.
func (v *Vi) SetViAttributes(attributes *ViAttributes) error {
	if err := v.nic.checkVi(attributes); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.destroyed {
		return errViGone
	}
	if t := On(v.state, EventSetViAttributes); t.Code != Success {
		return fmt.Errorf("%w: the VI is %v", t.Code, v.state)
	}
	v.nic.mu.Lock()
	defer v.nic.mu.Unlock()
	if err := v.nic.usePtag(attributes.Ptag); err != nil {
		return err
	}
	v.nic.ptags[v.attributes.Ptag]--
	v.attributes = v.nic.requested(attributes)
	return nil
}
