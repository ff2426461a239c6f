//go:build linux && (amd64 || arm64)

package uverbs

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"github.com/softrnic/softrnic/cm"
)

// The private data of a Request between queue pairs brought up by hand, behind the offer of RFC 7306 that
// package cm makes (docs/wire.md):
//
//	+----------------------+----------------------+----------------------+
//	|   "SRNQ" in ASCII    |   number asked for   |   number that asks   |
//	+----------------------+----------------------+----------------------+
//
// Of an unreliable connection it begins with "SRNU", which says too that the peer's faults end nothing.
const (
	handMagic   = "SRNQ"
	handMagicUC = "SRNU"
	handLen     = len(handMagic) + 8
)

func handData(dest, src uint32, uc bool) []byte {
	b := append(make([]byte, 0, handLen), either(uc, handMagicUC, handMagic)...)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, dest), src)
}

// parseHandData reports whether b is such data, and whether it is of an unreliable connection.
func parseHandData(b []byte) (dest, src uint32, uc, ok bool) {
	if len(b) != handLen {
		return 0, 0, false, false
	}
	switch string(b[:len(handMagic)]) {
	case handMagic:
	case handMagicUC:
		uc = true
	default:
		return 0, 0, false, false
	}
	return binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]), uc, true
}

// serve takes the Requests of a listener to their queue pairs, until it is closed. Strangers are rejected; those that say
// nothing are package cm's to bound.
func (d *Device) serve(p *handPort, l *cm.Listener) {
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		if dest, src, uc, ok := parseHandData(r.PrivateData()); ok && dest>>8 == uint32(p.number) {
			d.requested(r, dest, src, uc)
		} else {
			d.refuseAll([]*cm.Request{r}, "queue pairs of softrnic listen here")
		}
	}
}

// What a Request is rejected with: the peer's program is told it.
const (
	sayNone    = "no queue pair has this number"
	sayTaken   = "the queue pair has had its peer"
	sayAnother = "the queue pair was told another peer's GID or number"
	sayNewer   = "a later request has come"
	sayMany    = "too many wait"
	sayGone    = "it has given up"
	sayType    = "one of the two queue pairs is RC, the other UC"
)

// requested gives a Request to the link that waits for it, or keeps it for one to come, or rejects it.
func (d *Device) requested(r *cm.Request, dest, src uint32, uc bool) {
	h := &d.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.find(dest)
	switch {
	case o == nil:
		d.refuseAll([]*cm.Request{r}, sayNone)
		return
	case uc != (o.qp.uc != nil):
		d.refuseAll([]*cm.Request{r}, sayType)
		return
	case o.link != nil:
		if o.link.wants(r, src) {
			o.link.request <- r // it has room for the one
		} else {
			d.refuseAll([]*cm.Request{r}, o.link.stranger(r, src))
		}
		return
	}
	// One of an address: a later one is of a peer that has begun again.
	if i := slices.IndexFunc(o.early, func(e *cm.Request) bool { return remote(e) == remote(r) }); i >= 0 {
		d.refuseAll(o.early[i:i+1], sayNewer)
		o.early[i] = r
		return
	}
	if h.early >= maxEarly {
		d.Report("early", "more than %d connections wait for queue pairs that the program has not changed to RTR", maxEarly)
		d.refuseAll([]*cm.Request{r}, sayMany)
		return
	}
	o.early = append(o.early, r)
	h.early++
}

// wants reports whether a Request is the one that the change to RTR named, by address and by number, and the
// first; byHand.mu is held.
func (l *link) wants(r *cm.Request, src uint32) bool {
	if l.dials || l.found || src != l.dest || remote(r) != l.peer {
		return false
	}
	l.found = true
	return true
}

// remote is a Request's address, as GIDs have it.
func remote(r *cm.Request) netip.Addr {
	t, ok := r.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return plain(t.AddrPort().Addr())
}

// plain is an address without what a GID does not have.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
