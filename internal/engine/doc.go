// Package engine serves the sockets of many streams in one place: who polls a
// Completion Queue, or waits on it, drives all streams that complete there.
//
// A Group is a set of sockets. It has two things that one goroutine has at a time:
//
//   - the turn: who has it asks the system which sockets are ready, and drives those.
//     It is held for one such look, and never while waiting.
//   - the berth: who has it sleeps until one of the sockets is ready, and then takes the
//     turn. One wake-up is all that an arrival costs.
//
// Who has the berth:
//
//	             Claim                    Leave
//	keeper  --------------->  waiter  --------------->  nobody
//	  ^  \                       ^                       |  ^
//	  |   \  many polls          |   Claim               |  |
//	  |    `-------------------- | ----------------------+--'
//	  |                          `-----------------------'
//	  `---- no polls, no waits for a while; Yield; somebody who does not sleep here waits
//
// The keeper is a goroutine of the Group. It serves whenever nobody else does: what
// comes from a peer by itself has to go on though nobody polls or waits. While the berth
// is nobody's, or a waiter's, it looks now and then whether somebody still comes
// (watch.go).
//
// The system's set is not one that the Go runtime waits for, or each arrival would wake
// a thread of it, while pollers are busy too. The runtime sees another set, which the
// Group's is in while somebody sleeps, or is about to (set_linux.go).
//
//	group.go       what is served, and who serves     socket.go    what a stream wants of it
//	berth.go       sleeping                           watch.go     the keeper, and its watchdog
//	set_linux.go   the sets of the system             held.go      what streams hold back
//	conn_linux.go  a socket that is a group's         outside.go   threads that are not Go's
package engine
