package verbs

import (
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/wr"
)

// MW is a Memory Window (verbs draft 7.10): a piece of a region that the peer of
// one queue pair may reach, from a Bind work request until an invalidation.
type MW struct {
	rnic  *RNIC
	pd    *PD
	index STag // with key 0

	// mu makes one verb on the window wait for another.
	mu   lockorder.Mutex[lockorder.MW]
	gone bool // guarded by mu
}

// AllocateWindow allocates a Memory Window, in the Invalid state (verbs draft
// 9.2.6.7). Errors: ErrInvalidRNIC, ErrInvalidPD, ErrInsufficientResources.
func (p *PD) AllocateWindow() (_ *MW, err error) {
	defer asRefused(&err, "Allocate Memory Window", "verbs draft 9.2.6.7", Reason{})
	if p == nil {
		return nil, errNilPD
	}
	if err := p.use(); err != nil {
		return nil, err
	}
	s, err := p.rnic.stags.AllocateWindow(p.id)
	if err != nil {
		p.unuse()
		return nil, p.rnic.explain(err)
	}
	w := &MW{rnic: p.rnic, pd: p, index: wr.MakeSTag(s.Index(), 0)}
	if err := p.rnic.lock(); err != nil { // closed since: Close did not see the window
		_ = p.rnic.stags.Deallocate(s)
		p.unuse()
		return nil, err
	}
	p.rnic.windows[w] = struct{}{}
	p.rnic.mu.Unlock()
	return w, nil
}

// STag is the window's Steering Tag with a key: that of the Bind which makes it
// valid, and of what names the window then.
func (w *MW) STag(key uint8) STag { return w.index | STag(key) }

// BindRequest are the modifiers that bind the window, VA-based and with a key, to n
// octets from octet off of a region, which has BindWindow and is VA-based. For a
// zero-based window change Addressing.
func (w *MW) BindRequest(m *MR, off, n int, access Access, key uint8) *BindRequest {
	b := m.Buffer()
	return &BindRequest{
		Window: w.STag(key), Region: b.STag,
		VA: b.Base + uint64(off), Length: uint64(n), Access: access,
	}
}

// WindowAttributes are what Query Memory Window returns (verbs draft 9.2.6.8). The
// fields from QP on are zero if it is not Valid.
type WindowAttributes struct {
	// STag has the current key if Valid, else zero in its place.
	STag  STag
	Valid bool
	PD    PDID
	// QP is the queue pair it is bound to.
	QP     QPID
	Access Access
	// Base is the tagged offset of the first octet, Length is in octets.
	Addressing   Addressing
	Base, Length uint64
	// Region is the STag of the region it is bound to.
	Region STag
}

// Query returns the window's attributes (verbs draft 9.2.6.8). Errors:
// ErrInvalidRNIC, ErrInvalidSTag.
func (w *MW) Query() (_ WindowAttributes, err error) {
	defer asRefused(&err, "Query Memory Window", "verbs draft 9.2.6.8", ofSTag(w.index))
	w.mu.Lock()
	defer w.mu.Unlock()
	switch err := w.rnic.closedError(); {
	case err != nil:
		return WindowAttributes{}, err
	case w.gone:
		return WindowAttributes{}, &wr.Reason{Err: wr.ErrInvalidSTag, What: "the window was deallocated"}
	}
	info, err := w.rnic.stags.QueryWindow(w.index)
	return WindowAttributes(info), err
}

// unbind is verbsinternal.Unbind.
func (w *MW) unbind() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return
	}
	if info, err := w.rnic.stags.QueryWindow(w.index); err == nil && info.Valid {
		w.rnic.stags.Lose(info.STag)
	}
}

// Deallocate deallocates the window, bound or not (verbs draft 9.2.6.4). When it
// returns nothing is placed or read through it any more. Errors: ErrInvalidRNIC,
// ErrInvalidSTag (it was already).
func (w *MW) Deallocate() (err error) {
	defer asRefused(&err, "Deallocate Memory Window", "verbs draft 9.2.6.4", ofSTag(w.index))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.rnic.refusal(); err != nil {
		return err
	}
	if w.gone {
		return &wr.Reason{Err: wr.ErrInvalidSTag, What: "the window was deallocated"}
	}
	if err := w.rnic.stags.Deallocate(w.index); err != nil {
		return w.rnic.explain(err)
	}
	w.gone = true
	w.rnic.mu.Lock()
	defer w.rnic.mu.Unlock()
	if _, there := w.rnic.windows[w]; there { // else Close has counted it out
		delete(w.rnic.windows, w)
		w.pd.release()
	}
	return nil
}
