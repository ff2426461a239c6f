package vipl

import (
	"maps"
	"slices"
)

// SystemInfo is an InfoType of QuerySystemManagementInfo.
type SystemInfo uint32

// The kinds of information, which the appendix leaves to the provider.
const (
	// SystemInfoUsage gives a *Usage.
	SystemInfoUsage SystemInfo = iota
)

// Usage is how much of a Nic is in use.
type Usage struct {
	Vis, CQs, Ptags, Regions int
	// States counts the VIs in each state.
	States map[ViState]int
	// Lost is how many entries had no room on the CQs that there are.
	Lost uint64
	// Untold is how many messages to Unreliable VIs were dropped with no Descriptor to
	// tell it.
	Untold uint64
	// Misdirected is how many of Untold are RDMA Writes to memory that is not there for them:
	// a wrong memory handle, more than the region, or no right.
	Misdirected uint64
}

// QuerySystemManagementInfo is VipQuerySystemManagementInfo (VI Architecture 9.8.6).
// Errors: ErrInvalidParameter (the Nic is closed, or there is no such kind).
func (n *Nic) QuerySystemManagementInfo(kind SystemInfo) (any, error) {
	if kind != SystemInfoUsage {
		return nil, invalid("no system management information %d", kind)
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, errNicClosed
	}
	u := &Usage{
		Vis: len(n.vis), CQs: len(n.cqs), Ptags: len(n.ptags),
		Regions: len(n.regions) + n.descriptors.len(),
		States:  make(map[ViState]int),
		Untold:  n.untold.Load(), Misdirected: n.misdirected.Load(),
	}
	for q := range n.cqs {
		q.mu.Lock()
		u.Lost += q.lost
		q.mu.Unlock()
	}
	vis := slices.Collect(maps.Keys(n.vis))
	n.mu.Unlock()
	for _, v := range vis { // a VI's lock comes before the Nic's
		if state, _, err := v.QueryVi(); err == nil {
			u.States[state]++
		}
	}
	return u, nil
}
