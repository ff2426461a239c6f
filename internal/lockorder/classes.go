package lockorder

// Which lock each class is of, and what that guards. docs/memory-model.md has the table that is made from these lines
// (go test ./docs -update), and its test sees that each lock of the packages has a class of its own.

//nolint:revive // each line says what its class is
type (
	Registry    struct{} // verbs.registry.mu: which RNICs are open
	RNIC        struct{} // verbs.RNIC.mu: what an RNIC has handed out, and the reference counts of all of it
	MR          struct{} // verbs.MR.mu: one verb at a time on a region
	MW          struct{} // verbs.MW.mu: one verb at a time on a window
	ModifyReads struct{} // verbs.QP.reads: one change of IRD and ORD at a time
	Struck      struct{} // verbs.struck.mu: how many faults were made on purpose
	Events      struct{} // verbs.dispatcher.mu: the calls that wait for a handler

	QP       struct{} // qp.QP.mu: changes of state and attributes
	Post     struct{} // qp.workQueue.postMu: posting to a Send or a Receive Queue
	Done     struct{} // qp.sendQueue.doneMu: completing what is on the Send Queue
	Transmit struct{} // qp.transmitter.mu: `tx.mu`: the transmit side
	Receive  struct{} // qp.receiver.mu: `rx.mu`: the receive side
	Ring     struct{} // qp.ring.mu: an IRRQ, or the outbound Reads
	Spans    struct{} // qp.spans.mu: the tasks of an execution trace, by request

	GroupLife struct{} // netpoll.Group.life: making and ending a group's set and background poller
	Slot      struct{} // netpoll.Group.slot: the poller slot: the sleep until a socket is ready
	Poll      struct{} // netpoll.Group.pollLock: the look at what is ready, and driving it
	Group     struct{} // netpoll.Group.mu: the sockets of a group, the set of the system, and which streams hold something back
	Pump      struct{} // netpoll.pump.mu: what waits between a stream and a connection that is no socket of ours
	Port      struct{} // netpoll.Port.mu: the streams that go through an adapter's port, and whether it lets them
	TCP       struct{} // netpoll.tcp.mu: whose a descriptor is, the group's or the runtime's, at the end of a stream

	CQ    struct{} // cq.Queue.mu: a Completion Queue
	Drive struct{} // cq.Queue.driveMu: the sessions that pollers of a Completion Queue drive

	SRQ      struct{} // srq.Queue.mu: a Shared Receive Queue
	SRQWatch struct{} // srq.watch.mu: the watchdog of a Shared Receive Queue

	STags struct{} // stag.Table.mu: changes of STags
	Drain struct{} // stag.drain.mu: the wait for holds

	Endpoint         struct{} // endpoint.Endpoint.mu: the rest of an endpoint: what is posted to it too
	EndpointReceive  struct{} // endpoint.receiver.own: the receive side of an endpoint: its reader
	EndpointTransmit struct{} // endpoint.transmitter.own: the transmit side of an endpoint: its writer

	VI          struct{} // vipl.Vi.mu: a VI: its state, attributes, and Descriptors that wait for a connection or to be dequeued
	NIC         struct{} // vipl.Nic.mu: what a NIC has handed out
	VICQ        struct{} // vipl.CQ.mu: a CQ, and its waiters
	VIConn      struct{} // vipl.Conn.mu: the answer to a request
	VIPassive   struct{} // vipl.passive.mu: the listener and what it holds
	VIEvents    struct{} // vipl.dispatcher.mu: the calls that wait for a handler
	DescRegions struct{} // vipl.descRegions.mu: the regions of Descriptors
	DescRegion  struct{} // vipl.descRegion.mu: a region of Descriptors, while one in it is written
)
