package stag

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/wr"
)

// remoteRights are the rights that a peer's operations need.
const remoteRights = wr.RemoteRead | wr.RemoteWrite

// entry is one stay of an STag in the Valid state, and the record of its
// attributes in the Invalid state after it (verbs draft 7.8).
//
// An entry is never made valid again. An STag that becomes Valid a second time
// gets a new entry under its index, so that a Ref to the old one stays revoked
// for ever: the pointer is the generation.
type entry struct {
	// Constant after publication; read without a lock.

	stag   wr.STag
	pd     wr.PDID
	qp     wr.QPID // not 0: remote use by this queue pair only
	access wr.Access

	zeroBased          bool
	noRemoteInvalidate bool

	base   uint64 // TO of the first octet
	length uint64 // base+length does not overflow

	// word is the hold word, see below.
	word atomic.Uint64

	// mem is read under a hold and cleared by settle when no further hold
	// can be taken, so that a stored Ref does not keep memory alive.
	mem []byte

	// drained is closed when the last hold is released after a revocation
	// that found holds; nil if it found none. Written under Table.mu before
	// revokedBit is set, read under Table.mu or after seeing that bit.
	drained chan struct{}
}

// The hold word:
//
//	 63 62 61                                                      0
//	+--+--+---------------------------------------------------------+
//	|R |D |                          holds                          |
//	+--+--+---------------------------------------------------------+
//
// R: revoked, no new hold succeeds. D: drained, the memory is not touched any
// more. Neither is ever cleared. A hold that comes too late counts itself
// for a moment before it sees R; it never touches memory.
const (
	revokedBit = 1 << 63
	drainedBit = 1 << 62
	minusOne   = ^uint64(0) // to add
)

func (e *entry) isRevoked() bool { return e.word.Load()&revokedBit != 0 }

// hold keeps the memory usable until release. It fails after a revocation.
func (e *entry) hold() bool {
	// Looking before counting bounds the late holds: each goroutine adds at
	// most one after R is set, so the count does reach zero.
	if e.isRevoked() {
		return false
	}
	if e.word.Add(1)&revokedBit != 0 {
		e.release()
		return false
	}
	return true
}

func (e *entry) release() {
	if e.word.Add(minusOne) == revokedBit {
		e.settle()
	}
}

// revoke makes all later holds fail. It returns what to wait for until the
// earlier ones are released; nil means that there are none. The caller has
// Table.mu, and lets go of it before it waits.
func (e *entry) revoke() <-chan struct{} {
	if e.isRevoked() {
		return e.drained
	}
	if e.word.CompareAndSwap(0, revokedBit|drainedBit) {
		e.mem = nil
		return nil
	}
	e.drained = make(chan struct{})
	e.word.Or(revokedBit)
	e.settle()
	return e.drained
}

// settle ends a revocation if no hold is left. Several releases may find the
// count at zero, when late holds come and go; one of them wins.
func (e *entry) settle() {
	if e.word.CompareAndSwap(revokedBit, revokedBit|drainedBit) {
		e.mem = nil
		close(e.drained)
	}
}

// allowsUser checks the association of the STag with the stream that uses it.
func (e *entry) allowsUser(u User, remote bool) bool {
	if e.pd != u.PD {
		return false // RFC 5041 8.2, R5040-8.1.1-M2
	}
	return !remote || e.qp == 0 || e.qp == u.QP // R5040-8.1.1-M3
}
