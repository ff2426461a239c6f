package cases

import "github.com/softrnic/softrnic/conformance"

// rv8_3_2 is errors that a completion tells of: verbs draft 8.3.2, figure 23.
var rv8_3_2 = []conformance.Case{
	apiCase("8.3.2/send-queue", figure23Of(sendQueueErrors), append([]string{"PV-8.3.2-M2"}, figure23Keys...)...),
	apiCase("8.3.2/fast-register", figure23Of(fastRegisterErrors), figure23Keys...),
	apiCase("8.3.2/bind", figure23Of(bindErrors), figure23Keys...),
	apiCase("8.3.2/invalidate", figure23Of(invalidateErrors), figure23Keys...),
	apiCase("8.3.2/receive-queue", figure23Of(receiveQueueErrors), append([]string{"PV-8.3.2-M1"}, figure23Keys...)...),
	apiCase("8.3.2/remote-protection", figure23Of(remoteInvalidateErrors), figure23Keys...),
}

var figure23Keys = []string{"RV-8.3.2-M1", "RV-8.3.2-M2", "RV-8.3.2-M3"}

// figure23Of runs errors, each on a link of its own: with a CQ for each of its queues.
func figure23Of(errors func() []completionError) func(*conformance.T) {
	return func(t *conformance.T) {
		n := newHost(t, hostConfig{})
		for e := range inTurn(t, "%s", errors()) {
			n.link(e.qp).completesInError(&e)
		}
	}
}
