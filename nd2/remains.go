package nd2

import (
	"math"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// remains are what a queue pair has in completion queues after its release. It is
// forgotten with the last completion that is translated: a peer that breaks its
// connections may not fill the adapter with queue pairs, whatever the program waits
// for meanwhile. Of completions that were lost, as their queue overflowed, the queue
// tells instead, when it is empty or closed.
type remains struct {
	qp   *QueuePair
	seen atomic.Uint64 // completions of verbs that were translated
	made atomic.Uint64 // those there have been; unknown until the release
	end  retirement
}

const unknownYet = math.MaxUint64

func (r *remains) init(q *QueuePair) {
	r.qp = q
	r.made.Store(unknownYet)
	r.end.forget = q.forget
}

// translated counts a completion.
func (r *remains) translated() {
	if n := r.seen.Add(1); n == r.made.Load() {
		r.end.end()
	}
}

// retire forgets the queue pair, which is destroyed, once its results are retrieved.
func (q *QueuePair) retire() {
	r := &q.remains
	_ = q.cfg.initiator.grow(-q.extra) // giving back does not fail
	made := completions(q.v)
	if q.after != nil {
		made += completions(q.after)
	}
	r.made.Store(made)
	if r.seen.Load() == made {
		r.end.end()
		return
	}
	q.retireFromBoth()
}

// retireFromBoth forgets the queue pair once its two completion queues can have nothing of it any more.
func (q *QueuePair) retireFromBoth() {
	end := &q.remains.end
	end.left.Store(2)
	q.cfg.initiator.retire(end)
	q.cfg.receive.retire(end)
}

// abandon is retire for a queue pair that the end of the adapter has destroyed, unless it has retired.
func (q *QueuePair) abandon() {
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	if !q.gone && !q.lost {
		q.lost = true
		q.inlined, q.after = false, nil // gone with the RNIC, as the room for parts in v
		c := q.cfg.initiator
		c.mu.Lock()
		c.extra -= q.extra
		c.mu.Unlock()
		q.retireFromBoth()
		q.counted.Close()
	}
}

// completions are those of a queue pair that is destroyed, the lost ones too.
func completions(v *verbs.QP) (n uint64) {
	for _, of := range v.Stats().Completions {
		n += of
	}
	return n
}

// forget makes requests and completions find the queue pair no more.
func (q *QueuePair) forget() {
	for _, r := range []*ring{q.sends, q.receives} {
		if r != nil {
			q.a.disown(r.id)
		}
	}
	q.a.mu.Lock()
	defer q.a.mu.Unlock()
	delete(q.a.qps, q.v.ID())
}
