package verbs

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/wr"
)

// RNICStats are what an RNIC counts, with what its queues counted that are destroyed by now.
type RNICStats struct {
	// QP is the sum over all queue pairs, but for depths: Now is the sum over those there are, Most of
	// the one that had most.
	QP wr.QPStats
	// CQ and SRQ are likewise.
	CQ  wr.CQStats
	SRQ wr.SRQStats
	// ConnectsRefused are attempts to connect that the peer's program refused, ConnectsFailed
	// those that failed otherwise once there was a TCP connection.
	ConnectsRefused, ConnectsFailed uint64
	// PDs, CQs, SRQs, QPs, Regions and Windows are those there are.
	PDs, CQs, SRQs, QPs, Regions, Windows uint64
	// Faults are those that were made on purpose (package fault), by their kind.
	Faults map[string]uint64
}

// struck counts faults by their kind. The zero value is ready.
type struck struct {
	mu lockorder.Mutex[lockorder.Struck]
	by map[string]uint64 // guarded by mu
}

func (s *struck) add(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]uint64{}
	}
	s.by[kind]++
}

func (s *struck) all() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.by)
}

// ended are the counters of what has been destroyed; guarded by RNIC.mu, but the attempts.
type ended struct {
	qp       wr.QPStats
	cq       wr.CQStats
	srq      wr.SRQStats
	attempts [2]atomic.Uint64 // by verbsinternal.Attempt
}

func (e *ended) addQP(s wr.QPStats) {
	s.SendQueue.Now, s.RecvQueue.Now = 0, 0
	e.qp.Add(&s)
}

func (e *ended) addCQ(s wr.CQStats) {
	s.Queue.Now = 0
	e.cq.Add(&s)
}

func (e *ended) addSRQ(s wr.SRQStats) {
	s.Queue.Now = 0
	e.srq.Add(&s)
}

// endAll is for an RNIC that is closed, with mu held.
func (r *RNIC) endAll() {
	for _, q := range r.qps {
		r.ended.addQP(q.Stats())
	}
	for _, c := range r.cqs {
		r.ended.addCQ(c.Stats())
	}
	for _, s := range r.srqs {
		r.ended.addSRQ(s.Stats())
	}
}

// Stats are the counters at this moment, also after Close. To ask takes the locks of each queue
// for a moment; it waits for no peer.
func (r *RNIC) Stats() RNICStats {
	r.mu.Lock()
	var s RNICStats
	s.QP.Add(&r.ended.qp)
	s.CQ.Add(&r.ended.cq)
	s.SRQ.Add(&r.ended.srq)
	s.PDs, s.CQs, s.SRQs = uint64(len(r.pds)), uint64(len(r.cqs)), uint64(len(r.srqs))
	s.QPs, s.Windows = uint64(len(r.qps)), uint64(len(r.windows))
	qps, cqs, srqs := slices.Collect(maps.Values(r.qps)), slices.Collect(maps.Values(r.cqs)), slices.Collect(maps.Values(r.srqs))
	r.mu.Unlock()
	s.Regions = uint64(r.stags.Regions())
	for _, q := range qps {
		one := q.Stats()
		s.QP.Add(&one)
	}
	for _, c := range cqs {
		one := c.Stats()
		s.CQ.Add(&one)
	}
	for _, q := range srqs {
		one := q.Stats()
		s.SRQ.Add(&one)
	}
	s.ConnectsRefused = r.ended.attempts[verbsinternal.Refused].Load()
	s.ConnectsFailed = r.ended.attempts[verbsinternal.Failed].Load()
	s.Faults = r.struck.all()
	return s
}

// Stats are the counters at this moment, of all the queue pair's streams, also after Destroy.
// To ask waits for no peer.
func (q *QP) Stats() QPStats {
	if q == nil {
		return QPStats{}
	}
	return q.q.Stats()
}

// Stats are the counters at this moment.
func (c *CQ) Stats() CQStats {
	if c == nil {
		return CQStats{}
	}
	return c.q.Stats()
}

// Stats are the counters at this moment.
func (s *SRQ) Stats() SRQStats {
	if s == nil {
		return SRQStats{}
	}
	return s.q.Stats()
}

// ID names the RNIC: Config.ID, or the one it was given.
func (r *RNIC) ID() RNICID { return r.id }

// Name is Config.Name.
func (r *RNIC) Name() string { return r.name }

// QPs are the queue pairs there are, by identifier.
func (r *RNIC) QPs() []*QP { return listed(r, r.qps, (*QP).ID) }

// CQs are the completion queues there are, by identifier.
func (r *RNIC) CQs() []*CQ { return listed(r, r.cqs, (*CQ).ID) }

// SRQs are the shared receive queues there are, by identifier.
func (r *RNIC) SRQs() []*SRQ { return listed(r, r.srqs, (*SRQ).ID) }

// listed are the values of m, one of r's maps, by identifier.
func listed[K ~uint32, V any](r *RNIC, m map[K]V, id func(V) K) []V {
	r.mu.Lock()
	list := slices.Collect(maps.Values(m))
	r.mu.Unlock()
	slices.SortFunc(list, func(a, b V) int { return int(int64(id(a)) - int64(id(b))) })
	return list
}
