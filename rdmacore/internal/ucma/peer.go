//go:build linux && (amd64 || arm64)

package ucma

import (
	"bytes"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// With the RoCE presentation a Request says behind the program's private data that its queue pair takes Sends with both payload
// and Immediate Data (docs/decisions/0039-send-with-immediate.md), and the program's rnr_retry_count, which is for the other end's
// queue pair (0037-ends-of-infiniband.md); and a Reply says so to who has asked:
//
//	+---------------------------+---+-----------+--------+--+
//	|  Key, "SRNRoCE" in ASCII  | R | reserved  |  RNR   | I|
//	+---------------------------+---+-----------+--------+--+
//
// R tells a Reply from a Request, and RNR is 7 less rnr_retry_count: 7 is for ever, and what softrnics without it say. It stands behind,
// because RoCE pads private data: a program that shows it to be longer than it was is what its peers are used to.
const (
	peerKey   = "SRNRoCE"
	peerLen   = len(peerKey) + 1
	peerReply = 0x80
	peerRNR   = 0x0e
	peerImm   = 0x01
)

// peer is what the other end's device has said.
type peer struct {
	speaks    bool  // it has said something
	immediate bool  // it takes Sends with payload and Immediate Data
	rnr       uint8 // the rnr_retry of this end's queue pair
}

// say has a Request or a Reply say it, with the program's rnr_retry_count, of which three bits count.
func say(c *cm.Config, reply bool, rnr uint8) {
	bits := byte(peerImm) | (uverbs.RNRForever-rnr&uverbs.RNRForever)<<1
	if reply {
		bits |= peerReply
	}
	c.PrivateData = append(append(c.PrivateData, peerKey...), bits)
}

// cutPeer is private data without what the peer's device said behind it, and that.
func cutPeer(private []byte, reply bool) (program []byte, p peer) {
	n := len(private) - peerLen
	if n < 0 || !bytes.HasPrefix(private[n:], []byte(peerKey)) {
		return private, p
	}
	bits := private[len(private)-1]
	if bits&peerReply != 0 != reply {
		return private, p
	}
	return private[:n], peer{speaks: true, immediate: bits&peerImm != 0, rnr: uverbs.RNRForever - bits&peerRNR>>1}
}

// of has a queue pair know its peer's device.
func (p peer) of(q *uverbs.QP) {
	q.PeerTakesImmediate(p.immediate)
	if p.speaks {
		q.SetRNRRetry(p.rnr)
	}
}
