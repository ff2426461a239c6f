//go:build linux && (amd64 || arm64)

package ucma

import (
	"bytes"

	"github.com/softrnic/softrnic/cm"
)

// With the RoCE presentation a Request says behind the program's private data that its queue pair takes Sends with both payload
// and Immediate Data, and a Reply says so to who has asked (docs/decisions/0039-send-with-immediate.md):
//
//	+---------------------------+---+-----------------------+--+
//	|  Key, "SRNRoCE" in ASCII  | R |       reserved        | I|
//	+---------------------------+---+-----------------------+--+
//
// R tells a Reply from a Request. It stands behind, because RoCE pads private data: a program that shows it to be longer than it was is
// what its peers are used to.
const (
	peerKey   = "SRNRoCE"
	peerLen   = len(peerKey) + 1
	peerReply = 0x80
	peerImm   = 0x01
)

// offerImmediate has a Request or a Reply say it.
func offerImmediate(c *cm.Config, reply bool) {
	bits := byte(peerImm)
	if reply {
		bits |= peerReply
	}
	c.PrivateData = append(append(c.PrivateData, peerKey...), bits)
}

// cutImmediate is private data without what the peer's device said behind it, and whether it did.
func cutImmediate(private []byte, reply bool) (program []byte, takes bool) {
	n := len(private) - peerLen
	if n < 0 || !bytes.HasPrefix(private[n:], []byte(peerKey)) {
		return private, false
	}
	bits := private[len(private)-1]
	if bits&peerReply != 0 != reply {
		return private, false
	}
	return private[:n], bits&peerImm != 0
}
