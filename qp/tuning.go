package qp

import (
	"cmp"

	"github.com/softrnic/softrnic/mpa"
)

// batchBytes is about how many octets one vectored write carries at most.
const batchBytes = 512 << 10

// Tuning are the thresholds of the data path. The zero value of a field stands for
// its default, which is meant to be good; a negative one turns off what the field
// is about. None of them changes what a program or a peer can tell, but for time.
type Tuning struct {
	// Segment bounds DDP segments, in octets of ULPDU, where MULPDU allows more:
	// on a loopback, where it is 64 KiB, smaller ones are received faster. 32 KiB.
	Segment int
	// Batch is about how many octets of FPDUs one vectored write carries, 512 KiB
	// at most. 512 KiB.
	Batch int
	// Gather is the payload, in octets, from which on a segment is sent from where
	// it is, rather than copied beside its header. 2 KiB.
	Gather int
	// Short is the longest Send or RDMA Write, in octets, that is framed together
	// with others like it, if it is copied anyway. Any.
	Short int
	// Eager is how many posts of a series go out at once; those after them, as long as
	// there is no pause between, are held back for more to come, unless the program has
	// one processor only. Of a program that streams it is one. 8.
	Eager int
	// Hold is how much is held back at most: octets of messages, those that RDMA
	// Reads ask for too, and 512 for each of them. 256 KiB.
	Hold int
	// Direct is how many octets of a segment have to be on their way still for
	// them to be read straight to where they belong. 8 KiB.
	Direct int
	// Drive makes a poll of an empty CQ receive for the queue pairs that use it, if
	// it is not negative.
	Drive int
}

// withDefaults fills in what is zero.
func (t Tuning) withDefaults() Tuning {
	return t.or(tested[paths]).or(Tuning{
		Segment: 32 << 10, Batch: batchBytes, Gather: 2 << 10, Short: mpa.MaxULPDU,
		Eager: 8, Hold: 256 << 10,
		Direct: 8 << 10, Drive: 1,
	}).bounded()
}

// paths is for tests, and the linker sets it (make paths): all tests shall pass with the
// fast paths never taken, "slow", and with them taken wherever they can be, "fast".
var paths string

// tested are the defaults that come before the usual ones, by paths.
//
// Without fast paths one is left: large segments are sent from where they are, or none
// could break off within. Segments stay as they are: the models' messages are to fit one.
//
// With them, Direct is above what the tests of segments that break off leave away: what
// has come of those is in its place then.
var tested = map[string]Tuning{
	"slow": {Gather: 4 << 10, Short: -1, Eager: -1, Direct: -1, Drive: -1},
	"fast": {Gather: 1, Eager: 1, Hold: 1 << 20, Direct: 64},
}

// or is t with what is zero taken from d.
func (t Tuning) or(d Tuning) Tuning {
	t.Segment = cmp.Or(t.Segment, d.Segment)
	t.Batch = cmp.Or(t.Batch, d.Batch)
	t.Gather = cmp.Or(t.Gather, d.Gather)
	t.Short = cmp.Or(t.Short, d.Short)
	t.Eager = cmp.Or(t.Eager, d.Eager)
	t.Hold = cmp.Or(t.Hold, d.Hold)
	t.Direct = cmp.Or(t.Direct, d.Direct)
	t.Drive = cmp.Or(t.Drive, d.Drive)
	return t
}

// bounded keeps what has to have a size within bounds.
func (t Tuning) bounded() Tuning {
	if t.Segment < minSegment { // negative: as small as can be
		t.Segment = minSegment
	}
	t.Batch = min(max(t.Batch, 1), batchBytes)
	return t
}

// minSegment leaves room for a header and some payload.
const minSegment = 128
