package qp

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
)

// provocation leads to a fault for real, and checks what follows with values of
// its own: completions, the event, the Terminate Message on the wire, the states.
type provocation struct {
	name string
	run  func(*testing.T)
}

// TestEveryFault has a subtest for each row of the fault table, and below it one
// for each way to that row.
func TestEveryFault(t *testing.T) {
	all := provocations()
	defer keepReasons(t)
	for _, f := range allFaults() {
		assert.NotContains(t, f.String(), "/", "it names a subtest")
		t.Run(f.String(), func(t *testing.T) {
			require.NotEmpty(t, all[f], "nothing provokes it")
			for _, p := range all[f] {
				t.Run(p.name, p.run)
			}
		})
	}
}

// provocations are all there are. An attack is played against an Initiator, a
// Responder with CRC and markers, and an Initiator on a connection that has
// nothing of TCP's.
func provocations() map[streamFault][]provocation {
	all := map[streamFault][]provocation{}
	add := func(f streamFault, name string, run func(*testing.T)) {
		all[f] = append(all[f], provocation{name, run})
	}
	for _, a := range attacks() {
		add(a.fault, a.name+", plain", func(t *testing.T) { a.run(t, setup{}) })
		add(a.fault, a.name+", marked", func(t *testing.T) { a.run(t, setup{role: mpa.Responder, crc: true, markers: true}) })
		add(a.fault, a.name+", pipe", func(t *testing.T) { a.run(t, setup{pipe: true, crc: true}) })
	}
	for _, e := range slices.Concat(ownErrors, memoryErrors) {
		add(e.fault, e.name, e.run)
	}
	for _, p := range partings {
		add(p.fault, p.name, p.run)
	}
	for _, c := range terminates() {
		add(faultTerminateReceived, c.name, c.run)
	}
	add(faultSQNotAgreed, "posted in Idle", notAgreed)
	add(faultPeerClosedBusy, "FIN with Reads to answer", peerClosesWithReadsToAnswer)
	add(faultReadTooMany, "one more than IRD", tooManyReads)
	add(faultAtomicAnswerID, "the second", atomicAnswered(atomicResponse(1, 2, 0), faultAtomicAnswerID, 0x0206))
	add(faultUnexpectedResponse, "in place of an Atomic Response",
		atomicAnswered(rawpeer.ReadResponse(1, 0, nil), faultUnexpectedResponse, 0x0206))
	add(faultLocal, "in the middle of a Send", failInTheMiddle)
	add(faultClosingSegment, "within an FPDU", closingWithinAnFPDU)
	add(faultSQCompletion, "CQ full", sendCQFull)
	add(faultRQCompletion, "CQ full", recvCQFull)
	add(faultSRQ, "S-RQ failed", sharedFails)
	add(faultStalled, "a message begun and not ended", stalledMessage)
	for f, list := range all {
		names := map[string]bool{}
		for _, p := range list {
			if names[p.name] || strings.Contains(p.name, "/") {
				panic("two names, or a slash: " + f.String() + ": " + p.name)
			}
			names[p.name] = true
		}
	}
	return all
}
