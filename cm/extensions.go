package cm

import (
	"bytes"
	"fmt"

	"github.com/softrnic/softrnic/mpa"
)

// An offer of RFC 7306 stands before the program's private data, in a Request and, if the
// other program asks for the same, in the Reply (docs/wire.md):
//
//	+---------------------------+---+-----------------------+--+--+
//	|  Key, "RFC7306" in ASCII  | R |       reserved        | A| I|
//	+---------------------------+---+-----------------------+--+--+
//
// R tells a Reply from a Request, so that private data that a peer sends back is no answer.
const (
	offerKey     = "RFC7306"
	offerLen     = len(offerKey) + 1
	offerReply   = 0x80
	offerAtomic  = 0x02
	offerImm     = 0x01
	offerRequest = offerAtomic | offerImm // a queue pair speaks both or none
)

// maxProgramData is how much private data a program has beside an offer, with MPA revision rev.
func maxProgramData(rev uint8) int {
	if rev == 1 {
		return mpa.MaxPrivateData - offerLen
	}
	return mpa.MaxEnhancedPrivateData - offerLen
}

// withOffer is private data behind an offer with those bits.
func withOffer(bits byte, privateData []byte, rev uint8) ([]byte, error) {
	if most := maxProgramData(rev); len(privateData) > most {
		return nil, fmt.Errorf("private data of %d octets with Config.Extensions: the limit is %d", len(privateData), most)
	}
	b := append(make([]byte, 0, offerLen+len(privateData)), offerKey...)
	return append(append(b, bits), privateData...), nil
}

// cutOffer takes an offer off private data. offers says that it is one of all extensions, and
// of a Reply if reply is set; private data without one, or with one of the other kind, is the
// program's as it is. Reserved bits are not looked at.
func cutOffer(privateData []byte, reply bool) (program []byte, offers bool) {
	if len(privateData) < offerLen || !bytes.HasPrefix(privateData, []byte(offerKey)) {
		return privateData, false
	}
	bits := privateData[offerLen-1]
	if bits&offerReply != 0 != reply {
		return privateData, false
	}
	return privateData[offerLen:], bits&offerRequest == offerRequest
}
