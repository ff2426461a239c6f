package stag

import "github.com/softrnic/softrnic/wr"

// Reregister gives the STag index of s, Valid or Invalid, new memory, PD, rights,
// key and flag, as Deallocate and Register would (verbs draft 7.3.2.3). The
// index stays the same, and room for a physical buffer list does not get less.
// Operations in progress fail at their next hold, and when it returns nothing
// touches the old memory through this STag any more.
//
// After wr.ErrInvalidRNIC, wr.ErrInvalidSTag (it is not that of a Non-Shared
// Memory Region) and wr.ErrWindowsBound the region is as before. After any other
// error, which are those of Register, it is deallocated.
func (t *Table) Reregister(s wr.STag, c RegionConfig) (Info, error) {
	next, bad := t.prepare(&c)
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.vacate(s) // RV-7.3.2.3-M5
	if err != nil {
		return Info{}, err
	}
	if bad != nil { // RV-7.3.2.3-M6
		t.drop(e)
		return Info{}, bad
	}
	next.pbl = max(next.pbl, e.pbl) // the "original size" of 7.8 stays guaranteed
	e.grant.store(next.grant.load())
	e.mem, e.region = next.mem, next.region
	e.arm()
	return e.info(), nil
}

// vacate revokes the Non-Shared Memory Region of s and waits until it is
// drained. An error leaves it as it was. The caller has mu, which may be let go
// of in between.
func (t *Table) vacate(s wr.STag) (*entry, error) {
	for {
		e, err := t.lookupRegion(s)
		switch {
		case err != nil:
			return nil, err
		case e.shared:
			return nil, &wr.Reason{Err: wr.ErrInvalidSTag, What: "the region is shared", Rule: "RV-7.3.2.3-M1", Remedy: "register its memory anew"}
		case e.windows > 0: // RV-7.3.2.3-M4
			return nil, errBound(e)
		}
		e.revoke()
		drained := !e.isDraining()
		t.await(e)
		if drained {
			return e, nil
		}
	}
}
