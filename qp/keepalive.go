package qp

import (
	"time"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/mpa"
)

// A Responder may miss what the Initiator sends right behind its Reply: Linux siw
// sends the Reply before it takes over the socket's callbacks, and what arrives in
// between stays unread until something else arrives. So an Initiator that has sent
// something, and nothing since the peer's first FPDU, probes it: it sends an empty RDMA
// Write, as a ready-to-receive frame is (RFC 6581 9.2), which every peer takes and
// whose STag nobody looks at (RFC 5040 5.1). In peer-to-peer mode a Read as the
// ready-to-receive frame does that work: its answer shows that the peer reads. Each probe waits twice as long as the one
// before: a peer that takes long over its Reply is held up in proportion, and one that
// never says anything gets few of them. Decision 0014.
const (
	probeAfter = 10 * time.Millisecond // the least wait for the first one
	probeTimes = 10                    // the last one comes after 10 s, if it was that
)

// newKeepalive waits for the first probe twice as long as an answer takes on its way.
func newKeepalive(rtt time.Duration, nudge func()) keepalive {
	first := max(probeAfter, 2*rtt)
	return keepalive{timer: time.AfterFunc(first, nudge), first: first, wait: first, left: probeTimes}
}

// startProbing begins to count, if the session is one to probe. The caller has QP.mu, and finish, which may have the side, waits for
// that. A peer gets there with an early octet that is no FPDU.
func (t *transmitter) startProbing() {
	if t.s.stream.Role != mpa.Initiator || !t.s.stream.Nudge {
		return
	}
	if !t.awaitSide() {
		return
	}
	defer t.mu.Unlock()
	if !t.s.stopping.Load() {
		t.keepalive = newKeepalive(tcpsock.RTT(t.llp.conn), t.probe)
	}
}

// probe sends an empty RDMA Write, if one is wanted, and says when to look again. It
// looks with the side in its hands: what another goroutine sends just now may be what the
// peer was waiting for to close, and a segment behind that would make it a bad close
// (draft 6.2.5).
func (t *transmitter) probe() {
	t.mu.Lock()
	t.probeOnce()
	t.mu.Unlock()
	t.rested()
	if t.more.Load() || t.llp.mute.Load() { // a poster has found the side taken; or nothing is left for the socket
		t.tryTransmit()
	}
}

func (t *transmitter) probeOnce() {
	n := &t.keepalive
	heard, sent := t.s.rx.firstFPDU.Load(), t.written.Load()
	if t.s.stopping.Load() || t.s.rx.rtrAnswered.Load() || heard > 0 && (sent == 0 || sent >= heard) {
		return // something has gone, or will go, to a peer that reads
	}
	if early := n.first - time.Since(t.began); sent > 0 && early > 0 {
		n.timer.Reset(early) // an answer may be on its way
		return
	}
	if n.left--; n.left > 0 {
		n.wait *= 2
		n.timer.Reset(n.wait)
	}
	if sent > 0 && t.rtr == 0 && t.batch == nil && t.msg.kind == noMessage { // what is under way is a probe too
		t.rtr = mpa.RTRWrite
		if t.pump(1) {
			t.handOver()
		}
	}
}
