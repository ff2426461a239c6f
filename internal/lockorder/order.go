package lockorder

import (
	"strings"
	"sync"
)

// Order is what may be waited for while another lock is held, outermost first. A line has ranks, with commas between classes
// of one rank. It holds across lines: what comes before B comes before all that comes behind B. Receive and Transmit have
// nothing before them, for nobody but finish waits for them; pollers, posters and verbs try.
const Order = `
Registry
MR, MW, ModifyReads -> RNIC -> QP
Receive -> Transmit -> QP
QP -> Drive -> GroupLife -> Slot -> Poll -> Post -> Done -> CQ -> SRQ
VIConn -> GroupLife
Poll -> EndpointReceive -> EndpointTransmit -> VI
VIConn -> VI -> NIC -> VICQ -> VIEvents
NIC -> VIPassive
NIC -> DescRegions -> DescRegion
VI -> Endpoint
SRQ -> Port -> TCP, Pump, Group
SRQ, DescRegion, Endpoint, VIEvents, VIPassive -> Ring, Spans, SRQWatch, TCP, Pump, Events, STags, Struck -> Group, Drain
`

// Exception is a pair that the order has not.
type Exception struct{ Held, Wanted, Why string }

// Exceptions are all there are.
var Exceptions = []Exception{
	{"Post", "Post", "the Send Queue's, then the Receive Queue's of the same queue pair"},
	{"VI", "GroupLife", "a connection is made: no poller drives that VI then, so none that holds up the group waits for it"},
}

// before has the classes that come before a class. Without the tag only tests ask, so a program that starts does not parse.
var before = sync.OnceValue(func() map[string]map[string]bool { return parse(Order) })

// parse reads an order.
func parse(order string) map[string]map[string]bool {
	m := make(map[string]map[string]bool)
	for line := range strings.Lines(strings.TrimSpace(order)) {
		var left []string
		for rank := range strings.SplitSeq(strings.TrimSpace(line), " -> ") {
			classes := strings.Split(rank, ", ")
			for _, c := range classes {
				if m[c] == nil {
					m[c] = make(map[string]bool)
				}
				add(m[c], left)
			}
			left = append(left, classes...)
		}
	}
	for more := true; more; { // across lines
		more = false
		for _, firsts := range m {
			for f := range firsts {
				for further := range m[f] {
					more = more || !firsts[further]
					firsts[further] = true
				}
			}
		}
	}
	return m
}

func add(set map[string]bool, names []string) {
	for _, n := range names {
		set[n] = true
	}
}
