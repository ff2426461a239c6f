//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"syscall"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

const (
	attrsLegacy = uabi.QPDestQPN<<1 - 1 // IB_USER_LEGACY_LAST_QP_ATTR_MASK
	attrsKnown  = attrsLegacy | uabi.QPRateLimit
)

func init() {
	legacy[uabi.CmdModifyQP] = control("MODIFY_QP", func(f *File, q *uabi.ModifyQP, _ *uabi.None) error {
		if q.AttrMask&^attrsLegacy != 0 {
			return refuse(syscall.EOPNOTSUPP, "attr_mask %#x has unknown bits", q.AttrMask)
		}
		return f.modifyQP(q)
	})
	extended[uabi.CmdModifyQP] = exControl("EX_MODIFY_QP", size[uabi.ModifyQP](), size[uabi.ExModifyQPResp](),
		func(f *File, q *uabi.ExModifyQP, _ *uabi.ExModifyQPResp) error {
			if q.Base.AttrMask&^attrsKnown != 0 {
				return refuse(syscall.EOPNOTSUPP, "attr_mask %#x has unknown bits", q.Base.AttrMask)
			}
			if q.Base.AttrMask&uabi.QPRateLimit != 0 {
				return refuse(syscall.EINVAL, "the device limits no rates")
			}
			return f.modifyQP(&q.Base)
		}, func(p *uabi.ExModifyQPResp, n uint32) { p.ResponseLength = n })
}

// current is the state that a program sees: that of the stream if there is one, else what it set.
func (q *QP) current(s verbs.State) uint8 {
	if q.state == uabi.QPSErr { // the program has said so; with the RoCE presentation the stream takes its time to end (fail)
		return uabi.QPSErr
	}
	rts := uint8(uabi.QPSRTS)
	if _, hand := q.taken.(*link); q.ud != nil || hand && q.state == uabi.QPSRTR { // its stream says nothing of what the program wants
		rts = q.state
	}
	if q.ending.closed && !q.ending.told && q.discreet() || q.unanswered() {
		return rts
	}
	if q.struck.Load() { // or is about to be
		return uabi.QPSErr
	}
	switch s {
	case verbs.StateRTS:
		return rts
	case verbs.StateClosing:
		return uabi.QPSSQD
	case verbs.StateTerminate, verbs.StateError:
		return uabi.QPSErr
	default:
		return q.state
	}
}

// successors are the states that a program may change to from each, by ib_modify_qp_is_ok. RTR and RTS without
// a connection only say what the program wants: what brings the queue pair up is DestQPN in the
// change to RTR, or rdma_cm.
var successors = [...]uint8{
	uabi.QPSReset: 1<<uabi.QPSReset | 1<<uabi.QPSInit | 1<<uabi.QPSErr,
	uabi.QPSInit:  1<<uabi.QPSReset | 1<<uabi.QPSInit | 1<<uabi.QPSRTR | 1<<uabi.QPSErr,
	uabi.QPSRTR:   1<<uabi.QPSReset | 1<<uabi.QPSRTS | 1<<uabi.QPSErr,
	uabi.QPSRTS:   1<<uabi.QPSReset | 1<<uabi.QPSRTS | 1<<uabi.QPSSQD | 1<<uabi.QPSErr,
	uabi.QPSSQD:   1<<uabi.QPSReset | 1<<uabi.QPSRTS | 1<<uabi.QPSSQD | 1<<uabi.QPSErr,
	uabi.QPSSQE:   1<<uabi.QPSReset | 1<<uabi.QPSRTS | 1<<uabi.QPSErr,
	uabi.QPSErr:   1<<uabi.QPSReset | 1<<uabi.QPSErr,
}

func (f *File) modifyQP(m *uabi.ModifyQP) error {
	v, err := use(&f.qps, m.QPHandle, "queue pair")
	if err != nil {
		return err
	}
	if m.AttrMask&uabi.QPPort != 0 && m.PortNum != 1 || m.AttrMask&uabi.QPAV != 0 && m.Dest.PortNum > 1 {
		return refuse(syscall.EINVAL, "the device has port 1 alone")
	}
	if err := v.refused(m); err != nil {
		return err
	}
	if m.AttrMask&uabi.QPState == 0 {
		if err := v.permit(m); err != nil {
			return err
		}
		v.set(m)
		return nil
	}
	return v.change(m)
}

// refused is what cannot be done of m, and with the RoCE presentation what an adapter refuses.
func (q *QP) refused(m *uabi.ModifyQP) error {
	q.mu.Lock()
	now, taken := q.current(q.qp.State()), q.taken
	q.mu.Unlock()
	_, hand := taken.(*link)
	if m.AttrMask&uabi.QPState != 0 {
		if m.QPState > uabi.QPSErr {
			return refuse(syscall.EINVAL, "state %d does not exist", m.QPState)
		}
		if successors[now]&(1<<m.QPState) == 0 && (taken == nil || hand || m.QPState != uabi.QPSSQD) {
			return refuse(syscall.EINVAL, "from %s to %s there is no way", stateName(now), stateName(m.QPState))
		}
	}
	if !q.file.dev.config.RoCE || m.AttrMask == 0 || taken != nil && !hand {
		return nil
	}
	err := q.wrongAttributes(m, now)
	if err != nil {
		q.file.dev.Report("modify "+err.Error(), "ibv_modify_qp is refused, as RoCE adapters do: %s", refusal(err).Why)
	}
	return err
}

// change goes to the state that m names, and sets the other attributes.
func (q *QP) change(m *uabi.ModifyQP) error {
	q.mu.Lock()
	taken := q.taken
	q.mu.Unlock()
	switch m.QPState {
	case uabi.QPSReset:
		if err := q.reset(); err != nil {
			return err
		}
	case uabi.QPSErr:
		if err := q.fail(taken); err != nil {
			return err
		}
		if q.qp.State() == verbs.StateError {
			q.inError()
		}
	case uabi.QPSSQD:
		q.releaseHeld()
		if taken != nil { // the beginning of rdma_disconnect on an RNIC
			taken.Disconnect()
		}
	case uabi.QPSInit, uabi.QPSRTS:
		if err := q.permit(m); err != nil {
			return err
		}
	case uabi.QPSRTR:
		if err := q.permit(m); err != nil { // before the peer can ask for anything
			return err
		}
		if q.ud != nil {
			if err := q.file.dev.feed(q); err != nil {
				return err
			}
		} else if m.AttrMask&uabi.QPDestQPN != 0 && taken == nil {
			if err := q.file.dev.toRTR(q, m); err != nil {
				return err
			}
		}
	}
	q.set(m)
	return nil
}

// permit lets the peer do what m's access flags say, and nothing else, if m has some. Of a queue pair that has ended it
// changes nothing; in RESET it holds until INIT says otherwise.
func (q *QP) permit(m *uabi.ModifyQP) error {
	s := q.qp.State()
	if m.AttrMask&uabi.QPAccessFlags == 0 || q.ud != nil || s != verbs.StateIdle && s != verbs.StateRTS {
		return nil
	}
	without := func(flag uint32) *bool { no := m.QPAccessFlags&flag == 0; return &no }
	err := q.qp.Modify(verbs.ModifyQP{
		Next: s, NoInboundRead: without(uabi.AccessRemoteRead), NoInboundWrite: without(uabi.AccessRemoteWrite), NoInboundAtomic: without(uabi.AccessRemoteAtomic),
	})
	if err != nil && q.qp.State() != s { // it has just been connected, or has ended
		return q.permit(m)
	}
	return err
}

// fail is a change to ERR. A program that presents itself to an InfiniBand adapter begins
// rdma_disconnect so: its peer has to see a close and not a reset.
func (q *QP) fail(taken Connection) error {
	q.releaseHeld()
	if q.file.dev.config.RoCE && taken != nil && q.qp.State() == verbs.StateRTS {
		taken.Disconnect()
		return nil
	}
	s := q.qp.State()
	if s == verbs.StateError || s == verbs.StateTerminate {
		return nil
	}
	if s == verbs.StateIdle {
		q.unlink()
	}
	err := q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
	if errors.Is(err, verbs.ErrInvalidState) && q.qp.State() != verbs.StateRTS { // it is closing, or has just ended
		return nil
	}
	return err
}

// reset is a change to RESET: what was posted is forgotten, and another connection may come.
func (q *QP) reset() error {
	q.mu.Lock()
	q.ending.last = true // RESET tells nothing of it
	q.ending.dropping = true
	q.hush()
	q.mu.Unlock()
	q.unlink()
	defer q.unfeed()
	if q.qp.State() != verbs.StateIdle {
		if err := q.fail(nil); err != nil {
			return err
		}
		<-q.qp.Done() // prompt: the stream is reset
	}
	q.mu.Lock()
	l, hand := q.taken.(*link)
	q.mu.Unlock()
	if hand {
		<-l.over // it would take the next connection for its own
	}
	if q.qp.State() != verbs.StateIdle {
		if err := q.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}); err != nil && q.qp.State() != verbs.StateIdle {
			return err
		}
	}
	q.telling.Lock() // what tells of the end is done, or finds another connection
	defer q.telling.Unlock()
	err := q.forget()
	q.mu.Lock()
	_ = q.ending.takeWaiting()
	q.taken, q.ending, q.attr.AttrMask = nil, ending{}, 0
	q.hush()
	q.struck.Store(false)
	q.mu.Unlock()
	if q.ud == nil {
		verbsinternal.PlaceSends(q.qp, false)
	}
	return err
}

// unfeed ends what feeds a UD queue pair, and forgets what it has on the way.
func (q *QP) unfeed() {
	if q.ud != nil {
		q.recv.Lock() // a post that is under way has noted its receives
		defer q.recv.Unlock()
		q.ud.stop()
		q.ud.incoming = nil
	}
}

// set keeps what the mask names.
func (q *QP) set(m *uabi.ModifyQP) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := &q.attr
	a.AttrMask |= m.AttrMask
	keep(m, uabi.QPState, &q.state, m.QPState)
	keep(m, uabi.QPAccessFlags, &a.QPAccessFlags, m.QPAccessFlags)
	keep(m, uabi.QPPkeyIndex, &a.PkeyIndex, m.PkeyIndex)
	keep(m, uabi.QPPort, &a.PortNum, m.PortNum)
	keep(m, uabi.QPQkey, &a.Qkey, m.Qkey)
	keep(m, uabi.QPAV, &a.Dest, m.Dest)
	keep(m, uabi.QPPathMTU, &a.PathMTU, m.PathMTU)
	keep(m, uabi.QPTimeout, &a.Timeout, m.Timeout)
	keep(m, uabi.QPRetryCnt, &a.RetryCnt, m.RetryCnt)
	keep(m, uabi.QPRNRRetry, &a.RNRRetry, m.RNRRetry)
	if m.AttrMask&uabi.QPRNRRetry != 0 {
		q.placeSends()
	}
	keep(m, uabi.QPRQPSN, &a.RQPSN, m.RQPSN)
	keep(m, uabi.QPMaxQPRdAtomic, &a.MaxRdAtomic, m.MaxRdAtomic)
	keep(m, uabi.QPAltPath, &a.AltDest, m.AltDest)
	keep(m, uabi.QPAltPath, &a.AltPortNum, m.AltPortNum)
	keep(m, uabi.QPAltPath, &a.AltTimeout, m.AltTimeout)
	keep(m, uabi.QPAltPath, &a.AltPkeyIndex, m.AltPkeyIndex)
	keep(m, uabi.QPMinRNRTimer, &a.MinRNRTimer, m.MinRNRTimer)
	keep(m, uabi.QPSQPSN, &a.SQPSN, m.SQPSN)
	keep(m, uabi.QPMaxDestRdAtomic, &a.MaxDestRdAtomic, m.MaxDestRdAtomic)
	keep(m, uabi.QPPathMigState, &a.PathMigState, m.PathMigState)
	keep(m, uabi.QPDestQPN, &a.DestQPNum, m.DestQPNum)
	if q.ending.over && q.unanswered() {
		q.await(q.taken)
	}
}

// keep sets an attribute if m names it.
func keep[T any](m *uabi.ModifyQP, bit uint32, to *T, v T) {
	if m.AttrMask&bit != 0 {
		*to = v
	}
}

func stateName(s uint8) string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "an unknown state"
}

var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}
