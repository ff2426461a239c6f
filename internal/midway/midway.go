// Package midway has streams begin as if they had carried much already: counters wrap
// where no test gets by sending. It is for the conformance suite; no program reaches it.
package midway

// Counts are what a stream has carried, each way.
type Counts struct {
	// Sends and Reads are messages of queue 0 and of queue 1: the next MSN is one
	// more, modulo 2^32.
	Sends, Reads uint32
	// Octets are those of the FPDU stream, markers included. An FPDU begins behind them.
	Octets uint64
}

// Begin has the streams of the queue pairs that an RNIC, a *verbs.RNIC, creates from here
// on begin behind what they count. Package verbs sets it.
var Begin func(nic any, c Counts)
