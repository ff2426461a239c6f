package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// What a program can do about a fault, in words, where the STag table has no better to say (stag/explain.go). What only a
// broken peer does has none.

const (
	remedyLost       = "look at the peer's program, which may have ended, and at the network"
	remedyCQ         = "make the CQ larger: it needs room for all that can be outstanding on its queues"
	remedyExtensions = "set Extensions in cm.Config, or QPConfig, at both ends"
	remedyReads      = "raise QPConfig.IRD, or let the peer keep to it"
	remedyDetails    = "look at the peer's own error, which has the details"
)

var remedies = [numFaults]string{
	faultSQLength:    "send it in messages of 2^32-1 octets at most",
	faultSQNotAgreed: remedyExtensions,
	faultZeroORD:     "raise both",

	faultSendTooLong: "post longer receives",
	faultNoReceive:   "post earlier, or set QPConfig.GracefulReceive",

	faultLLPLost: remedyLost, faultLLPReset: remedyLost, faultClosingReset: remedyLost, faultLLPTerminating: remedyLost,
	faultCRC: "octets changed on the way, or the peer counts otherwise: look at a capture with rnic dump",

	faultWriteNotEnabled:  "leave out QPConfig.NoInboundWrite",
	faultReadNotEnabled:   "leave out QPConfig.NoInboundRead",
	faultAtomicNotEnabled: "leave out QPConfig.NoInboundAtomic",
	faultOpcode:           "set Extensions at both ends, if it is of RFC 7306",
	faultAtomicMisaligned: "use multiples of 8",
	faultReadTooMany:      remedyReads,

	faultPeerClosedBusy: "agree with the peer's program on the end before it closes",
	faultClosingWork:    "wait for what was posted before closing (QP.Drain)",
	faultClosingSegment: "agree with the peer's program on the end before closing",

	faultSQCompletion: remedyCQ, faultRQCompletion: remedyCQ,
	faultSRQ:     "make another S-RQ, and queue pairs for it",
	faultStalled: "look at why the peer stops within a message, or raise SRQConfig.StallTimeout",
	faultGlobal:  "close the RNIC, and open another one",
}

// remediesAfar are for a Terminate Message of the peer's.
var remediesAfar = map[rdmap.TermCode]string{
	rdmap.CodeLocalCatastrophic: remedyDetails,
	rdmap.CodeProtSTag:          "read what is still registered there",
	rdmap.CodeProtBounds:        "read within the memory that it told of",
	rdmap.CodeProtAccess:        "register it there with RemoteRead, or RemoteAtomic",
	rdmap.CodeProtNotAssociated: "register it there in the PD of the queue pair",
	rdmap.CodeProtInvalidate:    "register it there with RemoteInvalidate, in the PD of the queue pair",
	rdmap.CodeOpcode:            remedyExtensions,

	rdmap.TermCode(ddp.CodeInvalidSTag):   "write to memory that is still registered there with RemoteWrite",
	rdmap.TermCode(ddp.CodeBounds):        "write within the memory that it told of",
	rdmap.TermCode(ddp.CodeNotAssociated): "register it there in the PD of the queue pair",
	rdmap.TermCode(ddp.CodeInvalidQN):     "leave out NoInboundRead and NoInboundAtomic there",
	rdmap.TermCode(ddp.CodeNoBuffer):      "send when a receive is posted there, and read within its IRD",
	rdmap.TermCode(ddp.CodeTooLong):       "send less, or post longer receives there",

	rdmap.TermCode(mpa.CodeCRC): remedies[faultCRC],
	rdmap.TermCode(mpa.CodeIRD): "raise IRD at the peer, or lower ORD here",
	rdmap.TermCode(mpa.CodeRTR): "give both sides an RTR in common, or dial with Model ClientServer",
}

func remedyAfar(c rdmap.TermCode) string {
	if s := remediesAfar[c]; s != "" {
		return s
	}
	return remedyDetails
}
