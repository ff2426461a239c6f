//go:build linux && (amd64 || arm64)

package uverbs

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// A program that posts one request after the other has more to come. Once it has posted some in a row, its posts wait for company in
// memory that is shared with the library between the program and the device, and cost no Write each. They are handed to the core when
// there is no room for more, when the program looks for completions in vain or writes any other command, before it sleeps for an event,
// and after linger at most. A post that waits has been taken: the core refuses what is waiting here only if the
// queue pair has left RTS meanwhile, and then it flushes.
//
// Receives wait in a row or not while the core has plenty of them: nobody misses these until those are used. A program that answers each
// message posts a receive between the one and the other.

// PostRings are where posts wait, each those of one Send or Receive Queue. rdmacore/clib/ring.h has the same in C.
type PostRings [256]postRing

const (
	ringPosts = 128
	postSize  = 56 // of what is kept of a request: SendWR, or RecvWR

	ringSpoilt = 1 << 31 // a thread in the middle puts nothing in, but comes to the device
)

// postRing has posts of one element each. A thread that puts one in holds busy meanwhile, or goes to the device if another does.
type postRing struct {
	key   atomic.Uint64 // File.Share's id << 32 | the handle of the queue pair; 0: free
	busy  atomic.Uint32
	limit atomic.Uint32 // how many may be put in; 0: the ring is closed
	put   atomic.Uint32 // how many were; with ringSpoilt once a post has been left half put in
	_     uint32
	wrs   [ringPosts * postSize]byte
	sges  [ringPosts * sgeSize]byte
}

// waitTimes are constants, but for tests.
type waitTimes struct {
	pause  time.Duration // between two posts; then the second is not in a row with the first
	linger time.Duration // for which posts wait at most
	spare  time.Duration // for which receives do while the core has plenty
	stuck  time.Duration // for which a thread that puts one in is waited for
}

var waitsFor = waitTimes{pause: 2 * time.Microsecond, linger: 100 * time.Microsecond, spare: time.Millisecond, stuck: time.Second}

const (
	plenty = 16 // receives that the core has
	inARow = 4  // posts without a pause or a poll between them; the next may wait
	doubts = 64 // posts that do not wait behind some that waited until linger was over: what followed did not come soon
)

// The queues of a queue pair.
const (
	sendQueue = iota
	recvQueue
)

// postRing gives a queue of a queue pair a ring, or nil.
func (f *File) postRing(qp uint32, queue int) *postRing {
	if f.posts == nil {
		return nil
	}
	r := &f.posts[(qp*2+uint32(queue)+f.ringID*37)%uint32(len(f.posts))]
	if !r.key.CompareAndSwap(0, uint64(f.ringID)<<32|uint64(qp)) {
		return nil
	}
	return r
}

// close has nothing more be put in, and reports how much was. It waits for a thread that is putting something in, unless a signal
// handler of that thread's has come to the device, or the thread has left for good: then the ring is spoilt.
func (r *postRing) close(stuck time.Duration) (n int, ok bool) {
	r.limit.Store(0)
	begun := time.Time{}
	for i := 0; r.busy.Load() != 0 || r.put.Load()&ringSpoilt != 0; i++ {
		switch {
		case r.put.Load()&ringSpoilt != 0:
			return r.posts(), false
		case i < 100:
			runtime.Gosched()
		case begun.IsZero():
			begun = time.Now()
		case time.Since(begun) < stuck:
			time.Sleep(waitsFor.linger)
		default:
			r.put.Or(ringSpoilt)
		}
	}
	return r.posts(), true
}

// posts is how many posts there are; the program can write any number there.
func (r *postRing) posts() int { return int(min(r.put.Load()&^ringSpoilt, ringPosts)) }

// waiting are the posts of one queue that wait, and those before that tell whether the next may.
type waiting struct {
	q     *QP
	queue int
	cq    *cq         // where they complete
	also  *cq         // where the answers to Sends come, if that is another: who looks there misses what waits; else nil
	lock  *sync.Mutex // of the queue's posts; guards all below
	ring  *postRing   // nil without one
	open  bool
	spare bool   // open, and for receives that nobody misses yet
	armed bool   // the timer is, for one reason or the other
	row   int    // posts in a row
	looks uint32 // the program's at cq, before the last post
	last  int64  // when that was
	doubt int
	timer *time.Timer
}

func (w *waiting) init(q *QP, handle uint32, queue int, cq *cq, lock *sync.Mutex) {
	lock.Lock()
	defer lock.Unlock()
	w.q, w.queue, w.cq, w.lock = q, queue, cq, lock
	if q.recvCQ != cq { // of Sends
		w.also = q.recvCQ
	}
	w.ring = q.file.postRing(handle, queue)
}

// flush hands what waits to the core, and reports how much that was. w.lock is held.
func (w *waiting) flush() int {
	if !w.open {
		return 0
	}
	r := w.ring
	n := w.shut()
	w.hand(r, n)
	return n
}

// look is flush for a program that looks for completions: what comes next may wait again if nobody misses it. w.lock is held.
func (w *waiting) look() {
	if !w.spare {
		w.flush()
	} else if r := w.ring; r.posts() > 0 {
		w.hand(r, w.empty())
		w.seen()
	}
}

// seen is told that the program has seen completions, which may be of receives: there is room for more, or there are few left. w.lock
// is held.
func (w *waiting) seen() {
	if !w.spare {
		return
	}
	switch room, ok := w.spares(); {
	case ok:
		w.ring.limit.Store(uint32(room))
	case w.ring == nil:
		w.closed()
	default:
		w.flush()
	}
}

func (w *waiting) hand(r *postRing, n int) {
	if n > 0 {
		w.q.postAll(w.queue, &list{wrs: r.wrs[:n*postSize], stride: postSize, n: n, sges: r.sges[:n*sgeSize]})
	}
}

// shut closes the ring, and reports how many posts it has.
func (w *waiting) shut() int {
	n := w.empty()
	w.closed()
	return n
}

// empty has nothing more be put into the ring, and reports how much was. A ring that is spoilt is nobody's any more.
func (w *waiting) empty() int {
	n, ok := w.ring.close(w.q.file.dev.waits.stuck)
	if ok {
		w.ring.put.Store(0)
	} else {
		w.ring = nil
	}
	return n
}

func (w *waiting) closed() {
	w.open, w.spare = false, false
	w.note(false)
}

// note notes whether posts may wait, where the program looks.
func (w *waiting) note(open bool) {
	w.cq.note(w, open)
	if w.also != nil {
		w.also.note(w, open)
	}
}

// spares is how many receives may wait, if the core has plenty.
func (w *waiting) spares() (room int, ok bool) {
	if w.queue != recvQueue || w.ring == nil {
		return 0, false
	}
	_, room = verbsinternal.Room(w.q.qp)
	return min(room, ringPosts), w.q.recvDepth-room >= plenty
}

// posted is told that the core has taken n posts of the program, behind some that have waited. The next may wait. w.lock is held.
func (w *waiting) posted(n, before int) {
	if w.ring == nil || n != 1 {
		w.row = 0
		return
	}
	t := &w.q.file.dev.waits
	if room, ok := w.spares(); ok {
		w.admit(room, true, t.spare)
		return
	}
	if looks := w.cq.looks.Load(); looks != w.looks {
		w.row, w.looks = 0, looks
		return
	}
	now := int64(time.Since(epoch))
	if before == 0 && now-w.last > int64(t.pause) {
		w.row = 0
	}
	w.row++
	w.last = now
	switch {
	case w.row < inARow:
		return
	case w.doubt > 0:
		w.doubt--
		return
	}
	send, recv := verbsinternal.Room(w.q.qp)
	if room := min(either(w.queue == sendQueue, send, recv), ringPosts); room > 0 {
		w.admit(room, false, t.linger)
	}
}

// admit opens the ring for room posts, until left is called after some time. What nobody misses can be there for less.
func (w *waiting) admit(room int, spare bool, after time.Duration) {
	w.open, w.spare = true, spare
	w.note(true)
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(after, w.left)
	case !spare || !w.armed:
		w.timer.Reset(after)
	}
	w.armed = true
	w.ring.limit.Store(uint32(room))
}

// left takes what a program has left to wait.
func (w *waiting) left() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.armed = false
	if spare := w.spare; w.flush() > 0 && !spare {
		w.row, w.doubt = 0, doubts
	}
}

// end gives the ring back: the queue pair is gone, and what waits with it.
func (w *waiting) end() {
	if w.q == nil {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.open {
		w.shut()
	}
	if w.ring != nil {
		w.ring.key.Store(0)
		w.ring = nil
	}
}

var epoch = time.Now()

// openQueues are the queues whose posts may wait, of those that complete, or are answered, in one completion queue.
type openQueues struct {
	looks atomic.Uint32 // polls that have come to the device
	some  atomic.Bool
	mu    sync.Mutex
	list  []*waiting
}

// note notes whether posts of w may wait.
func (o *openQueues) note(w *waiting, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if open {
		o.list = append(o.list, w)
	} else if i := slices.Index(o.list, w); i >= 0 {
		o.list = slices.Delete(o.list, i, i+1)
	}
	o.some.Store(len(o.list) > 0)
}

// each calls f for each queue, but with try for those that are being posted to, which see to it themselves.
func (o *openQueues) each(try bool, f func(*waiting)) {
	if !o.some.Load() {
		return
	}
	var room [16]*waiting
	o.mu.Lock()
	all := append(room[:0], o.list...)
	o.mu.Unlock()
	for _, w := range all {
		if !try {
			w.lock.Lock()
		} else if !w.lock.TryLock() {
			continue
		}
		f(w)
		w.lock.Unlock()
	}
}

// Settle hands all posts that wait to the core: something is about to happen that they come before.
func (d *Device) Settle() {
	if list := d.idlers.list.Load(); list != nil {
		for _, v := range *list {
			v.each(false, func(w *waiting) { w.flush() })
		}
	}
}

// postAll has the core take posts that waited. Those that it does not take flush.
func (q *QP) postAll(queue int, l *list) {
	c := calls.Get().(*call)
	defer calls.Put(c)
	c.file, c.tells = q.file, false
	posted, err := 0, error(nil)
	w := uabi.WC{Status: uabi.WCWRFlushErr, QPNum: q.qpn, PortNum: 1}
	to := q.sendCQ
	if queue == recvQueue {
		w.Opcode, to = uabi.WCRecv, q.recvCQ
		posted, _ = c.receiveAll(l, q.postRecv)
	} else {
		for posted < l.n && err == nil {
			var n int
			n, err = q.postSome(c, l, posted)
			posted += n
		}
		if c.tells {
			to.ahead(c)
		}
	}
	for ; posted < l.n; posted++ {
		w.WRID = view[uabi.RecvWR](l.wrs[posted*l.stride:]).WRID
		to.add(w)
	}
}
