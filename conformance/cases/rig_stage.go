package cases

import (
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/vipl"
)

// Stages: what a case plays in, made for it from nothing but defaults. One that needs
// something else makes that by itself.

// onNode is a case on one node. staged is one that leaves no event.
func onNode(run func(*conformance.T, *node)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newNode(t, nodeConfig{})) }
}

// inWorld is a case on two connected nodes, and inIdleWorld on two that are not.
func inWorld(run func(*conformance.T, *world)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newWorld(t, worldConfig{})) }
}

func inIdleWorld(run func(*conformance.T, *world)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newWorld(t, worldConfig{Idle: true})) }
}

// onLine is a case on a node whose queue pair has a raw peer, and onLooseLine on one
// that is Idle.
func onLine(run func(*conformance.T, *line)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newLine(t, verbs.QPConfig{})) }
}

func onLooseLine(run func(*conformance.T, *line)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, looseLine(t, verbs.QPConfig{})) }
}

// onRig is a case of a raw peer and an upper tester's queue pair.
func onRig(run func(*conformance.T, *rig)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, open(t, setup{})) }
}

// blindly is a case of a raw peer against a program that speaks rping's language.
func blindly(play conformance.Role, run func(*conformance.T, *blind)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, startBlind(t, play)) }
}

// onVIHost is a case on one VI NIC.
func onVIHost(run func(*conformance.T, *viHost)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newVIHost(t, vipl.Config{})) }
}

// onNDRig is a case of a raw peer and a NetworkDirect queue pair.
func onNDRig(run func(*conformance.T, *ndRig)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newNDRig(t, ndShape{})) }
}

// eachRole tries a case with the raw peer on either side of the MPA startup.
func eachRole(run func(*conformance.T, conformance.Role)) func(*conformance.T) {
	return func(t *conformance.T) {
		for play := range inTurn(t, "the peer is the %s", bothRoles) {
			run(t, play)
		}
	}
}

// eachLevel tries a case at each reliability level of VIs.
func eachLevel(run func(*conformance.T, viLevel)) func(*conformance.T) {
	return func(t *conformance.T) {
		for l := range inTurn(t, "%s", viLevels) {
			run(t, l)
		}
	}
}

// onTwoCQs is onRig with a completion queue for each queue.
func onTwoCQs(run func(*conformance.T, *rig)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, open(t, twoCQs())) }
}

// withTester is a case that makes its queue pairs by itself, on one RNIC.
func withTester(run func(*conformance.T, upper.Tester)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, tester(t)) }
}

// onVI is a case of a raw peer and a VI of that reliability level.
func onVI(level vipl.ReliabilityLevel, run func(*conformance.T, *viRig)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newVIRig(t, viSetup{level: level})) }
}

// openWith is open with a region of n octets that the peer may read and write, and
// mpaOpenWith is mpaOpen with one.
func openWith(t *conformance.T, s setup, n int) (*rig, *buffer) {
	r := open(t, s)
	b := r.region(n, allRights)
	return r, b
}

func mpaOpenWith(t *conformance.T, s mpaSetup, n int) (*mpaRig, *buffer) {
	r := mpaOpen(t, s)
	b := r.region(n, allRights)
	return r, b
}
