// Package verbs is the RNIC Interface of the RDMA verbs draft (chapters 5 to
// 9): it opens RNICs and hands out Protection Domains, Memory Regions,
// Completion Queues and Queue Pairs. A program imports this package, and cm to
// connect.
//
//	RNIC -- PD -- MR
//	  |      +--- QP --> SendCQ, RecvCQ
//	  +---- CQ
//
// Verbs may be called from any goroutine. A verb that refuses returns an error
// that matches one of the Immediate Errors with errors.Is, and changes nothing
// (verbs draft 8.3.1). PostSend, PostRecv and Poll neither block nor allocate.
package verbs

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// Config configures an RNIC. The zero value opens a new, unnamed one.
type Config struct {
	// ID names the instance; the zero UUID stands for a random one.
	ID uuid.UUID
	// Limits bound what the RNIC hands out; zero fields have defaults.
	Limits Limits
}

// Limits bound an RNIC's resources. Each zero field stands for its default.
type Limits struct {
	QPs     int // queue pairs; 65,536
	CQs     int // completion queues; 65,536
	PDs     int // protection domains; 65,536
	Regions int // memory regions; 1,048,576
	CQE     int // entries of one completion queue; 4,194,304
	WR      int // work requests of one queue; 65,536
	SGE     int // elements of one scatter/gather list, 4 to 128; 32
	IRD     int // inbound RDMA Reads of one queue pair; 4,096
	ORD     int // outbound RDMA Reads of one queue pair; 4,096
}

func (l Limits) withDefaults() Limits {
	set := func(p *int, d int) {
		if *p == 0 {
			*p = d
		}
	}
	set(&l.QPs, 1<<16)
	set(&l.CQs, 1<<16)
	set(&l.PDs, 1<<16)
	set(&l.Regions, 1<<20)
	set(&l.CQE, 1<<22)
	set(&l.WR, 1<<16)
	set(&l.SGE, 32)
	set(&l.IRD, 1<<12)
	set(&l.ORD, 1<<12)
	return l
}

func (l Limits) valid() bool {
	for _, v := range []int{l.QPs, l.CQs, l.PDs, l.Regions, l.CQE, l.WR, l.IRD, l.ORD} {
		if v < 1 {
			return false
		}
	}
	return l.SGE >= 4 && l.SGE <= 128 && l.WR <= 1<<20 // RV-8.1.3.2: four elements at least
}

// RNIC is an open RNIC. Make one with Open.
type RNIC struct {
	id     uuid.UUID
	limits Limits
	stags  *stag.Table
	events *dispatcher

	mu     sync.Mutex
	closed bool // guarded by mu, as all below
	lastID uint32
	keys   uint8
	pds    map[*PD]struct{}
	cqs    map[*CQ]struct{}
	qps    map[*QP]struct{}
}

// Open opens an RNIC. Errors: ErrInvalidModifier (a limit out of range).
func Open(c Config) (*RNIC, error) {
	l := c.Limits.withDefaults()
	if !l.valid() {
		return nil, fmt.Errorf("open RNIC: %w: a limit is out of its range: %+v", wr.ErrInvalidModifier, l)
	}
	if c.ID == (uuid.UUID{}) {
		c.ID = uuid.New()
	}
	return &RNIC{
		id: c.ID, limits: l,
		stags:  stag.NewTable(l.Regions),
		events: newDispatcher(),
		pds:    map[*PD]struct{}{}, cqs: map[*CQ]struct{}{}, qps: map[*QP]struct{}{},
	}, nil
}

// Close closes the RNIC and frees everything it handed out: queue pairs are
// destroyed, their streams reset, regions deregistered. When it returns nothing
// of it runs any more; so an event handler may not call it. Closing twice is
// closing once.
func (r *RNIC) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	qps := slices.Collect(maps.Keys(r.qps))
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, q := range qps {
		wg.Go(func() {
			_ = q.q.Destroy()
			<-q.q.Done() // if another goroutine destroys it at this moment
		})
	}
	wg.Wait()
	r.stags.Close()
	r.events.stop()
	r.forget()
	return nil
}

// forget makes what is left of a closed RNIC's handles invalid.
func (r *RNIC) forget() {
	r.mu.Lock()
	pds := slices.Collect(maps.Keys(r.pds))
	for c := range r.cqs {
		c.q.Close() // who sleeps in Wait learns of it
	}
	clear(r.pds)
	clear(r.cqs)
	clear(r.qps)
	r.mu.Unlock()
	for _, p := range pds { // not with r.mu held: Dealloc takes it second
		p.mu.Lock()
		p.gone = true
		p.mu.Unlock()
	}
}

// open reports ErrInvalidRNIC if the RNIC is closed. It is called with mu held.
func (r *RNIC) open() error {
	if r.closed {
		return fmt.Errorf("%w: it is closed", wr.ErrInvalidRNIC)
	}
	return nil
}

// nextID gives out an identifier that is never zero, with mu held.
func (r *RNIC) nextID() uint32 {
	r.lastID++
	if r.lastID == 0 {
		r.lastID = 1
	}
	return r.lastID
}

// SetEventHandler makes h the handler of asynchronous events, replacing an
// earlier one; nil turns them off (verbs draft 9.4.2). It is called from one
// goroutine, an event at a time, in the order in which they happened. Events
// that happen while there is no handler are lost.
func (r *RNIC) SetEventHandler(h func(Event)) { r.events.set(h) }

// Attributes are what Query RNIC returns (verbs draft 9.2.1.2).
type Attributes struct {
	ID              uuid.UUID
	Vendor          string
	Version         string
	MaxQP           int
	MaxCQ           int
	MaxPD           int
	MaxMR           int
	MaxCQE          int // entries of one CQ
	MaxWR           int // outstanding work requests of one queue
	MaxSGE          int // elements of a Send or Receive list
	MaxWriteSGE     int // elements of an RDMA Write list
	MaxIRD          int // per QP; per RNIC: not shared, so 0
	MaxORD          int
	MaxIRDShared    int
	MaxORDShared    int
	MaxMessage      uint64 // octets
	MaxPrivateData  int    // octets that MPA carries at connect
	BlockMode       bool   // block lists as well as page lists
	SharedReceive   bool   // shared receive queues
	MemoryWindows   bool
	ModifyORD       bool // ORD can be changed after creation
	ModifyIRD       bool
	ModifyQueueSize bool
	CRCDefault      bool
}

// Query returns the RNIC's attributes.
func (r *RNIC) Query() Attributes {
	l := r.limits
	return Attributes{
		ID: r.id, Vendor: "softrnic", Version: Version,
		MaxQP: l.QPs, MaxCQ: l.CQs, MaxPD: l.PDs, MaxMR: l.Regions,
		MaxCQE: l.CQE, MaxWR: l.WR, MaxSGE: l.SGE, MaxWriteSGE: l.SGE,
		MaxIRD: l.IRD, MaxORD: l.ORD,
		MaxMessage: wr.MaxMessage, MaxPrivateData: 508,
		ModifyORD: true, CRCDefault: true,
	}
}

// Version is the version of this module.
const Version = "0.1.0"
