//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"errors"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// maxList is how many work requests go to the core at a time.
const maxList = 16

func init() {
	legacy[uabi.CmdPostSend] = &command{
		name: "POST_SEND", hot: true, req: size[uabi.PostSend](), resp: size[uabi.PostResp](), answers: true, run: postSend,
		trace: traceSends,
	}
}

// A list is the work requests of one post, as the program wrote them: n of them, each in stride octets, and behind
// them the scatter/gather elements of all.
type list struct {
	wrs    []byte
	stride int
	n      int
	sges   []byte
}

const sgeSize = 16

// requests takes the list behind the header of a post apart. All lengths are those of Linux: what does not fit is
// ENOSPC, and what is too short for a request EINVAL.
func requests(body []byte, q *uabi.PostSend, least int) (l list, err error) {
	body = body[size[uabi.PostSend]():]
	wrs, sges := uint64(q.WRCount)*uint64(q.WQESize), uint64(q.SGECount)*sgeSize
	switch {
	case int64(q.WQESize) < int64(least):
		return l, refuse(syscall.EINVAL, "work requests of %d octets are too short", q.WQESize)
	case wrs > uint64(len(body)) || sges > uint64(len(body))-wrs:
		return l, refuse(syscall.ENOSPC, "%d work requests and %d elements do not fit into the command", q.WRCount, q.SGECount)
	}
	for _, b := range body[wrs+sges:] {
		if b != 0 {
			return l, refuse(syscall.EOPNOTSUPP, "there is something behind the work requests")
		}
	}
	return list{body[:wrs], int(q.WQESize), int(q.WRCount), body[wrs : wrs+sges]}, nil
}

// elements takes the n elements of the next request.
func (l *list) elements(n uint32) ([]byte, error) {
	if uint64(n)*sgeSize > uint64(len(l.sges)) {
		return nil, refuse(syscall.EINVAL, "a work request has %d elements, the command has fewer", n)
	}
	b := l.sges[:n*sgeSize]
	l.sges = l.sges[len(b):]
	return b, nil
}

// answer writes which request was not posted: the first, counted from 1, or none.
func (c *call) answer(posted int, err error) error {
	var p uabi.PostResp
	if err != nil {
		p.BadWR = uint32(posted) + 1
	}
	c.bad = p.BadWR
	if wrong := c.respond(umem.Bytes(&p)); wrong != nil && err == nil {
		return wrong
	}
	return err
}

// postSend posts requests in order, up to the first that is refused.
func postSend(c *call) error {
	h := view[uabi.PostSend](c.body)
	l, err := requests(c.body, h, size[uabi.SendWR]())
	if err != nil {
		return c.answer(0, err)
	}
	q, err := use(&c.file.qps, h.QPHandle, "queue pair")
	if err != nil {
		return c.answer(0, err)
	}
	q.send.Lock()
	defer q.send.Unlock()
	before := q.sends.flush()
	if l.n > 0 && view[uabi.SendWR](l.wrs).SendFlags&uabi.SendWhole != 0 {
		if err := q.takesAll(c, l); err != nil {
			return c.answer(0, err)
		}
	}
	posted := 0
	c.tells = false
	for posted < l.n && err == nil {
		var n int
		n, err = q.postSome(c, &l, posted)
		posted += n
	}
	if c.tells {
		q.sendCQ.ahead(c)
	}
	if err == nil {
		q.sends.posted(posted, before)
	}
	return c.answer(posted, err)
}

// postSome posts up to maxList requests from the one at first on.
func (q *QP) postSome(c *call, l *list, first int) (int, error) {
	c.sges = c.sges[:0]
	c.slots[0] = q.slots()
	var wrong error
	n := 0
	for n < maxList && first+n < l.n {
		w := view[uabi.SendWR](l.wrs[(first+n)*l.stride:])
		if q.ud != nil {
			c.outgoing[n], wrong = q.translateUD(c, l, w, &c.sends[n])
		} else {
			wrong = q.translate(c, l, w, &c.sends[n], &c.atomics[n], &c.binds[n])
		}
		if wrong != nil {
			break
		}
		n++
		c.slots[n] = q.slots()
	}
	posted, err := 0, error(nil)
	if n > 0 {
		if q.ud != nil {
			posted, err = q.ud.posting(c.outgoing[:n], func() (int, error) { return q.qp.PostSend(c.sends[:n]...) })
		} else {
			posted, err = q.qp.PostSend(c.sends[:n]...)
		}
	}
	q.tried()
	q.inline.next, q.specials.next = c.slots[posted].inline, c.slots[posted].special // those of what was not posted are free
	if posted < n && errors.Is(err, verbs.ErrInvalidState) {
		ids := make([]uint64, n-posted)
		for i := range ids {
			ids[i] = view[uabi.SendWR](l.wrs[(first+posted+i)*l.stride:]).WRID
		}
		posted, err = q.postLate(true, posted, err, ids)
	}
	if err == nil {
		err = wrong
	}
	return posted, err
}

// slots are the next slots of a queue pair's two rings.
type slots struct{ inline, special uint64 }

func (q *QP) slots() slots { return slots{q.inline.next, q.specials.next} }

// translate makes s of w.
func (q *QP) translate(c *call, l *list, w *uabi.SendWR, s *verbs.Request, a *verbs.AtomicRequest, b *verbs.BindRequest) error {
	raw, err := l.elements(w.NumSGE)
	if err != nil {
		return err
	}
	*s = verbs.Request{ID: w.WRID}
	if w.SendFlags&uabi.SendSignaled == 0 && !q.sigAll {
		s.Flags |= verbs.Unsignaled
	} else {
		c.tells = true
	}
	if w.SendFlags&uabi.SendFence != 0 {
		s.Flags |= verbs.ReadFence
	}
	if w.SendFlags&uabi.SendInline != 0 && takesInline(w.Opcode) {
		err = q.copyInline(c, raw, s)
	} else {
		s.SGL = c.elements(raw)
	}
	if err != nil {
		return err
	}
	solicited := w.SendFlags&uabi.SendSolicited != 0
	key := verbs.STag(binary.NativeEndian.Uint32(w.Ex[:]))
	switch w.Opcode {
	case uabi.WRSend:
		s.Op = either(solicited, verbs.OpSendSE, verbs.OpSend)
	case uabi.WRSendWithInv:
		s.Op, s.Invalidate = either(solicited, verbs.OpSendSEInvalidate, verbs.OpSendInvalidate), key
	case uabi.WRSendWithImm:
		if octets(s.SGL) != 0 { // RFC 7306 6: Immediate Data is a message of its own
			return q.sendImmediate(w, s)
		}
		s.Op, s.Immediate, s.SGL = either(solicited, verbs.OpImmediateSE, verbs.OpImmediate), immediate(w.Ex, immediateAlone), nil
	case uabi.WRRDMAWrite:
		s.Op, s.Remote = verbs.OpWrite, verbs.Remote{STag: verbs.STag(w.RDMARkey()), TO: w.RemoteAddr}
	case uabi.WRRDMAWriteWithImm:
		s.Op, s.Remote = either(solicited, verbs.OpWriteImmediateSE, verbs.OpWriteImmediate), verbs.Remote{STag: verbs.STag(w.RDMARkey()), TO: w.RemoteAddr}
		s.Immediate = immediate(w.Ex, uint32(min(octets(s.SGL), immediateAlone-1)))
	case uabi.WRRDMARead:
		if q.uc != nil {
			return noAnswers("RDMA Read")
		}
		s.Op, s.Remote = verbs.OpRead, verbs.Remote{STag: verbs.STag(w.RDMARkey()), TO: w.RemoteAddr}
		switch {
		case len(s.SGL) == 1:
			s.Local, s.SGL = s.SGL[0], nil
		case len(s.SGL) > 1 && !q.file.dev.config.RoCE:
			return refuse(syscall.EINVAL, "an RDMA Read has one element (max_sge_rd), as iWARP has it; with `rnic run --as roce` it may have more")
		}
	case uabi.WRLocalInv:
		return q.invalidate(c, s, key, verbs.OpInvalidate)
	case uabi.WRBindMW:
		return q.bind(c, w, s, b)
	case uabi.WRAtomicCmpAndSwp, uabi.WRAtomicFetchAndAdd:
		if q.uc != nil {
			return noAnswers("atomic operation")
		}
		return q.atomic(c, w, s, a)
	default:
		return refuse(syscall.EOPNOTSUPP, "operation %d: the device has none such", w.Opcode)
	}
	return nil
}

// sendImmediate makes s of a Send with both a payload and Immediate Data, which softrnics alone have (decision 0039).
func (q *QP) sendImmediate(w *uabi.SendWR, s *verbs.Request) error {
	if !q.peerTakesImmediate.Load() {
		return refuse(syscall.EOPNOTSUPP, "iWARP has no Send with both a payload and Immediate Data, and the peer is no softrnic that takes one "+
			"(both ends under `rnic run --as roce`, or queue pairs brought up by hand): Write with Immediate Data, or send one of the two")
	}
	s.Op = either(w.SendFlags&uabi.SendSolicited != 0, verbs.OpSendSE, verbs.OpSend)
	s.Flags |= verbs.WithImmediate
	s.Immediate = uint64(binary.BigEndian.Uint32(w.Ex[:]))
	return nil
}

// TakesImmediate reports what PeerTakesImmediate has said.
func (q *QP) TakesImmediate() bool { return q.peerTakesImmediate.Load() }

// PeerTakesImmediate says whether the peer of the queue pair's stream takes Sends with both a payload and Immediate Data.
func (q *QP) PeerTakesImmediate(yes bool) { q.peerTakesImmediate.Store(yes) }

func takesInline(op uint32) bool {
	switch op {
	case uabi.WRSend, uabi.WRSendWithInv, uabi.WRSendWithImm, uabi.WRRDMAWrite, uabi.WRRDMAWriteWithImm:
		return true
	}
	return false
}

// elements appends elements to c.sges, and returns them.
func (c *call) elements(raw []byte) []verbs.SGE {
	k := len(c.sges)
	for ; len(raw) > 0; raw = raw[sgeSize:] {
		g := view[uabi.SGE](raw)
		c.sges = append(c.sges, verbs.SGE{STag: verbs.STag(g.Lkey), Length: g.Length, TO: g.Addr})
	}
	return c.sges[k:len(c.sges):len(c.sges)]
}

func octets(sgl []verbs.SGE) (n uint64) {
	for _, g := range sgl {
		n += uint64(g.Length)
	}
	return n
}

func either[T any](b bool, yes, no T) T {
	if b {
		return yes
	}
	return no
}

// immediateAlone stands in the second half of Immediate Data that a Send brings.
const immediateAlone = 1<<32 - 1

// immediate is how the 32 bits of C programs, in network order, travel in the eight octets of RFC 7306 6: they are
// the first four, as Chelsio's adapters have it too. The other four are reserved there; we
// tell in them, in network order, how long the Write was, which IBA reports with the receive, or
// immediateAlone without one. A peer that knows nothing of it ignores them, and has zeros there.
func immediate(ex [4]byte, length uint32) uint64 {
	return uint64(binary.BigEndian.Uint32(ex[:]))<<32 | uint64(length)
}
