package qp

import (
	"bytes"
	"slices"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
)

// A Send that waits for a receive (graceful.go) holds up what is behind it, as a stream does. An InfiniBand adapter's does not hold
// up acknowledgements: its program may wait for a Write to be placed before it posts the receive. So with
// Config.PlacedWrites the messages that wait are set aside, up to maxAside, and what answers this side's own requests overtakes them.
// Everything else keeps its order.

// maxAside bounds what is set aside of a stream, in octets of ULPDUs and of what each costs; beyond it the stream is paused.
const (
	maxAside  = 128 << 10
	eachAside = 64
)

// aside are ULPDUs that wait for a receive, the oldest first.
type aside struct {
	ulpdus [][]byte
	head   int // of those that wait: nobody needs what is before the one in front of it
	octets int
	// past says that Next is to go on behind them, first that what it has returned last is of them.
	past, first bool
}

// next is the oldest, if Next is not to go on behind them.
func (a *aside) next() []byte {
	a.first = !a.past && a.head < len(a.ulpdus)
	if !a.first {
		if !a.past {
			a.ulpdus, a.head = nil, 0 // with their array
		}
		return nil
	}
	if a.head > 0 {
		a.ulpdus[a.head-1] = nil
	}
	u := a.ulpdus[a.head]
	a.head++
	a.octets -= len(u) + eachAside
	return u
}

// set adds a copy of what Next has returned, or puts back what has been aside. It reports false if there is no room.
func (a *aside) set(ulpdu []byte) bool {
	if a.first {
		a.head-- // it is there still
	} else {
		if a.octets+len(ulpdu)+eachAside > maxAside {
			return false
		}
		if 2*a.head > len(a.ulpdus) { // no more move up than were handled
			a.ulpdus, a.head = slices.Delete(a.ulpdus, 0, a.head), 0
		}
		a.ulpdus = append(a.ulpdus, bytes.Clone(ulpdu))
	}
	a.octets += len(ulpdu) + eachAside
	a.past = true
	return true
}

// setAside keeps a ULPDU that has to wait for a receive, or is behind one that does. It reports false if the stream is paused with it.
func (r *receiver) setAside(ulpdu []byte) bool {
	if !r.in.aside.past {
		r.noteWait()
	}
	if r.s.tx.writeAck.granted && r.in.aside.set(ulpdu) {
		return true
	}
	r.pause(ulpdu)
	return false
}

// overtake handles a ULPDU behind those that wait, if it may overtake them.
func (r *receiver) overtake(ulpdu []byte) bool {
	seg, code := r.in.parse(ulpdu)
	if code != ddp.CodeOK {
		return false
	}
	switch op, _ := r.check(seg); {
	case op == rdmap.ReadResponse, op == rdmap.AtomicResponse:
	case op == rdmap.Write && seg.Size() == 0 && seg.STag() == notReadySTag:
	default:
		return false
	}
	shown := r.shown // of the one that waits
	r.shown = false
	r.handle(seg, code)
	r.shown = shown
	return true
}
