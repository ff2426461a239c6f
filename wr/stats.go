package wr

import "iter"

// Flow is what has gone one way in messages of one RDMAP opcode.
type Flow struct {
	// Messages are counted with their last segment, Segments each.
	Messages, Segments uint64
	// Octets are those of the program: the payload of Sends, RDMA Writes and RDMA Read
	// Responses, eight of Immediate Data and of an Atomic Response, none of others.
	Octets uint64
}

func (f *Flow) add(g Flow) {
	f.Messages += g.Messages
	f.Segments += g.Segments
	f.Octets += g.Octets
}

// Flows are those of all opcodes, one way (RFC 5040 4.1 figure 4, RFC 7306 4.1).
type Flows struct {
	Write, ReadRequest, ReadResponse               Flow
	Send, SendInvalidate, SendSE, SendSEInvalidate Flow
	Terminate                                      Flow
	Immediate, ImmediateSE                         Flow
	AtomicRequest, AtomicResponse                  Flow
}

// ByOpcode is the Flow of an RDMAP opcode, which the RFCs define.
func (f *Flows) ByOpcode(op uint8) *Flow {
	return [...]*Flow{
		&f.Write, &f.ReadRequest, &f.ReadResponse, &f.Send, &f.SendInvalidate, &f.SendSE, &f.SendSEInvalidate,
		&f.Terminate, &f.Immediate, &f.ImmediateSE, &f.AtomicRequest, &f.AtomicResponse,
	}[op]
}

var flowNames = [...]string{
	"write", "read_request", "read_response", "send", "send_invalidate", "send_se", "send_se_invalidate",
	"terminate", "immediate", "immediate_se", "atomic_request", "atomic_response",
}

// All gives each Flow with its name, such as "read_request", in the order of the opcodes.
func (f *Flows) All() iter.Seq2[string, Flow] {
	return func(yield func(string, Flow) bool) {
		for op, name := range flowNames {
			if !yield(name, *f.ByOpcode(uint8(op))) {
				return
			}
		}
	}
}

// Total is the sum of all.
func (f *Flows) Total() (sum Flow) {
	for _, g := range f.All() {
		sum.add(g)
	}
	return sum
}

// Sends is the sum of the four Sends.
func (f *Flows) Sends() (sum Flow) {
	for _, g := range []Flow{f.Send, f.SendInvalidate, f.SendSE, f.SendSEInvalidate} {
		sum.add(g)
	}
	return sum
}

func (f *Flows) add(g Flows) {
	for op := range flowNames {
		f.ByOpcode(uint8(op)).add(*g.ByOpcode(uint8(op)))
	}
}

// Depth is how full a queue is, and has been at most.
type Depth struct{ Now, Most uint64 }

func (d *Depth) add(e Depth) {
	d.Now += e.Now
	d.Most = max(d.Most, e.Most)
}

// QPStats are what a queue pair counts, over all its streams.
type QPStats struct {
	// Out and In are the messages sent and received, by opcode. A segment counts as sent when it
	// is framed, and as received when its headers are in order.
	Out, In Flows
	// OutOctets and InOctets are those of the FPDU stream: with headers, padding, CRCs and markers, framed and received.
	OutOctets, InOctets uint64
	// SendsPosted and RecvsPosted are work requests.
	SendsPosted, RecvsPosted uint64
	// Completions are those queued, or lost to a CQ without room, by status. An unsignaled request
	// that succeeds has none.
	Completions map[Status]uint64
	// SendQueue and RecvQueue are requests posted and not completed.
	SendQueue, RecvQueue Depth
	// OutReads and InReads are RDMA Reads and Atomics under way: of this side, bounded by ORD, and of
	// the peer, bounded by IRD. A ready-to-receive Read and that of PlacedWrites count.
	OutReads, InReads Depth
	// Binds, FastRegisters and Invalidates are memory operations carried out; Invalidates also
	// those of the peer's Sends and of RDMA Reads with Invalidate.
	Binds, FastRegisters, Invalidates uint64
	// ReceiveWaits is how often a message found no receive, and its stream waited for one
	// (GracefulReceive, or messages of other streams hold those of the S-RQ). Without that the stream ends: see Ends.
	ReceiveWaits uint64
	// Dropped are messages of the peer that had no place, of unreliable connections of C programs; any other stream ends.
	Dropped uint64
	// CRCErrors are FPDUs whose CRC was wrong; each ends its stream.
	CRCErrors uint64
	// Connects and Accepts are streams begun, as Initiator and as Responder of the MPA startup.
	Connects, Accepts uint64
	// OutResets and InResets are streams that this side, or the peer, reset.
	OutResets, InResets uint64
	// Ends are streams that are over, by why: the name of the fault (docs/errors.md), or of a verb
	// or close.
	Ends map[string]uint64
	// OutTerminates and InTerminates are Terminate Messages sent and received, by code and meaning.
	OutTerminates, InTerminates map[string]uint64
}

// Add adds t to s; depths have the greater Most.
func (s *QPStats) Add(t *QPStats) {
	s.Out.add(t.Out)
	s.In.add(t.In)
	for _, p := range [...][2]*uint64{
		{&s.OutOctets, &t.OutOctets}, {&s.InOctets, &t.InOctets},
		{&s.SendsPosted, &t.SendsPosted}, {&s.RecvsPosted, &t.RecvsPosted},
		{&s.Binds, &t.Binds}, {&s.FastRegisters, &t.FastRegisters}, {&s.Invalidates, &t.Invalidates},
		{&s.ReceiveWaits, &t.ReceiveWaits}, {&s.Dropped, &t.Dropped}, {&s.CRCErrors, &t.CRCErrors},
		{&s.Connects, &t.Connects}, {&s.Accepts, &t.Accepts},
		{&s.OutResets, &t.OutResets}, {&s.InResets, &t.InResets},
	} {
		*p[0] += *p[1]
	}
	s.SendQueue.add(t.SendQueue)
	s.RecvQueue.add(t.RecvQueue)
	s.OutReads.add(t.OutReads)
	s.InReads.add(t.InReads)
	addTo(&s.Completions, t.Completions)
	addTo(&s.Ends, t.Ends)
	addTo(&s.OutTerminates, t.OutTerminates)
	addTo(&s.InTerminates, t.InTerminates)
}

func addTo[K comparable](to *map[K]uint64, from map[K]uint64) {
	if *to == nil && len(from) > 0 {
		*to = map[K]uint64{}
	}
	for k, n := range from {
		(*to)[k] += n
	}
}

// CQStats are what a completion queue counts.
type CQStats struct {
	// Completions are those queued, by status.
	Completions map[Status]uint64
	// Queue is the completions that wait to be polled.
	Queue Depth
	// Overflows are completions that were dropped because there was no room, or the queue had failed.
	Overflows uint64
	// Notifications are those that were armed and given.
	Notifications uint64
}

// Add adds t to s; the depth has the greater Most.
func (s *CQStats) Add(t *CQStats) {
	addTo(&s.Completions, t.Completions)
	s.Queue.add(t.Queue)
	s.Overflows += t.Overflows
	s.Notifications += t.Notifications
}

// SRQStats are what a shared receive queue counts.
type SRQStats struct {
	// Posted are receives posted, Taken those that messages have begun to fill.
	Posted, Taken uint64
	// Queue is the receives that use up the depth: posted, or taken and their completion not reaped.
	Queue Depth
}

// Add adds t to s; the depth has the greater Most.
func (s *SRQStats) Add(t *SRQStats) {
	s.Posted += t.Posted
	s.Taken += t.Taken
	s.Queue.add(t.Queue)
}
