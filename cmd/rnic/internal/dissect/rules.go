package dissect

import "fmt"

// rule is a MUST that a capture can prove broken.
type rule struct {
	name string // stable: programs match it
	cite string
}

// Startup.
var (
	ruleStartupKey      = rule{"startup-key", "RFC 5044 7.1.1"}
	ruleStartupLength   = rule{"startup-length", "RFC 5044 7.1.1"}
	ruleStartupRevision = rule{"startup-revision", "RFC 5044 7.1.1, RFC 6581 6"}
	ruleStartupReserved = rule{"startup-reserved", "RFC 5044 7.1.1"}
	ruleStartupEnhanced = rule{"startup-enhanced", "RFC 6581 10"}
	ruleStartupModel    = rule{"startup-model", "RFC 6581 9.2"}
	ruleStartupDepth    = rule{"startup-depth", "RFC 6581 9.1"}
	ruleEarlyFPDU       = rule{"early-fpdu", "RFC 5044 7.1.2"} // before the Reply
	ruleFirstFPDU       = rule{"first-fpdu", "RFC 5044 7.1.2"} // Responder ahead of the Initiator
	ruleRTR             = rule{"rtr", "RFC 6581 9.2"}
)

// MPA in Full Operation.
var (
	ruleLength = rule{"mpa-length", "RFC 5044 3"}
	ruleCRC    = rule{"mpa-crc", "RFC 5044 4.4"}
	ruleMarker = rule{"mpa-marker", "RFC 5044 4.3"}
)

// DDP.
var (
	ruleShort       = rule{"ddp-short", "RFC 5041 4.4"}
	ruleDDPVersion  = rule{"ddp-version", "RFC 5041 4.1"}
	ruleDDPReserved = rule{"ddp-reserved", "RFC 5041 4.1"}
	ruleLast        = rule{"ddp-last", "RFC 5041 4.1"}
	ruleMSN         = rule{"ddp-msn", "RFC 5041 4.3"}
	ruleMO          = rule{"ddp-mo", "RFC 5041 5.2"}
	ruleTO          = rule{"ddp-to", "RFC 5041 5.2"}
	ruleConstant    = rule{"ddp-constant", "RFC 5041 4.2, 4.3"}
)

// RDMAP.
var (
	ruleRDMAPVersion      = rule{"rdmap-version", "RFC 5040 4.1"}
	ruleRDMAPReserved     = rule{"rdmap-reserved", "RFC 5040 4.1"}
	ruleOpcode            = rule{"rdmap-opcode", "RFC 5040 4.1, RFC 7306 4.1"}
	ruleTagged            = rule{"rdmap-tagged", "RFC 5040 4.1"}
	ruleQueue             = rule{"rdmap-queue", "RFC 5040 4.1"}
	ruleInvalidateSTag    = rule{"rdmap-invalidate-stag", "RFC 5040 4.1"}
	ruleSize              = rule{"rdmap-size", "RFC 5040 4.2, RFC 7306 4.2"}
	ruleReadResponse      = rule{"read-response", "RFC 5040 5.2"}
	ruleAtomicResponse    = rule{"atomic-response", "RFC 7306 5.2.2"}
	ruleDepth             = rule{"read-depth", "RFC 5040 6.1, RFC 6581 9.1"}
	ruleAfterTerminate    = rule{"after-terminate", "RFC 5040 5.4"}
	ruleTerminateLayout   = rule{"terminate-layout", "RFC 5040 4.8"}
	ruleTerminateCode     = rule{"terminate-code", "RFC 5040 4.8"}
	ruleTerminateReserved = rule{"terminate-reserved", "RFC 5040 4.8"}
	ruleTerminateLength   = rule{"terminate-length", "RFC 5040 4.8"}
)

func (s *StreamReport) violate(fpdu int, r rule, format string, args ...any) {
	s.Violations = append(s.Violations, Violation{
		FPDU: fpdu,
		Rule: r.name,
		Text: r.cite + ": " + fmt.Sprintf(format, args...),
	})
}
