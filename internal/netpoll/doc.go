// Package netpoll serves the sockets of many streams in one place: a program that polls a Completion Queue, or waits on
// it, drives all streams that complete there.
//
// A Group is a set of sockets. It has two things that one goroutine has at a time:
//
//   - the poll lock: the poller that holds it asks the system which sockets are ready, and drives those.
//     It is held for one such look, and never while waiting.
//   - the poller slot: its holder sleeps until one of the sockets is ready, and then takes the poll lock.
//     One wake-up is all that an arrival costs.
//
// The roles:
//
//	poller             a goroutine of the program that polls a Completion Queue: it drives, and does not sleep
//	waiter             a goroutine of the program that waits there: it has the poller slot
//	background poller  a goroutine of the Group, which has the slot when there is no poller and no waiter
//
// Which role serves, and whether the sleeper has to be woken, is one word and a table (state.go).
//
// What comes from a peer by itself has to go on without pollers and waiters. While the slot has no holder, or a waiter
// holds it, the background poller looks now and then whether there are still polls (background.go).
//
// The system's set is not one that the Go runtime waits for, or each arrival would wake
// a thread of it, while pollers are busy too. The runtime sees another set, which the
// Group's is in while its slot is slept in, or about to be (epoll_linux.go).
//
//	group.go       what is served, and by whom        state.go           who serves: the table
//	sleep.go       sleeping                           background.go      the background poller, and its watchdog
//	socket.go      what a stream wants of it          postbatch.go       what streams hold back
//	epoll_linux.go the sets of the system             conn_linux.go      a socket that is a group's
//	                                                  foreign_thread.go  threads that are not Go's
package netpoll
