package stag

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// Windows counts the windows bound to a queue pair, which owns it and hands it
// to Bind in its User. The zero value is ready. It is guarded by Table.mu.
type Windows struct {
	bound   int
	retired bool
}

// WindowInfo are the attributes of a window (verbs draft 9.2.6.8). If it is not
// Valid only STag, with zero for the key, and PD are set.
type WindowInfo struct {
	STag  wr.STag
	Valid bool
	PD    wr.PDID
	// QP is the queue pair it is bound to.
	QP     wr.QPID
	Access wr.Access
	// Base is the TO of the first octet, Length is in octets.
	Addressing   wr.Addressing
	Base, Length uint64
	// Region is the STag of the region it is bound to.
	Region wr.STag
}

// AllocateWindow makes a Memory Window, in the Invalid state; its key is chosen
// by Bind (verbs draft 7.10.1). Errors: wr.ErrInvalidPD,
// wr.ErrInsufficientResources, wr.ErrInvalidRNIC (table closed).
func (t *Table) AllocateWindow(pd wr.PDID) (wr.STag, error) {
	if pd == 0 {
		return 0, errNoPD
	}
	e := &entry{window: true, drain: &t.drain}
	e.grant.store(grant{pd: pd})
	e.word.Store(revokedBit | drainedBit)
	i, err := t.publish(e)
	return i.STag, err
}

// QueryWindow tells the attributes of the window of s, of which the key is not
// looked at (verbs draft 9.2.6.8). Errors: wr.ErrInvalidRNIC,
// wr.ErrInvalidSTag (not that of a window).
func (t *Table) QueryWindow(s wr.STag) (WindowInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.lookup(s)
	if err == nil && !e.window {
		err = &wr.Reason{Err: wr.ErrInvalidSTag, What: "it is that of a region"}
	}
	if err != nil {
		return WindowInfo{}, err
	}
	g := e.grant.load()
	if e.isRevoked() {
		return WindowInfo{STag: wr.MakeSTag(e.index, 0), PD: g.pd}, nil
	}
	return WindowInfo{
		STag: e.stag(), Valid: true, PD: g.pd, QP: g.qp, Access: g.access,
		Addressing: g.addressing, Base: g.base, Length: g.length, Region: e.under.stag(),
	}, nil
}

// Bind makes an Invalid window Valid: a range of a Valid region, with remote
// rights of its own, for the peer of one queue pair (verbs draft 7.10.2). It
// waits for an invalidation of the window that is under way. What is wrong is
// looked for in this order (7.10.6.1), and leaves both as they were:
//
//	FaultWindow      not a window; no such addressing type; u.Windows nil or
//	                 retired
//	FaultNotInvalid  the window is bound
//	FaultRegion      not a region, another key, or Invalid
//	FaultPD          PDs of window, region and user not the same; or the
//	                 region is limited to another queue pair
//	FaultAccess      the region is not for windows, or rights not of figure 20
//	FaultRegion      the region is zero-based (figure 19)
//	FaultWrap        VA and length go beyond the last TO
//	FaultBounds      the range is not within the region, or has no octet
func (t *Table) Bind(b *wr.BindRequest, u User) AccessFault {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.settled(b.Window.Index())
	r := t.index.get(b.Region.Index())
	if f := checkBind(w, r, b, u); f != OK {
		return f
	}
	// The region stays Valid while the window is bound, so its memory needs
	// no other hold than that.
	w.mem = r.mem
	g := grant{
		key: b.Window.Key(), pd: u.PD, qp: u.QP, access: b.Access,
		addressing: b.Addressing, length: b.Length, at: b.VA - r.grant.base.Load(),
		vanish: r.mayVanish(),
	}
	if b.Addressing == wr.VABased {
		g.base = b.VA
	}
	w.grant.store(g)
	w.bound = bound{under: r, owner: u.Windows}
	r.windows++
	u.Windows.bound++
	w.arm()
	return OK
}

// checkBind checks window w and region r, either nil if the STag names nothing.
func checkBind(w, r *entry, b *wr.BindRequest, u User) AccessFault {
	switch {
	case w == nil, !w.window, u.Windows == nil, u.Windows.retired: // RV-7.10.6.1-M3
		return FaultWindow
	case b.Addressing != wr.VABased && b.Addressing != wr.ZeroBased:
		return FaultWindow
	case !w.isRevoked(): // RV-7.10.2-M30
		return FaultNotInvalid
	case r == nil, r.window, r.isRevoked(), r.stag() != b.Region: // RV-7.10.6.1-M5
		return FaultRegion
	}
	g := r.grant.load()
	switch {
	case w.grant.load().pd != u.PD, g.pd != u.PD: // RV-7.10.6.1-M6
		return FaultPD
	case g.qp != 0 && g.qp != u.QP: // or a window would lift the limit
		return FaultPD
	case g.access&wr.BindWindow == 0: // RV-7.10.6.1-M7
		return FaultAccess
	case !b.Access.ValidWindow(), g.access&b.Access.LocalOf() != b.Access.LocalOf(): // figure 20
		return FaultAccess
	case g.addressing == wr.ZeroBased: // RV-7.10.6.1-M9
		return FaultRegion
	}
	return g.contains(b.VA, b.Length) // RV-7.10.6.1-M10
}

// Bound is how many windows are bound to the queue pair of w.
func (t *Table) Bound(w *Windows) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.bound
}

// Retire ends binding for a queue pair that is being destroyed: any later Bind
// with w is refused. Error: wr.ErrWindowsBound, and nothing has changed, if
// windows are bound.
func (t *Table) Retire(w *Windows) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.bound > 0 {
		return &wr.Reason{Err: wr.ErrWindowsBound, What: fmt.Sprintf("%d, to the queue pair", w.bound)}
	}
	w.retired = true
	return nil
}
