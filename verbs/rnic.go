// Package verbs is the RNIC Interface of the RDMA verbs draft (chapters 5 to
// 9): it opens RNICs and hands out Protection Domains, Memory Regions and
// Windows, Completion Queues, Shared Receive Queues and Queue Pairs. A program
// imports this package, and cm to connect.
//
//	RNIC -- PD -- MR, MW
//	  |      +--- SRQ
//	  |      +--- QP --> SendCQ, RecvCQ, SRQ
//	  +---- CQ --> completion event handler
//	  +---- Pages (physical memory)
//
// CreateEndpoint is the short way to a queue pair: docs/start/go.md has a whole client. The
// types of requests, completions and codes are those of package wr, where their fields
// and methods are documented.
//
// Verbs may be called from any goroutine. A verb that refuses returns an error
// that matches one of the Immediate Errors with errors.Is, and changes nothing
// (verbs draft 8.3.1; MR.Reregister is the exception, by 7.3.2.3). PostSend,
// PostRecv and Poll neither block nor allocate.
package verbs

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/instrument"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/proflabel"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// RNIC is an open RNIC. Make one with Open.
type RNIC struct {
	id        RNICID
	name      string
	mode      Mode
	without   Features
	limits    Limits
	tuning    qp.Tuning            // zero, but in tests
	carried   verbsinternal.Counts // likewise
	vanishing atomic.Bool          // memory of regions may be unmapped: verbsinternal.MayVanish
	faults    instrument.Injector  // nil: none
	struck    struck               // faults, by their kind
	port      qp.Port              // what all streams go through
	tap       instrument.Streams   // nil: none
	stags     *stag.Table
	events    *dispatcher[Event]
	labels    proflabel.Set  // of its goroutines
	calls     sync.WaitGroup // goroutines that call the program's handlers
	closing   sync.Once
	counted   *inventory.Object

	// health is written with mu held. The data path looks at it only to explain
	// an error.
	health atomic.Uint32

	mu       lockorder.Mutex[lockorder.RNIC]
	lastID   uint32 // guarded by mu, as all below
	keys     uint8
	pds      map[PDID]*PD
	cqs      map[CQID]*CQ
	srqs     map[SRQID]*SRQ
	qps      map[QPID]*QP
	windows  map[*MW]struct{}
	handlers map[HandlerID]*dispatcher[*CQ]
	ird, ord pool
	ended    ended
	released released
	trace    func(wr.Record) // may be nil
}

// The values of RNIC.health.
const (
	healthy uint32 = iota
	failed
	closed
)

// Open opens an RNIC (verbs draft 9.2.1.1). Errors: ErrInvalidModifier (an ID
// that is not of the variant of RFC 9562, a mode that does not exist, a limit out
// of its range), ErrBlockListNotSupported (without FeatureBlockMode),
// ErrRNICInUse (the ID is open in this process), ErrInsufficientResources (1,024
// RNICs are; or Config.Faults has it so).
func Open(c Config) (_ *RNIC, err error) {
	defer asRefused(&err, "Open RNIC", "verbs draft 9.2.1.1", Reason{})
	l := c.Limits.withDefaults(c.Without)
	if err := c.check(l); err != nil {
		return nil, err
	}
	if c.Faults != nil {
		if err := instrument.InjectorOf(c.Faults).Open(); err != nil {
			return nil, planned(ErrInsufficientResources, err)
		}
	}
	id, err := instances.take(c.ID)
	if err != nil {
		return nil, err
	}
	r := &RNIC{
		id: id, name: c.Name, mode: c.Mode, without: c.Without, limits: l,
		pds: map[PDID]*PD{}, cqs: map[CQID]*CQ{}, srqs: map[SRQID]*SRQ{}, qps: map[QPID]*QP{},
		windows: map[*MW]struct{}{}, handlers: map[HandlerID]*dispatcher[*CQ]{},
		ird: pool{size: l.SharedIRD}, ord: pool{size: l.SharedORD}, trace: c.Trace,
	}
	r.counted = inventory.Open(nil, "verbs RNIC", id, inventory.CounterFunc(r.count))
	r.stags = stag.NewTable(stag.Config{
		Regions: l.Regions, Windows: l.Windows, PBL: l.PBL,
		BlockMode: c.Mode == BlockMode, PhysicalMemory: l.Physical, Inventory: r.counted,
	})
	r.labels = r.labels.With(proflabel.RNIC, id.String())
	r.events = newDispatcher[Event](&r.calls, r.labels.With(proflabel.Work, "event handler"))
	if c.Tap != nil {
		r.tap = instrument.TapOf(c.Tap)
	}
	if c.Faults != nil {
		r.faults = instrument.InjectorOf(c.Faults)
		r.faults.Attach(r.stags.Lose, r.tellFault)
	}
	return r, nil
}

// Close closes the RNIC and frees everything it handed out (verbs draft 5.1.4):
// queue pairs are destroyed, their streams reset, regions and windows
// deallocated. When it returns nothing of it runs any more, handlers included;
// so a handler may not call it. From its beginning on every other verb fails
// with ErrInvalidRNIC. Closing twice is closing once (docs/decisions/0010).
func (r *RNIC) Close() error {
	r.closing.Do(r.shutDown)
	return nil
}

func (r *RNIC) shutDown() {
	r.mu.Lock()
	r.health.Store(closed)
	qps := slices.Collect(maps.Values(r.qps))
	windows := slices.Collect(maps.Keys(r.windows))
	r.mu.Unlock()

	// A bound window would keep its queue pair; taken away under a running
	// transfer it would be a protection error. So streams end first.
	all(qps, func(q *QP) { q.q.Reset() })
	for _, w := range windows {
		_ = r.stags.Deallocate(w.index)
	}
	all(qps, func(q *QP) {
		_ = q.q.Destroy()
		<-q.q.Done() // if another goroutine destroys it at this moment
	})
	regions := r.stags.Close()

	r.mu.Lock()
	for _, s := range r.srqs {
		s.q.Close()
	}
	for _, c := range r.cqs {
		c.q.Close() // a waiter in Wait learns of it
	}
	for _, d := range r.handlers {
		d.stop()
	}
	r.mu.Unlock()
	r.events.stop()
	r.calls.Wait()
	r.forget(regions)
	instances.release(r.id)
	r.counted.Close()
}

// all calls f for each of list, side by side, and waits.
func all[T any](list []T, f func(T)) {
	var wg sync.WaitGroup
	for _, v := range list {
		wg.Go(func() { f(v) })
	}
	wg.Wait()
}

// forget lets go of what was handed out, with so many regions in each PD.
func (r *RNIC) forget(regions map[PDID]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endAll()
	r.released.from(r, regions)
	clear(r.pds)
	clear(r.cqs)
	clear(r.srqs)
	clear(r.qps)
	clear(r.windows)
	clear(r.handlers)
}

// fail is fault.Provoke.
func (r *RNIC) fail() {
	r.mu.Lock()
	if r.health.Load() != healthy {
		r.mu.Unlock()
		return
	}
	r.events.post(Event{ID: wr.EventRNICCatastrophic})
	r.health.Store(failed)
	qps := slices.Collect(maps.Values(r.qps))
	srqs := slices.Collect(maps.Values(r.srqs))
	r.mu.Unlock()
	all(qps, (*QP).bringDown)
	for _, s := range srqs {
		s.q.Fail() // refuses posts
	}
}

// raise reports an event. After the RNIC has failed no other means anything.
func (r *RNIC) raise(e Event) {
	if r.health.Load() != failed {
		if r.trace != nil {
			r.traceNow(wr.Record{Kind: wr.RecordNotified, QP: e.QP, CQ: e.CQ, Name: e.ID.String()})
		}
		r.events.post(e)
	}
}

var (
	errFailedRNIC = &wr.Reason{Err: wr.ErrInvalidRNIC, What: "it has failed", Remedy: "close it, and open another one"}
	errClosedRNIC = &wr.Reason{Err: wr.ErrInvalidRNIC, What: "it is closed"}
)

// refusal is ErrInvalidRNIC if the RNIC is closed or has failed.
func (r *RNIC) refusal() error {
	if r.health.Load() == failed {
		return errFailedRNIC
	}
	return r.closedError()
}

// closedError is ErrInvalidRNIC if the RNIC is closed: what the Query verbs look
// at.
func (r *RNIC) closedError() error {
	if r.health.Load() == closed {
		return errClosedRNIC
	}
	return nil
}

// explain is err, or ErrInvalidRNIC if that is why a verb failed.
func (r *RNIC) explain(err error) error {
	if err == nil {
		return nil
	}
	if cause := r.refusal(); cause != nil {
		return cause
	}
	return err
}

// lock begins a verb: it takes mu, unless the RNIC refuses verbs.
func (r *RNIC) lock() error {
	r.mu.Lock()
	if err := r.refusal(); err != nil {
		r.mu.Unlock()
		return err
	}
	return nil
}

// nextID gives out an identifier for any kind of object, never zero and not in
// use (RV-6.1.1-M8), with mu held.
func (r *RNIC) nextID() uint32 {
	for {
		r.lastID++
		id := r.lastID
		if id != 0 && r.pds[PDID(id)] == nil && r.cqs[CQID(id)] == nil && r.srqs[SRQID(id)] == nil &&
			r.qps[QPID(id)] == nil && r.handlers[HandlerID(id)] == nil {
			return id
		}
	}
}

// nextKey is an STag key that differs from the last 255.
func (r *RNIC) nextKey() uint8 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys++
	return r.keys
}
