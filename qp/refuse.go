package qp

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// Why a verb on a queue pair is refused, as data (wr.Reason).

var errGone = &wr.Reason{Err: wr.ErrInvalidQP, What: "the queue pair was destroyed"}

var errRQUsesSRQ = &wr.Reason{Err: wr.ErrRQUsesSRQ, What: "QPConfig.SRQ was set", Rule: "RV-6.3.5-M2"}

// refusePost is why nothing is posted in a state.
func refusePost(err wr.ImmediateError, s wr.State) error {
	return &wr.Reason{
		Err: err, What: fmt.Sprintf("the queue pair is in %v: the connection has ended", s),
		Rule: transitionRules[s], Remedy: "LLPStream().Err says why",
	}
}

// refuseModify is err of a Modify, with what of.
func (q *QP) refuseModify(from, to wr.State, err error) error {
	why := wr.Reason{Err: err}
	var inner *wr.Reason
	if errors.As(err, &inner) {
		why = *inner
	}
	why.Operation, why.QP = fmt.Sprintf("Modify QP from %v to %v", from, to), q.cfg.ID
	if why.What == "" && errors.Is(err, wr.ErrInvalidState) {
		why.What, why.Rule, why.Remedy = "there is no such transition", transitionRules[from], transitionRemedies[from]
	}
	return &why
}

// Where the transitions of each state are, and the way out of it.
var (
	transitionRules = [numStates]string{
		wr.StateIdle: "verbs draft 6.2.1", wr.StateRTS: "verbs draft 6.2.2", wr.StateClosing: "verbs draft 6.2.5",
		wr.StateTerminate: "verbs draft 6.2.3", wr.StateError: "verbs draft 6.2.4",
	}
	transitionRemedies = [numStates]string{
		wr.StateIdle: "go to RTS first, with a stream; cm does", wr.StateRTS: "end the stream first: Closing, Terminate and Error do",
		wr.StateClosing: "wait for the end, which Done tells", wr.StateTerminate: "wait for the end, which Done tells",
		wr.StateError: "go to Idle first",
	}
)
