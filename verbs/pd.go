package verbs

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// PD is a Protection Domain: queue pairs reach the regions of their own domain
// only (verbs draft 5.2).
type PD struct {
	rnic *RNIC
	id   PDID
	refs int  // queue pairs, S-RQs, regions and windows in it; guarded by rnic.mu
	ends bool // with the last of them; guarded by rnic.mu
}

// AllocatePD allocates a Protection Domain (verbs draft 9.2.2.1). Errors:
// ErrInvalidRNIC, ErrInsufficientResources.
func (r *RNIC) AllocatePD() (_ *PD, err error) {
	defer asRefused(&err, "Allocate PD", "verbs draft 9.2.2.1", Reason{})
	if err := r.lock(); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	if len(r.pds) >= r.limits.PDs {
		return nil, &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("all %d protection domains are in use", r.limits.PDs)}
	}
	pd := &PD{rnic: r, id: PDID(r.nextID())}
	r.pds[pd.id] = pd
	return pd, nil
}

// ID is the domain's identifier.
func (p *PD) ID() PDID { return p.id }

// Deallocate deallocates the domain (verbs draft 9.2.2.2). Errors: ErrInvalidRNIC,
// ErrInvalidPD (it was already), ErrPDInUse (a queue pair, S-RQ, region or window
// is still in it, bound or not).
func (p *PD) Deallocate() (err error) {
	defer asRefused(&err, "Deallocate PD", "verbs draft 9.2.2.2", Reason{})
	if p == nil {
		return errNilPD
	}
	if err := p.rnic.lock(); err != nil {
		return err
	}
	defer p.rnic.mu.Unlock()
	switch {
	case p.rnic.pds[p.id] != p:
		return &wr.Reason{Err: wr.ErrInvalidPD, What: fmt.Sprintf("PD %d was deallocated", p.id)}
	case p.refs > 0:
		return &wr.Reason{
			Err: wr.ErrPDInUse, What: fmt.Sprintf("%d queue pairs, S-RQs, regions and windows are in PD %d", p.refs, p.id), Rule: "RV-5.2.2-M2",
		}
	}
	delete(p.rnic.pds, p.id)
	return nil
}

// use counts a user of the domain.
func (p *PD) use() error {
	if err := p.rnic.lock(); err != nil {
		return err
	}
	defer p.rnic.mu.Unlock()
	return p.rnic.usePD(p)
}

// usePD counts a user of p, which has to be a domain of this RNIC, with mu held.
func (r *RNIC) usePD(p *PD) error {
	if p == nil || r.pds[p.id] != p {
		return &wr.Reason{Err: wr.ErrInvalidPD, What: "a PD of this RNIC is needed"}
	}
	p.refs++
	return nil
}

// unuse takes a user back.
func (p *PD) unuse() {
	p.rnic.mu.Lock()
	defer p.rnic.mu.Unlock()
	p.release()
}

// release is unuse with rnic.mu held.
func (p *PD) release() {
	p.refs--
	if p.refs == 0 && p.ends {
		delete(p.rnic.pds, p.id)
	}
}
