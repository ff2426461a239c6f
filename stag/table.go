package stag

import (
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/wr"
)

const (
	defaultEntries = 1 << 16
	// maxEntries leaves half of the indices free, so that drawing one at
	// random succeeds soon and a guessed one is often wrong.
	maxEntries = 1 << 23
)

// Table holds the STags of one RNIC. Make one with NewTable. All methods may
// be called at the same time.
type Table struct {
	limit int

	// index is looked up without a lock and written under mu.
	index index

	mu     sync.Mutex
	supply supply
	closed bool
	// revoking counts those who wait for holds, added to under mu.
	revoking sync.WaitGroup
}

// NewTable returns an empty table that takes at most limit STags: 0 means
// 65,536, and more than 8,388,608 means that many. Memory use follows the
// STags present.
func NewTable(limit int) *Table {
	if limit <= 0 {
		limit = defaultEntries
	}
	t := &Table{limit: min(limit, maxEntries)}
	t.index.reset()
	t.supply.init()
	return t
}

// Register makes a Non-Shared Memory Region and an STag for it, in the Valid
// state (verbs draft 7.3.2.2). On an error nothing is registered and no
// resource used: wr.ErrInvalidPD, wr.ErrInvalidAccess, wr.ErrInvalidLength
// (no memory), wr.ErrInvalidVA (VA and length beyond 64 bits, or a VA for a
// zero-based region), wr.ErrInsufficientResources (table full),
// wr.ErrInvalidRNIC (table closed).
func (t *Table) Register(c RegionConfig) (*Region, error) {
	e, err := c.entry()
	if err != nil {
		return nil, fmt.Errorf("register memory: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("register memory: %w: it is closed", wr.ErrInvalidRNIC)
	}
	if t.index.live >= t.limit {
		return nil, fmt.Errorf("register memory: %w: all %d STags are in use, deregister some",
			wr.ErrInsufficientResources, t.limit)
	}
	i := t.supply.take(func(i uint32) bool { return t.index.get(i) != nil })
	e.stag = wr.MakeSTag(i, c.Key)
	t.index.put(e)
	return &Region{e}, nil
}

// Deregister deallocates an STag (verbs draft 7.9). When it returns nil,
// nothing touches the memory any more; operations in progress on it fail at
// their next hold. Neither state nor key are looked at, as the draft asks. An
// index that names nothing, zero among them, gives wr.ErrInvalidSTag; so does
// losing a race against another Deregister, which may then still be waiting.
func (t *Table) Deregister(s wr.STag) error {
	t.mu.Lock()
	e := t.index.get(s.Index())
	if e == nil {
		t.mu.Unlock()
		return fmt.Errorf("deregister memory: %w: %v is not registered", wr.ErrInvalidSTag, s)
	}
	drained := e.revoke() // before the removal: a lookup may have e already
	t.index.remove(s.Index())
	t.supply.free(s.Index())
	t.unlockAndWait(drained)
	return nil
}

// InvalidateRemote puts s into the Invalid state on behalf of the peer of u: an
// inbound Send with Invalidate (verbs draft 7.8). When it returns OK, nothing
// is placed in or read from the region any more. The queue pair's own rights
// are for the caller to check. An STag that is Invalid already passes: its key
// means nothing (draft 7.2), the other checks are done.
func (t *Table) InvalidateRemote(s wr.STag, u User) Fault { return t.invalidate(s, u, true) }

// InvalidateLocal does the same for an Invalidate Local STag or an RDMA Read
// with Invalidate Local STag. It needs no access right, and the queue pair that
// a region is limited to does not matter.
func (t *Table) InvalidateLocal(s wr.STag, u User) Fault { return t.invalidate(s, u, false) }

func (t *Table) invalidate(s wr.STag, u User, remote bool) Fault {
	t.mu.Lock()
	e := t.index.get(s.Index())
	f := checkInvalidate(e, s, u, remote)
	if f != OK {
		t.mu.Unlock()
		return f
	}
	t.unlockAndWait(e.revoke())
	return OK
}

// checkInvalidate does the checks of verbs draft 7.8 on the entry of s, which
// is nil if there is none.
func checkInvalidate(e *entry, s wr.STag, u User, remote bool) Fault {
	switch {
	case e == nil: // RV-7.8-M11, RV-7.8-M12
		return FaultSTag
	case e.stag != s && !e.isRevoked(): // the key counts when moving to Invalid
		return FaultSTag
	case !e.allowsUser(u, remote): // RV-7.8-M13, R5040-7.2-M5
		return FaultPD
	case remote && (e.access&remoteRights == 0 || e.noRemoteInvalidate): // RV-7.8-M15, R5040-8.1.1-M8
		return FaultAccess
	}
	return OK
}

// Resolve finds the n octets from tagged offset to on in the region of s, for
// an access by u that needs every right of need (verbs draft 7.6.3, figure
// 21). The checks go from the STag to the octet, so that a user is told
// nothing about a region that is not open to it: STag with its key and state,
// PD and QP, access right, wrap, bounds. RFC 5041 7.1 and RFC 5040 7.2 ask for
// the same checks and begin with the same; the draft has no order.
//
// An access of length zero is not checked (RV-7.6.3-M3): the caller need not
// call, and n of zero gives OK and the zero Ref.
func (t *Table) Resolve(s wr.STag, to, n uint64, u User, need wr.Access) (Ref, Fault) {
	if n == 0 {
		return Ref{}, OK
	}
	e := t.index.get(s.Index())
	if e == nil || e.stag != s || e.isRevoked() { // RV-7.4-M7 (all 32 bits), RV-7.2.2-M1
		return Ref{}, FaultSTag
	}
	// Of a TO below the base this is more than the length too, because
	// base+length does not overflow.
	off := to - e.base
	switch {
	case !e.allowsUser(u, need&remoteRights != 0):
		return Ref{}, FaultPD
	case e.access&need != need:
		return Ref{}, FaultAccess
	case to+(n-1) < to: // RFC 5041 7.1, check 5
		return Ref{}, FaultWrap
	case off > e.length || n > e.length-off: // RV-7.6.3-M2
		return Ref{}, FaultBounds
	}
	return Ref{e: e, off: off, n: n}, OK
}

// Len is the number of STags present, Invalid ones included.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.index.live
}

// Close deregisters everything and waits until no memory is touched any more,
// also by regions that others are deregistering. Register fails from then on.
// It may be called again.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	var waits []<-chan struct{}
	for e := range t.index.all {
		if drained := e.revoke(); drained != nil {
			waits = append(waits, drained)
			t.revoking.Add(1)
		}
	}
	t.index.reset()
	t.mu.Unlock()
	for _, drained := range waits {
		<-drained
		t.revoking.Done()
	}
	// No further Add: every path to one goes through the emptied index.
	t.revoking.Wait()
}

// unlockAndWait lets go of mu and returns when drained is closed. No wait is
// under the lock: a copy of one region must not delay work on others.
func (t *Table) unlockAndWait(drained <-chan struct{}) {
	if drained == nil {
		t.mu.Unlock()
		return
	}
	t.revoking.Add(1)
	t.mu.Unlock()
	<-drained
	t.revoking.Done()
}
