package stag

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/wr"
)

// Config configures a table. Zero and negative fields have the defaults; too
// large ones are cut.
type Config struct {
	// Regions and Windows are how many STags there may be for each, Invalid
	// ones included: 65,536 if zero, 4,194,304 at most. Memory use follows
	// the STags present.
	Regions, Windows int
	// PBL is how many entries a physical buffer list may have: 1<<24 if
	// zero, 1<<30 at most.
	PBL int
	// BlockMode takes block lists, else physical buffer lists are page lists
	// (verbs draft 7.6.2).
	BlockMode bool
	// PhysicalMemory is how many octets AllocatePages may have given out: 64 GiB
	// if zero, 1 TiB at most.
	PhysicalMemory uint64
	// Inventory is the object of the RNIC or NIC; nil for none.
	Inventory *inventory.Object
}

const (
	defaultSTags = 1 << 16
	// maxSTags of both kinds leave half of the indices free, so that drawing
	// one at random succeeds soon and a guessed one is often wrong.
	maxSTags   = 1 << 22
	defaultPBL = 1 << 24
	// maxPBL entries of the largest size are a length that fits 64 bits.
	maxPBL                = 1 << 30
	defaultPhysicalMemory = 64 << 30
	maxPhysicalMemory     = 1 << 40
)

func (c Config) withDefaults() Config {
	set := func(v *int, def, most int) {
		if *v <= 0 {
			*v = def
		}
		*v = min(*v, most)
	}
	set(&c.Regions, defaultSTags, maxSTags)
	set(&c.Windows, defaultSTags, maxSTags)
	set(&c.PBL, defaultPBL, maxPBL)
	c.PhysicalMemory = min(cmp.Or(c.PhysicalMemory, defaultPhysicalMemory), maxPhysicalMemory)
	return c
}

// Table holds the STags of one RNIC. Make one with NewTable. All methods may
// be called at the same time. After Close those that return an error return
// wr.ErrInvalidRNIC.
type Table struct {
	config Config // constant, nothing in it is zero but BlockMode
	drain  drain

	// Both are looked up without a lock and written under mu.

	index index
	space space

	mu      lockorder.Mutex[lockorder.STags]
	supply  supply // guarded by mu, as all below
	closed  bool
	regions int // present
	windows int // present
	// bound and pages are windows that a region has, and octets of physical memory in use, behind Close.
	bound int
	pages uint64
	// revoking counts those who wait for holds, added to under mu.
	revoking sync.WaitGroup
	counted  *inventory.Object
}

// NewTable returns an empty table.
func NewTable(c Config) *Table {
	t := &Table{config: c.withDefaults()}
	t.drain.init()
	t.index.reset()
	t.space.reset()
	t.supply.init()
	t.counted = inventory.Open(c.Inventory, "stag table", nil, t)
	return t
}

// insert gives a new entry an STag index and publishes it. The caller has mu.
func (t *Table) insert(e *entry) error {
	n, limit := t.present(e), t.config.Regions
	if e.window {
		limit = t.config.Windows
	}
	switch {
	case t.closed:
		return errClosed
	case *n >= limit:
		return &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("all %d STags of this kind are in use", limit), Remedy: "deregister some, or raise the limit in verbs.Config.Limits"}
	}
	*n++
	e.index = t.supply.take(func(i uint32) bool { return t.index.get(i) != nil })
	t.index.put(e)
	return nil
}

// drop takes a revoked entry out. The caller has mu.
func (t *Table) drop(e *entry) {
	*t.present(e)--
	t.index.remove(e.index)
	t.supply.free(e.index)
}

// Deallocate deallocates the STag of a region or window (verbs draft 7.9,
// 7.10.4, 9.2.6.4). When it returns nil, nothing touches the memory through it
// any more; operations in progress on it fail at their next hold. Neither state
// nor key are looked at, as the draft asks. Errors: wr.ErrInvalidRNIC;
// wr.ErrInvalidSTag (an index that names nothing, zero among them, or losing a
// race against another Deallocate, which may then still be waiting);
// wr.ErrWindowsBound (to the region; it is as before). A window that is being
// invalidated counts as bound until that has returned.
func (t *Table) Deallocate(s wr.STag) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.lookup(s)
	if err == nil && e.windows > 0 {
		err = errBound(e) // RV-7.9-M10, RV-7.9-M11
	}
	if err != nil {
		return err
	}
	e.revoke() // before the removal: a lookup may have e already
	t.drop(e)
	t.await(e)
	return nil
}

// lookup finds what a verb names by the index of s. The caller has mu.
func (t *Table) lookup(s wr.STag) (*entry, error) {
	if t.closed {
		return nil, errClosed
	}
	e := t.index.get(s.Index())
	if e == nil { // RV-7.2.1-M16, RV-7.9-M2
		return nil, &wr.Reason{Err: wr.ErrInvalidSTag, What: "no region or window has it", Rule: "RV-7.9-M2"}
	}
	return e, nil
}

var (
	errClosed = &wr.Reason{Err: wr.ErrInvalidRNIC, What: "it is closed"}
	errNoPD   = &wr.Reason{Err: wr.ErrInvalidPD, What: "there is none"}
)

func errBound(e *entry) error {
	return &wr.Reason{Err: wr.ErrWindowsBound, What: fmt.Sprintf("%d, to the region", e.windows), Rule: "RV-7.9-M10"}
}

// await returns when the memory of e, which the caller revoked or found revoked,
// is not touched any more, and lets go of it. The caller has mu. It is not kept
// while waiting: a copy of one region must not delay work on others. So after
// it everything may have changed.
func (t *Table) await(e *entry) {
	if e.isDraining() {
		gen := e.word.Load() & genMask
		t.revoking.Add(1)
		t.mu.Unlock()
		t.drain.wait(e, gen)
		t.mu.Lock()
		t.revoking.Done()
	}
	if e.word.Load()&drainedBit != 0 {
		e.disarm()
	}
}

// settled finds the entry of STag index i, nil if there is none, while no
// revocation of it is under way. The caller has mu, which may be let go of in
// between.
func (t *Table) settled(i uint32) *entry {
	for {
		e := t.index.get(i)
		if e == nil || !e.isRevoked() {
			return e
		}
		drained := !e.isDraining()
		t.await(e)
		if drained {
			return e
		}
	}
}

// Len is the number of STags present, Invalid ones included.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.index.live
}

// Regions is how many of them are regions.
func (t *Table) Regions() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.regions
}

// Close deallocates everything, STags and pages, and waits until no memory is
// touched any more, also through what others are deallocating. It may be called
// again. It answers how many regions there were in each PD.
func (t *Table) Close() (of map[wr.PDID]int) {
	of = map[wr.PDID]int{}
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		t.revoking.Add(1) // no Wait ends before the last await below
		all := slices.AppendSeq(slices.Clone(*t.space.list.Load()), t.index.all)
		for _, e := range all {
			if e.index != 0 {
				*t.present(e)--
				if !e.window {
					of[e.grant.load().pd]++
				}
			} else if !e.isRevoked() {
				t.space.used -= e.grant.length.Load()
			}
			e.revoke()
		}
		t.pages = t.space.used
		t.index.reset()
		t.space.reset()
		for _, e := range all {
			t.await(e)
		}
		for _, e := range all {
			t.bound += e.windows
		}
		t.revoking.Done()
	}
	t.mu.Unlock()
	// No further Add: every path to one goes through the emptied index, or
	// looks at closed.
	t.revoking.Wait()
	t.counted.Close()
	return of
}

// present is the count of the kind of an entry.
func (t *Table) present(e *entry) *int {
	if e.window {
		return &t.windows
	}
	return &t.regions
}

// Count implements inventory.Counter.
func (t *Table) Count(tell inventory.Tell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tell(t.regions, "region")
	tell(t.windows, "window")
	tell(t.bound, "bound window")
	if t.closed {
		tell(int(t.pages), "octet of pages")
	} else {
		tell(int(t.space.used), "octet of pages")
	}
}
