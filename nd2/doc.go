// Package nd2 is NetworkDirect version 2, Microsoft's interface to RDMA adapters,
// over this module's RNIC: for programs written in its shape, on any system.
//
//	Provider
//	  Adapter --- MemoryRegion, MemoryWindow
//	    |-------- CompletionQueue <--+ results
//	    |-------- SharedReceiveQueue |
//	    |-------- QueuePair ---------+
//	    |-------- Connector  (Connect, CompleteConnect; Accept, Reject)
//	    +-------- Listener   (GetConnectionRequest)
//
// Names are those of NetworkDirect without the prefixes: IND2QueuePair::Send is
// QueuePair.Send, ND_CANCELED is ErrCanceled. What differs is Go's:
//
//   - An HRESULT is an error, which matches a Status with errors.Is.
//   - A buffer and its length are a slice, an array and its length too. An address
//     is a netip.AddrPort.
//   - An overlapped operation takes a context and returns when it is done; who
//     would rather poll runs it with Overlap, whose GetOverlappedResult is Pending
//     meanwhile.
//   - A reference count is Close.
//   - A context (VOID*) is an any. Pass a pointer, or a value made once: Go
//     allocates when another value becomes an any. Nothing else in posting a request
//     or retrieving a result allocates.
//
// Methods may be called from any goroutine. A method that fails changes nothing
// and leaves the connection alone; a result with an error means that the
// connection has ended (ND-Send-M1, ND-Send-M2).
//
// Keys such as ND-Send-M1 name the statements of the document of IND2QueuePair.
// docs/networkdirect.md maps every method, flag and status to the verbs, and says
// where and why this differs from other adapters.
package nd2
