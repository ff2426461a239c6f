package verbs_test

import (
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// What the model knows of each object: plain facts, beside the handle of the real
// one. The rules that change them are in model_memory_test.go (STags),
// model_queue_test.go (queues) and model_wire_test.go (traffic, ends).

// modelArena is memory of the program, twice: the octets that the RNIC works on,
// and those that the model says must be there.
type modelArena struct{ real, want []byte }

func newModelArena(real []byte) *modelArena {
	return &modelArena{real, append([]byte(nil), real...)}
}

// The three that follow touch what the RNIC touches at other times. That it is at
// other times is known from completions of the peer's, through the network, where the
// race detector sees no order.

// differs finds an octet that is not as it must be, -1 if there is none.
//
//go:norace
func (a *modelArena) differs() int {
	words := func(b []byte) []uint64 { return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8) }
	want, got := words(a.want), words(a.real)
	i := 0
	for i < len(want) && want[i] == got[i] {
		i++
	}
	i *= 8
	for ; i < len(a.want); i++ {
		if a.want[i] != a.real[i] {
			return i
		}
	}
	return -1
}

// adopt takes n octets as they are.
//
//go:norace
func (a *modelArena) adopt(off, n int) {
	for i := off; i < off+n; i++ {
		a.want[i] = a.real[i]
	}
}

// set is the program writing.
//
//go:norace
func (a *modelArena) set(i int, b byte) { a.want[i], a.real[i] = b, b }

// modelPiece is a part of an arena.
type modelPiece struct {
	in     *modelArena
	off, n int
}

// modelSpan is memory as pieces, one behind the other.
type modelSpan []modelPiece

func (s modelSpan) len() (n int) {
	for _, p := range s {
		n += p.n
	}
	return n
}

// cut is n octets from octet off on.
func (s modelSpan) cut(off, n int) (part modelSpan) {
	for _, p := range s {
		k := min(max(p.n-off, 0), n)
		if k > 0 {
			part = append(part, modelPiece{p.in, p.off + off, k})
		}
		off, n = max(off-p.n, 0), n-k
	}
	return part
}

func (s modelSpan) bytes() (b []byte) {
	for _, p := range s {
		b = append(b, p.in.want[p.off:p.off+p.n]...)
	}
	return b
}

func (s modelSpan) put(b []byte) {
	for _, p := range s {
		b = b[copy(p.in.want[p.off:p.off+p.n], b):]
	}
}

type modelPD struct {
	real  *verbs.PD
	users int
	gone  bool
}

type modelHandler struct {
	real    verbs.HandlerID
	version int // how often it was replaced
	gone    bool
}

type modelPages struct {
	real *verbs.Pages
	in   *modelArena
	size uint64
	base uint64
	gone bool
}

type modelCQ struct {
	node    *modelNode
	real    *verbs.CQ
	size    int
	handler *modelHandler // nil: none
	ties    int           // work queues
	entries []modelEntry
	armed   verbs.NotifyType
	token   bool // in Events
	full    bool // the overflow was reported, and there was no room since
	failed  bool
	gone    bool
}

// modelEntry is a completion that waits, and what happens when it is reaped.
type modelEntry struct {
	want   verbs.Completion
	reaped func()
}

type modelSRQ struct {
	node              *modelNode
	real              *verbs.SRQ
	pd                *modelPD
	depth, sge, limit int
	armed             bool
	posted            []verbs.Recv
	used              int // posted, or taken and not reaped
	ties              int
	failed, gone      bool
}

type modelQP struct {
	node                       *modelNode
	name                       string
	real                       *verbs.QP
	pd                         *modelPD
	send, recv                 *modelCQ
	srq                        *modelSRQ
	sendDepth, recvDepth       int
	sendSGE, writeSGE, recvSGE int
	ird, ord                   int
	noRead, noWrite, noBind    bool
	privileged, graceful       bool
	rqLimit                    int
	rqArmed                    bool
	windows                    int // bound to it
	state                      verbs.State
	sq                         []*modelSend
	rq                         []*modelRecv
	gone                       bool

	// Of the stream, if there is one.

	stream *verbs.StreamConfig
	peer   *modelQP
	shut   bool           // a Responder that has not seen an FPDU
	held   []modelMessage // came while no receive was posted (13.2)
	term   *modelTerm     // of the last stream, if it ended with one
	stale  bool           // term is of an earlier stay in Error: not defined
}

type modelTerm struct {
	sent bool
	code int
}

// modelSend and modelRecv are work requests that use a slot.
type modelSend struct {
	verbs.Request
	done   bool
	queued bool // its completion waits to be reaped
}

type modelRecv struct {
	verbs.Recv
	done, queued bool
}

// modelMessage is a Send or RDMA Write on its way.
type modelMessage struct {
	verbs.Request
	data []byte
}

type modelRegion struct {
	real          *verbs.MR
	pd            *modelPD
	gone          bool
	valid, shared bool
	index         uint32
	key           uint8
	rights        verbs.Access
	remote        bool // Remote Access Flag
	pbl           int
	zero          bool // zero-based
	base, length  uint64
	span          modelSpan
	size, fbo     uint64 // of the physical buffers
	scope         *modelQP
	open          bool // RemoteInvalidate
	windows       int
	// view is what the methods of the handle that look nothing up tell.
	view struct {
		verbs.TaggedBuffer
		length int
	}
}

func (r *modelRegion) stag() verbs.STag { return verbs.STag(r.index<<8) | verbs.STag(r.key) }

type modelWindow struct {
	real         *verbs.MW
	pd           *modelPD
	gone, valid  bool
	index        uint32
	key          uint8
	rights       verbs.Access
	zero         bool
	base, length uint64
	qp           *modelQP
	region       *modelRegion
	span         modelSpan
}

func (w *modelWindow) stag() verbs.STag { return verbs.STag(w.index<<8) | verbs.STag(w.key) }

// modelNode is an RNIC and all that it handed out.
type modelNode struct {
	world    *modelWorld
	number   int
	nic      *verbs.RNIC
	limits   verbs.Limits
	without  verbs.Features
	block    bool
	failed   bool
	closed   bool
	heap     *modelArena
	pds      []*modelPD
	handlers []*modelHandler
	cqs      []*modelCQ
	srqs     []*modelSRQ
	qps      []*modelQP
	regions  []*modelRegion
	windows  []*modelWindow
	pages    []*modelPages
	real     modelRecord // what the RNIC has reported
	want     []string    // what it has to report since the last comparison
	unsure   modelSpan   // octets that the draft leaves open, until then
}

func (n *modelNode) raise(e verbs.Event) {
	if e.ID != 0 && !n.failed {
		n.want = append(n.want, e.String())
	}
}

func (q *modelQP) raise(id verbs.EventID) { q.node.raise(verbs.Event{ID: id, QP: q.real.ID()}) }

func (n *modelNode) called(c *modelCQ) {
	if h := c.handler; h != nil && !h.gone {
		n.want = append(n.want, modelCall(h.real, h.version, c.real))
	}
}

func modelCall(id verbs.HandlerID, version int, c *verbs.CQ) string {
	return fmt.Sprintf("handler %d.%d is called for CQ %d", id, version, c.ID())
}

// named is what an STag index names: a region, a window, or neither.
func (n *modelNode) named(s verbs.STag) (*modelRegion, *modelWindow) {
	for _, r := range n.regions {
		if !r.gone && r.index == uint32(s)>>8 {
			return r, nil
		}
	}
	for _, w := range n.windows {
		if !w.gone && w.index == uint32(s)>>8 {
			return nil, w
		}
	}
	return nil, nil
}

// living leaves out what is gone.
func living[T any](list []T, gone func(T) bool) (some []T) {
	for _, v := range list {
		if !gone(v) {
			some = append(some, v)
		}
	}
	return some
}
