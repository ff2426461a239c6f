package main

import "fmt"

// direction says which end of a connection softrnic is.
type direction int

const (
	ourClient direction = iota // rnic connects to rping in the guest
	ourServer                  // rping in the guest connects to rnic
)

func (d direction) String() string {
	if d == ourClient {
		return "rnic client, siw server"
	}
	return "siw client, rnic server"
}

// settings are what both ends of a connection are told.
type settings struct {
	rev int  // MPA revision: 1 (RFC 5044) or 2 (RFC 6581)
	p2p bool // peer-to-peer mode with a ready-to-receive frame (RFC 6581 9.2)
	crc bool // CRC32C asked for by the initiator; siw as responder follows
}

// cell is one connection of the matrix.
type cell struct {
	dir direction
	settings
	size int // octets of data in a round
}

// sizes are within one FPDU, about one page, and the most that rping takes (its -S ends at 65535).
var sizes = []int{64, 4096, 65535}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func (c cell) String() string {
	return fmt.Sprintf("%v, rev %d, p2p %s, crc %s, %d octets", c.dir, c.rev, onOff(c.p2p), onOff(c.crc), c.size)
}

// allSettings lists every combination, in the order of the table's rows.
func allSettings() []settings {
	var all []settings
	for _, rev := range []int{1, 2} {
		for _, p2p := range []bool{false, true} {
			for _, crc := range []bool{false, true} {
				all = append(all, settings{rev: rev, p2p: p2p, crc: crc})
			}
		}
	}
	return all
}

// cells lists the connections of one direction, in the order of the table.
func cells(dir direction) []cell {
	var all []cell
	for _, s := range allSettings() {
		for _, size := range sizes {
			all = append(all, cell{dir: dir, settings: s, size: size})
		}
	}
	return all
}

// impossible says why the protocol has no such connection, or "".
func (s settings) impossible() string {
	if s.rev == 1 && s.p2p {
		// RFC 6581 6: the enhanced word, where peer-to-peer mode is asked for, needs revision 2.
		return "peer-to-peer mode is asked for in the enhanced frame, which revision 1 does not have (RFC 6581 6)"
	}
	return ""
}

// siwLimit explains why siw cannot make this connection with itself either, where that is known.
// It is printed only when the control run of siw with siw failed as well.
func (c cell) siwLimit() string {
	if c.rev == 1 {
		return "siw as responder has ORD 0 on a revision 1 connection, so its first RDMA Read cannot be posted"
	}
	return ""
}

// verdict is what became of a cell.
type verdict int

const (
	passed     verdict = iota
	siwFailed          // siw cannot do it with itself either
	failed             // ours to explain
	impossible         // there is no such connection
)

func (v verdict) String() string {
	switch v {
	case passed:
		return "pass"
	case siwFailed:
		return "siw"
	case failed:
		return "FAIL"
	case impossible:
		return "n/a"
	}
	return fmt.Sprintf("verdict(%d)", int(v))
}

// outcome is a verdict with its cause; a cell that passed has none.
type outcome struct {
	verdict verdict
	cause   string
}

// tries bounds how often siw is run with itself, and a blind case with siw, until it works: siw's Responder
// stalls now and then (errStalled). softrnic gets one try.
const tries = 3

// judge decides about a cell from what came of softrnic's connection, and of the last one of siw with itself
// under the same settings. A failure is siw's only if siw fails without us too.
func judge(c cell, ours, control error) outcome {
	switch {
	case ours == nil:
		return outcome{verdict: passed}
	case control != nil && c.siwLimit() != "":
		return outcome{siwFailed, fmt.Sprintf("%s (%v)", c.siwLimit(), control)}
	case control != nil:
		return outcome{siwFailed, fmt.Sprintf("siw fails with itself too: %v", control)}
	default:
		return outcome{failed, ours.Error()}
	}
}
