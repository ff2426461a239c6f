// Package conformance (suite of softrnic, not covered by the compatibility promise)
// holds the executable requirements of iWARP, the verbs draft
// (draft-hilland-rddp-verbs-00) and RFC 5040, 5041, 5042, 5044 and 6581; of VI over TCP,
// the VI/TCP draft (draft-dicecco-vitcp-01) and the VI Architecture 1.0; and of
// NetworkDirect 2, the document of IND2QueuePair.
//
//	requirements  what each key asks for, and whether a case can show it
//	cases         the cases, a file for each section
//	(this)        the runner: which cases, in what order, with what verdict
//
// A Case covers keys of the registry. It drives a Target, asserts exactly what it
// expects, and ends with a Verdict. The same cases run as Go tests, by `rnic conform
// run` in this process, and by the same command against somebody else's RNIC.
package conformance

import "time"

// Verdict is how a case ended.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "PASS"
	Fail Verdict = "FAIL"
	// Skip: the target lacks what the case needs.
	Skip Verdict = "SKIP"
	// NotTestable: the key is of a class that no case can show.
	NotTestable Verdict = "NOT-TESTABLE"
	// NotRun: a case can show the key, but none of those that ran asserts it.
	NotRun Verdict = "NOT-RUN"
)

// Need is what a case asks of its target.
type Need uint8

// The needs, each more than the one before.
const (
	// NeedWire: a stream to any iWARP endpoint. What its program does with it is
	// not known.
	NeedWire Need = iota + 1
	// NeedUpper: a stream, and an upper tester at the other end that posts, registers
	// and looks as it is told.
	NeedUpper
	// NeedAPI: the verbs of an RNIC in this process, or the calls of a VI NIC or a
	// NetworkDirect adapter.
	NeedAPI
)

// Case is one executable check.
type Case struct {
	// Name is "section/what", unique: "5.2/dealloc-in-use".
	Name string
	// Keys are the requirements that the case asserts, each of them.
	Keys []string
	Need Need
	// Strict marks a case of SHOULDs, run with Options.Strict only.
	Strict bool
	// Run is called with a T of its own, in a goroutine of its own.
	Run func(*T)
}

// Result is the verdict on one case.
type Result struct {
	Case    string   `json:"case"`
	Verdict Verdict  `json:"verdict"`
	Keys    []string `json:"keys"`
	// Detail says why, unless it passed.
	Detail string `json:"detail"`
	// Barred says that it failed because no stream to the target begins: Detail says why, the
	// same for all such cases.
	Barred bool `json:"barred,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"duration"`
	// Traffic is how much was sent and received.
	Traffic Traffic `json:"-"`
	// Trace is what was sent and received, and noted: of a case that passed with
	// Options.Traces only.
	Trace []Mark `json:"-"`
}

// Duration is Seconds as a time.Duration.
func (r Result) Duration() time.Duration { return time.Duration(r.Seconds * float64(time.Second)) }
