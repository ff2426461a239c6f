//go:build linux && (amd64 || arm64)

package uverbs

import (
	"fmt"
	"math"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// Unreliable connections (UC) between softrnics: the stream of a reliable one, whose queue pairs do not end for what the peer does
// (decision 0043). What the peer sends and has no place is dropped; what is sent to a peer that has gone, or was never there, goes
// nowhere and completes. The core does both (qp/lossy.go); here it is told.

// unreliable is what a queue pair of UC has beside the others.
type unreliable struct {
	q    *QP
	said atomic.Bool // the user has been told of a message that was dropped
}

// newUnreliable makes the queue pair of q in the core one of UC.
func newUnreliable(q *QP) *unreliable {
	u := &unreliable{q: q}
	verbsinternal.Unreliable(q.qp, u.dropped, u.mute, ofWrite)
	return u
}

// isUC reports whether the connection of a queue pair is unreliable.
func isUC(c *uabi.QPConfig) bool { return c.QPType == uabi.QPTUC }

// ofWrite reports whether Immediate Data ends a Write: see immediate.
func ofWrite(data uint64) bool { return data&math.MaxUint32 != immediateAlone }

// dropped is told of a message that had no place.
func (u *unreliable) dropped(why func() *verbs.Reason) {
	c := &u.q.file.dev.config
	first := !u.said.Swap(true) && c.Report != nil
	if !first && c.Trace == nil {
		return
	}
	text := words(why().WithoutQP(), "rkey")
	if first {
		c.Report(fmt.Sprintf("queue pair %#x (UC) has dropped a message, as such queue pairs do, and will not tell of others: %s", u.q.qpn, text))
	}
	if c.Trace != nil {
		c.Trace(fmt.Sprintf("uverbs dropped(qpn=%#x): %s", u.q.qpn, text))
	}
}

// mute is told that nothing more will come from the peer. The program is not.
func (u *unreliable) mute(why *verbs.Reason) {
	if t := u.q.file.dev.config.Trace; t != nil {
		text := "the peer has closed"
		if why != nil {
			text = words(why.WithoutQP(), "rkey")
		}
		t(fmt.Sprintf("uverbs queue pair %#x (UC): what is sent goes nowhere from now on: %s", u.q.qpn, text))
	}
}

// noAnswers is what UC says of an operation with an answer (IBA 9.8: it has none).
func noAnswers(what string) error {
	return refuse(syscall.EINVAL, "an unreliable connection (UC) has no %s: nothing comes back from the peer", what)
}
