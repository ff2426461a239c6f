// Package vipl is the VI Provider Library of the Virtual Interface Architecture 1.0
// (appendix A), over VI/TCP (package vitcp): a program opens a Nic, registers memory,
// creates Vis, connects each of them with one other, and posts Descriptors to their
// two work queues.
//
//	program --PostSend, PostRecv-------------------feed--> [ endpoint.Endpoint ] --> TCP
//	program <--SendDone, CQDone---- [ work queue ] <--complete--+
//	                                       |
//	                                    [ CQ ]
//
// Without a connection the work queue has what is posted, too.
//
// # The calls
//
// Every call of appendix A is here under its name without the Vip prefix, as a method
// of the handle it takes first: OpenNic is a function; CloseNic, CreateVi, CreateCQ,
// RegisterMem and so on are methods of *Nic, PostSend and ConnectRequest of *Vi, CQDone
// of *CQ, ConnectAccept of *Conn. OUT parameters are results. What differs from C:
//
//   - Where the appendix has a timeout in milliseconds there is a context. Its deadline
//     gives ErrTimeout, its cancellation an error that matches context.Canceled.
//     TimeoutContext makes one from milliseconds, Infinite included.
//   - A VIP_RETURN is an error of type Return, nil for VIP_SUCCESS. errors.Is compares,
//     ReturnOf tells the code of any error of this package.
//   - Handlers are functions without a Context parameter: a closure keeps what it needs.
//   - Memory is a slice; AddressOf is the virtual address that segments name it by.
//   - Descriptors are registered by RegisterDescriptors: RegisterMem is for octets that
//     a peer may write, which memory with Go values in it must never be.
//
// ConnectPeerRequest, ConnectPeerDone and ConnectPeerWait are no calls of appendix A:
// the VI/TCP draft (chapter 4) needs them for connections between equals. They, and
// whatever else is not in the appendix, say "extension".
//
// # Progress
//
// A connection of Linux's TCP has no goroutine. A post to a VI that has nothing else to
// send writes by itself. SendDone, RecvDone and CQDone, when they find nothing, first
// receive what has come for the VI, or for those of the CQ; a waiter does so when
// something comes. While no program looks, goroutines of the CQ for receives do it, or of
// the one for sends if there is no other, or of the VI if it has none: tie VIs to a CQ where
// there are many. Connections that are not plain TCP (Config.Dial, Config.Listener) have two
// goroutines each.
//
// # Concurrency
//
// All calls may be made from any goroutine. A Descriptor belongs to the provider from
// the post until it is dequeued; until then only Descriptor.Done may look at it, and
// the rest of it once that is true (appendix B 10.2, Status). Handlers of SendNotify,
// RecvNotify, CQNotify and ErrorCallback run one at a time for each Nic, in the order of
// what they report, on a goroutine of the library, which they may not keep waiting for
// one another.
//
//	nic.go, system.go         the Nic
//	device.go                 names of devices and of hosts
//	memory.go, descregion.go  protection tags, memory regions, those of Descriptors
//	pages_linux.go            what may be done with pages
//	state.go                  the states of a VI, as a table
//	vi.go, post.go, queue.go  a VI and its two queues
//	format.go                 what a Descriptor may be
//	attempt.go, link.go       the connection of a VI: as it is made, and as it is used
//	connect.go, peer.go       the calls that make one
//	passive.go                the listener, or a place at a port that others share
//	cq.go, dispatch.go        completion queues; who calls handlers
//	waitqueue.go              looking for completions and waiting for them, which drives
//	                          the connections
//
// The values of 9.10 are in return.go, status.go, descriptor.go, attributes.go,
// errordescriptor.go and netaddress.go.
package vipl
