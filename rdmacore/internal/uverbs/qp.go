//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// QP is a queue pair of a program.
type QP struct {
	file   *File
	qp     *verbs.QP
	qpn    uint32
	user   uint64
	pd     *pd
	srq    *srq
	sigAll bool
	async  source
	// depths as allocated, and what the program asked for inline data, in octets.
	sendDepth, recvDepth int
	sendSGE, recvSGE     int
	maxInline            int

	sendCQ, recvCQ *cq
	ud             *datagrams  // of a UD queue pair; else nil
	uc             *unreliable // of a UC queue pair; else nil
	// peerTakesImmediate says that the peer is a softrnic that takes Sends with payload and Immediate Data.
	peerTakesImmediate atomic.Bool

	telling sync.Mutex // an end is told of, and none of a stream before RESET behind that; before a completion queue's, and mu

	hushed atomic.Uint32 // what flushes without an event: see hush

	// struck is set once a plan has had a completion end otherwise: all that follow flush.
	struck atomic.Bool

	ready   readiness
	errands errands              // end with the queue pair
	trying  atomic.Pointer[link] // what is to be told of the first Send; see tried

	send     sync.Mutex // held over a post to the Send Queue; guards the fields below
	inline   inlineRing
	specials specials
	sends    waiting

	recv  sync.Mutex // held over a post to the Receive Queue; guards recvs
	recvs waiting

	mu sync.Mutex // the fields below
	// state is the program's view, one of uabi.QPS: of a queue pair without a stream what it set, else the
	// stream's.
	state uint8
	attr  uabi.ModifyQP // what was set last of each attribute; AttrMask has those that were since RESET
	taken Connection
	ending
}

// Connection is what has brought a queue pair up, or is about to: an rdma_cm id, or a change to RTR by hand.
type Connection interface {
	// Disconnect begins an orderly close: the program has changed the queue pair to SQD or to ERR. It
	// does not block, and may come more than once, or after the end.
	Disconnect()
	// Leaving is told, again and again, that the peer has closed, and that what it sent before waits for receives. It does not block.
	Leaving()
}

// Verbs is the queue pair of the RNIC.
func (q *QP) Verbs() *verbs.QP { return q.qp }

// QPN is its number: TCP port << 8 | index.
func (q *QP) QPN() uint32 { return q.qpn }

// UD reports whether it carries datagrams.
func (q *QP) UD() bool { return q.ud != nil }

// UC reports whether its connection is unreliable.
func (q *QP) UC() bool { return q.uc != nil }

// SetTimeout sets the ACK timeout that QUERY_QP tells, in the form of InfiniBand (4.096 us << n). TCP has its own.
func (q *QP) SetTimeout(n uint8) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attr.Timeout = n
}

// File is the open that it belongs to.
func (q *QP) File() *File { return q.file }

// Take says who brings the queue pair up: once, until it is changed to RESET. Errors: EINVAL.
func (q *QP) Take(c Connection) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken != nil {
		return refuse(syscall.EINVAL, "queue pair %#x has a connection already", q.qpn)
	}
	q.taken = c
	q.hush()
	if q.discreet() {
		q.file.dev.watchSilent()
	}
	return nil
}

func init() {
	legacy[uabi.CmdCreateQP] = withDriver(control("CREATE_QP", func(f *File, q *uabi.CreateQPDriver, p *uabi.CreateQPResp) error {
		if err := extendedQP(q); err != nil {
			return err
		}
		return f.createQP(&q.QPConfig, p)
	}), size[uabi.CreateQP]())
	extended[uabi.CmdCreateQP] = exControl("EX_CREATE_QP", size[uabi.QPConfig]()+4, size[uabi.CreateQPResp]()+8,
		func(f *File, q *uabi.ExCreateQP, p *uabi.ExCreateQPResp) error {
			if q.CompMask != 0 || q.Reserved != 0 {
				return refuse(syscall.EINVAL, "comp_mask %#x: the device has no indirection tables", q.CompMask)
			}
			if q.CreateFlags != 0 || q.SourceQPN != 0 {
				return refuse(syscall.EINVAL, "create_flags %#x: the device has none", q.CreateFlags)
			}
			return f.createQP(&q.QPConfig, &p.Base)
		}, func(p *uabi.ExCreateQPResp, n uint32) { p.ResponseLength = n })
	legacy[uabi.CmdQueryQP] = control("QUERY_QP", (*File).queryQP)
	legacy[uabi.CmdDestroyQP] = control("DESTROY_QP", (*File).destroyQP)
}

func (f *File) createQP(q *uabi.QPConfig, p *uabi.CreateQPResp) error {
	if q.QPType != uabi.QPTRC && !isUC(q) && !isUD(q) {
		return refuse(syscall.EOPNOTSUPP, "queue pair type %d: the device has RC (2), UC (3) and UD (4) alone", q.QPType)
	}
	switch {
	case q.MaxSendWR > maxWR || q.MaxRecvWR > maxWR:
		return refuse(syscall.EINVAL, "more than %d work requests", maxWR)
	case q.MaxSendSGE > maxSGE || q.MaxRecvSGE > maxSGE:
		return refuse(syscall.EINVAL, "more than %d scatter/gather elements", maxSGE)
	case q.MaxInlineData > maxInline:
		return refuse(syscall.EINVAL, "more than %d octets of inline data", maxInline)
	}
	o := &QP{file: f, user: q.UserHandle, sigAll: q.SQSigAll != 0, maxInline: int(max(q.MaxInlineData, minInline)), async: source{ch: f.async.Load()}}
	if isUD(q) {
		o.ud = newDatagrams()
	}
	c, err := f.qpConfig(q, o)
	if err != nil {
		return err
	}
	if o.qpn, err = f.dev.newQPN(o); err != nil {
		return err
	}
	c.ID = verbs.QPID(o.qpn)
	if o.qp, err = f.dev.rnic.CreateQP(c); err != nil {
		f.dev.freeQPN(o)
		return err
	}
	o.uses(1) // endQP takes it back
	a, err := o.qp.Query()
	if err != nil {
		_ = f.dev.endQP(o)
		return err
	}
	o.sendDepth, o.recvDepth, o.sendSGE, o.recvSGE = a.SendDepth, a.RecvDepth, a.SendSGE, a.RecvSGE
	if o.ud == nil {
		o.ready.init(o)
	}
	if isUC(q) {
		o.uc = newUnreliable(o)
	}
	f.dev.qpns.Store(o.qpn, o)
	*p = uabi.CreateQPResp{
		QPN: o.qpn, MaxSendWR: uint32(o.sendDepth), MaxRecvWR: uint32(o.recvDepth),
		MaxSendSGE: uint32(o.sendSGE), MaxRecvSGE: uint32(o.recvSGE), MaxInlineData: uint32(o.maxInline),
	}
	if err := created(f, &f.qps, o, &p.QPHandle, func() { _ = f.dev.endQP(o) }); err != nil || o.ud != nil {
		return err
	}
	o.sends.init(o, p.QPHandle, sendQueue, o.sendCQ, &o.send)
	if o.srq == nil {
		o.recvs.init(o, p.QPHandle, recvQueue, o.recvCQ, &o.recv)
	}
	return nil
}

// uses counts the queue pair where its requests complete.
func (q *QP) uses(n int32) {
	q.sendCQ.qps.Add(n)
	if q.recvCQ != q.sendCQ {
		q.recvCQ.qps.Add(n)
	}
}

// qpConfig is the core's view of what the program asks for. Every queue pair speaks RFC 7306, waits for a receive as
// InfiniBand's retries do (UC has none), and reads into memory that has Local Write: no right is added for that. With the RoCE
// presentation a Write completes when it is placed.
func (f *File) qpConfig(q *uabi.QPConfig, o *QP) (c verbs.QPConfig, err error) {
	if o.pd, err = use(&f.pds, q.PDHandle, "protection domain"); err != nil {
		return c, err
	}
	send, err := use(&f.cqs, q.SendCQHandle, "completion queue")
	if err != nil {
		return c, err
	}
	recv, err := use(&f.cqs, q.RecvCQHandle, "completion queue")
	if err != nil {
		return c, err
	}
	o.sendCQ, o.recvCQ = send, recv
	c = verbs.QPConfig{
		PD: o.pd.pd, SendCQ: send.cq, RecvCQ: recv.cq,
		SendDepth: max(1, int(q.MaxSendWR)), RecvDepth: max(1, int(q.MaxRecvWR)),
		SendSGE: max(1, int(q.MaxSendSGE)), RecvSGE: max(1, int(q.MaxRecvSGE)),
		IRD: maxReads, ORD: maxReads, GracefulReceive: true, Extensions: true, ReadIntoLocal: true, PlacedWrites: f.dev.config.RoCE,
		SendImmediate: true, Context: o,
	}
	if f.dev.config.RoCE {
		c.ReadSGE = c.SendSGE
	}
	if isUC(q) {
		c.NoReads, c.GracefulReceive, c.PlacedWrites = true, false, false
	}
	if q.IsSRQ != 0 {
		if o.srq, err = use(&f.srqs, q.SRQHandle, "shared receive queue"); err != nil {
			return c, err
		}
		c.SRQ = o.srq.srq
	}
	return c, nil
}

func (f *File) queryQP(q *uabi.QueryQP, p *uabi.QueryQPResp) error {
	v, err := use(&f.qps, q.QPHandle, "queue pair")
	if err != nil {
		return err
	}
	a, err := v.qp.Query()
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s, m := v.shown(v.current(a.State)), &v.attr
	*p = uabi.QueryQPResp{
		Dest: m.Dest, AltDest: m.AltDest,
		MaxSendWR: uint32(v.sendDepth), MaxRecvWR: uint32(v.recvDepth), MaxSendSGE: uint32(v.sendSGE), MaxRecvSGE: uint32(v.recvSGE),
		MaxInlineData: uint32(v.maxInline),
		Qkey:          m.Qkey, RQPSN: m.RQPSN, SQPSN: m.SQPSN, DestQPNum: m.DestQPNum, QPAccessFlags: m.QPAccessFlags,
		PkeyIndex: m.PkeyIndex, AltPkeyIndex: m.AltPkeyIndex, QPState: s, CurQPState: s, PathMTU: m.PathMTU, PathMigState: m.PathMigState,
		MaxRdAtomic: m.MaxRdAtomic, MaxDestRdAtomic: m.MaxDestRdAtomic, MinRNRTimer: m.MinRNRTimer,
		PortNum: m.PortNum, Timeout: m.Timeout, RetryCnt: m.RetryCnt, RNRRetry: m.RNRRetry,
		AltPortNum: m.AltPortNum, AltTimeout: m.AltTimeout,
	}
	if v.sigAll {
		p.SQSigAll = 1
	}
	return nil
}

// shown is a state as a query tells it: an RNIC has no RESET, its queue pairs begin in INIT, says Linux's siw.
func (q *QP) shown(s uint8) uint8 {
	if s == uabi.QPSReset && !q.file.dev.config.RoCE {
		return uabi.QPSInit
	}
	return s
}

func (f *File) destroyQP(q *uabi.DestroyQP, p *uabi.DestroyQPResp) error {
	return destroy(&f.qps, q.QPHandle, "queue pair", func(v *QP) error {
		if err := f.dev.endQP(v); err != nil {
			return err
		}
		p.EventsReported = v.async.end()
		return nil
	})
}

// endQP destroys the queue pair: a stream that is still there is closed, or reset if that takes too long.
func (d *Device) endQP(q *QP) error {
	q.part()
	err := q.qp.Destroy()
	if errors.Is(err, verbs.ErrWindowsBound) {
		q.unbind()
		err = q.qp.Destroy()
	}
	if err != nil {
		return err
	}
	q.recvCQ.sift()
	q.uses(-1)
	q.ready.end()
	q.errands.end()
	q.sends.end()
	q.recvs.end()
	if q.ud != nil {
		q.ud.stop()
	}
	q.send.Lock()
	q.inline.free()
	q.freeHidden()
	q.send.Unlock()
	d.qpns.CompareAndDelete(q.qpn, q)
	d.freeQPN(q)
	return nil
}
