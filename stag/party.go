package stag

// party is who asked for a copy, for the race detector. What a request of the program
// does to its buffers has to be ordered with what the program does there itself: posting
// before it, the completion behind it. What a peer reads and writes by itself in memory
// that is open to it is ordered with nothing, and is allowed (docs/memory-model.md): an
// adapter's would not be seen either.
type party bool

const (
	program party = false
	peer    party = true
)
