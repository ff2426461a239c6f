package cases

import "github.com/softrnic/softrnic/conformance"

// rv8_3_2 is errors that a completion tells of: verbs draft 8.3.2, figure 23.
var rv8_3_2 = []conformance.Case{
	{Name: "8.3.2/send-queue", Keys: append([]string{"PV-8.3.2-M2"}, figure23Keys...), Need: conformance.NeedAPI, Run: figure23Of(sendQueueErrors)},
	{Name: "8.3.2/fast-register", Keys: figure23Keys, Need: conformance.NeedAPI, Run: figure23Of(fastRegisterErrors)},
	{Name: "8.3.2/bind", Keys: figure23Keys, Need: conformance.NeedAPI, Run: figure23Of(bindErrors)},
	{Name: "8.3.2/invalidate", Keys: figure23Keys, Need: conformance.NeedAPI, Run: figure23Of(invalidateErrors)},
	{Name: "8.3.2/receive-queue", Keys: append([]string{"PV-8.3.2-M1"}, figure23Keys...), Need: conformance.NeedAPI, Run: figure23Of(receiveQueueErrors)},
	{Name: "8.3.2/remote-protection", Keys: figure23Keys, Need: conformance.NeedAPI, Run: figure23Of(remoteInvalidateErrors)},
}

var figure23Keys = []string{"RV-8.3.2-M1", "RV-8.3.2-M2", "RV-8.3.2-M3"}

// figure23Of runs errors, each on a line of its own: with a CQ for each of its queues.
func figure23Of(errors func() []completionError) func(*conformance.T) {
	return func(t *conformance.T) {
		n := newNode(t, nodeConfig{})
		for e := range inTurn(t, "%s", errors()) {
			n.line(e.qp).errs(&e)
		}
	}
}
