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
	remedyExtensions = "set QPConfig.Extensions, or cm.Config.Extensions at both ends"
	remedyReads      = "let the peer keep to the IRD that was agreed on, or raise QPConfig.IRD"
	remedyDetails    = "look at the peer's own error, which has the details"
)

var remedies = [numFaults]string{
	faultSQLength:    "send it in messages of 2^32-1 octets at most",
	faultSQNotAgreed: remedyExtensions,
	faultZeroORD:     "set ORD in QPConfig here, and IRD at the peer, above 0",

	faultSendTooLong: "post receives as long as the longest message that the peer sends",
	faultNoReceive:   "post receives before the peer sends, or set QPConfig.GracefulReceive",

	faultLLPLost: remedyLost, faultLLPReset: remedyLost, faultClosingReset: remedyLost, faultLLPTerminating: remedyLost,
	faultCRC: "octets were changed on the way, or the peer counts the CRC otherwise: capture it, and look at it with rnic dump",

	faultWriteNotEnabled:  "create the queue pair without QPConfig.NoInboundWrite",
	faultReadNotEnabled:   "create the queue pair without QPConfig.NoInboundRead",
	faultAtomicNotEnabled: "create the queue pair without QPConfig.NoInboundAtomic",
	faultOpcode:           "if it is one of RFC 7306, " + remedyExtensions,
	faultAtomicMisaligned: "use addresses that are multiples of 8",
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
	rdmap.CodeProtSTag:          "read from memory that is registered at the peer: use an STag that it has told, and not too late",
	rdmap.CodeProtBounds:        "read within the memory that the peer has told of",
	rdmap.CodeProtAccess:        "register the memory at the peer with RemoteRead, or for an Atomic with RemoteAtomic",
	rdmap.CodeProtNotAssociated: "register the memory at the peer in the PD of its queue pair",
	rdmap.CodeProtInvalidate:    "register what is to be invalidated at the peer with RemoteInvalidate, in the PD of its queue pair",
	rdmap.CodeOpcode:            remedyExtensions,

	rdmap.TermCode(ddp.CodeInvalidSTag):   "register the memory at the peer with RemoteWrite, and use the STag that it has told, not too late",
	rdmap.TermCode(ddp.CodeBounds):        "write within the memory that the peer has told of",
	rdmap.TermCode(ddp.CodeNotAssociated): "register the memory at the peer in the PD of its queue pair",
	rdmap.TermCode(ddp.CodeInvalidQN):     "let the peer create its queue pair without NoInboundRead and NoInboundAtomic",
	rdmap.TermCode(ddp.CodeNoBuffer):      "send when the peer has a receive posted, and read no more at a time than its IRD",
	rdmap.TermCode(ddp.CodeTooLong):       "send less, or let the peer post longer receives",

	rdmap.TermCode(mpa.CodeCRC): remedies[faultCRC],
	rdmap.TermCode(mpa.CodeIRD): "raise IRD at the peer, or lower ORD here",
	rdmap.TermCode(mpa.CodeRTR): "give both sides an RTR in common, or cm.Config.Model ClientServer to the one that dials",
}

func remedyAfar(c rdmap.TermCode) string {
	if s := remediesAfar[c]; s != "" {
		return s
	}
	return remedyDetails
}
