package qp

import "github.com/softrnic/softrnic/wr"

// allStates lists the states.
func allStates() []wr.State {
	return []wr.State{wr.StateIdle, wr.StateRTS, wr.StateClosing, wr.StateTerminate, wr.StateError}
}

// allTriggers lists the triggers.
func allTriggers() []trigger {
	all := make([]trigger, numTriggers)
	for i := range all {
		all[i] = trigger(i)
	}
	return all
}

// allFaults lists the faults, without noFault.
func allFaults() []streamFault {
	var all []streamFault
	for f := noFault + 1; f < numFaults; f++ {
		all = append(all, f)
	}
	return all
}

// Sends says whether a Terminate Message goes out. The state machine decides.
func (c consequence) Sends() bool { return step(c.In, c.Trigger).Actions&actSendTerminate != 0 }
