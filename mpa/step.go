package mpa

import "strconv"

// Step is a step of a startup, as an error names it.
type Step uint8

// The steps, in order.
const (
	StepWriteRequest Step = iota + 1
	StepReadRequest
	StepWriteReply
	StepReadReply
	StepWriteTerminate // RFC 6581 9.1, 9.2: the Initiator cannot do what the Reply wants
)

var stepNames = [...]string{
	StepWriteRequest: "writing the MPA Request", StepReadRequest: "reading the MPA Request",
	StepWriteReply: "writing the MPA Reply", StepReadReply: "reading the MPA Reply",
	StepWriteTerminate: "writing the Terminate Message",
}

func (s Step) String() string {
	if int(s) < len(stepNames) && stepNames[s] != "" {
		return stepNames[s]
	}
	return "Step(" + strconv.Itoa(int(s)) + ")"
}
