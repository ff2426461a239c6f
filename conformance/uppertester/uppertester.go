// Package uppertester is the upper tester: the program above the RNIC under test, which
// does what a conformance case tells it to. It opens queue pairs, connects,
// registers, posts and looks.
//
//	case --Tester--> Service --verbs, cm--> RNIC <== FPDUs ==> raw peer of the case
//	        |
//	        +- Remote --JSON-RPC over TCP--> Serve, in `rnic conform serve`
//
// A Service is one RNIC and all that was made in it. Who uses it names its objects
// by small numbers. Its methods have the shape that net/rpc wants, so that a case
// in this process calls the same code as one on another machine.
//
//	service.go  the RNIC, its queues, and their end
//	connect.go  connections
//	memory.go   regions and windows
//	work.go     posts, completions, events, states
//	ping.go     a program that talks as rping does
//	args.go     what goes in and out
//	serve.go, served.go, remote.go, errors.go  the same from afar
//	answers.go  what a tester elsewhere may answer
package uppertester

// Tester is an upper tester, here or elsewhere. Every method but Close takes
// arguments and fills in a reply. Errors of verbs match their Immediate Error with
// errors.Is, from afar too. All methods may be called from any goroutine.
type Tester interface {
	// Open creates a queue pair.
	Open(OpenArgs, *Opened) error
	// Destroy destroys a queue pair.
	Destroy(qp int, _ *None) error
	// Listen takes one connection for a queue pair, as MPA Responder. It returns
	// once there is an address to connect to.
	Listen(ConnectArgs, *Listening) error
	// Dial connects a queue pair, as MPA Initiator. It returns at once.
	Dial(ConnectArgs, *None) error
	// Connected waits for what Listen or Dial began.
	Connected(Wait, *Connection) error
	// Ended waits until a queue pair's stream is gone.
	Ended(Wait, *QPState) error
	// Query is Query QP.
	Query(qp int, _ *QPState) error
	// Modify is Modify QP.
	Modify(ModifyArgs, *None) error

	// Register registers memory, and fills it with a pattern.
	Register(RegisterArgs, *Region) error
	// Allocate allocates a region in the Invalid state.
	Allocate(RegisterArgs, *Region) error
	// Share registers a region's memory once more.
	Share(ShareArgs, *Region) error
	// Reregister gives a region new memory and attributes.
	Reregister(ReregisterArgs, *Region) error
	// Deregister deallocates a region.
	Deregister(region int, _ *None) error
	// QueryRegion is Query Memory Region.
	QueryRegion(region int, _ *RegionState) error
	// Memory is what a region's memory holds.
	Memory(region int, _ *Octets) error
	// Fill changes what a region's memory holds.
	Fill(FillArgs, *None) error
	// AllocateWindow allocates a window in a PD.
	AllocateWindow(pd int, _ *Window) error
	// DeallocateWindow deallocates a window.
	DeallocateWindow(window int, _ *None) error
	// QueryWindow is Query Memory Window.
	QueryWindow(window int, _ *WindowState) error

	// PostSend posts to a Send Queue, all in one list.
	PostSend(PostSendArgs, *Posted) error
	// PostRecv posts to a Receive Queue or an S-RQ, all in one list.
	PostRecv(PostRecvArgs, *Posted) error
	// Poll takes completions.
	Poll(PollArgs, *Completions) error
	// Notify arms a CQ.
	Notify(NotifyArgs, *None) error
	// Notified waits for a CQ's notification, which is taken.
	Notified(Wait, *Answer) error
	// Events waits for asynchronous events. They stay in the log.
	Events(EventsArgs, *Events) error

	// Ping serves one client as `rping -s` does, or, with an address, connects to
	// a server as `rping -c` does until the stream ends.
	Ping(ConnectArgs, *Listening) error

	// Close frees everything.
	Close() error
}
