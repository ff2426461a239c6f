package rsocket

import (
	"github.com/softrnic/softrnic/verbs"
)

// Slots are places for messages of this side that are on the Send Queue: those with data, and those without.
const (
	dataSlots    = 120
	controlSlots = 8
	sendDepth    = 2 * (dataSlots + controlSlots) // an RDMA Write and a Send each
	recvDepth    = messages + margin
)

// memory is what a connection has registered.
type memory struct {
	open   *verbs.MR // the peer writes here: ring, target list, mapped buffers
	ring   []byte
	list   []byte
	mapped []byte

	own      *verbs.MR // the peer does not see it: small writes, outgoing messages, receives
	small    []byte
	out      []byte // a message for each slot, those of control behind those of data
	outAt    int
	descs    []byte // a descriptor for each slot of control
	descsAt  int
	received []byte
	recvAt   int
}

// newMemory registers it; took is told of each region.
func newMemory(pd *verbs.PD, c Config, took func(error) error) (m memory, err error) {
	n := c.RecvBuffer
	open := make([]byte, n+2*targetSize+c.Mapped*mappedSize)
	m.ring, m.list, m.mapped = open[:n:n], open[n:n+2*targetSize:n+2*targetSize], open[n+2*targetSize:]
	m.open, err = pd.Register(open, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
	if took(err) != nil {
		return m, err
	}
	own := make([]byte, c.SendBuffer+(dataSlots+controlSlots)*messageSize+controlSlots*mappedSize+recvDepth*messageSize)
	at := 0
	part := func(n int) ([]byte, int) {
		b := own[at : at+n : at+n]
		at += n
		return b, at - n
	}
	m.small, _ = part(c.SendBuffer)
	m.out, m.outAt = part((dataSlots + controlSlots) * messageSize)
	m.descs, m.descsAt = part(controlSlots * mappedSize)
	m.received, m.recvAt = part(recvDepth * messageSize)
	m.own, err = pd.Register(own, verbs.LocalRead|verbs.LocalWrite)
	return m, took(err)
}

// release gives it back; gave is told of each region.
func (m *memory) release(gave func(error)) {
	for _, mr := range []*verbs.MR{m.open, m.own} {
		if mr != nil {
			gave(mr.Deregister())
		}
	}
}

// receives are the Receives of a connection: each has the place of one message, and its number as ID.
type receives struct {
	due  []uint64 // those to be posted again
	reqs []verbs.Recv
	sges []verbs.SGE
}

// together is how many receives are posted at once: less than margin, of which the rest is for messages that do not count.
const together = 16

func newReceives() receives {
	return receives{due: make([]uint64, 0, together), reqs: make([]verbs.Recv, together), sges: make([]verbs.SGE, together)}
}

// again makes receive id ready for another message, at once or together with others.
func (c *Conn) again(id uint64) error {
	r := &c.receives
	r.due = append(r.due, id)
	if len(r.due) < together {
		return nil
	}
	for i, id := range r.due {
		r.sges[i] = c.mem.own.SGE(c.mem.recvAt+int(id)*messageSize, messageSize)
		r.reqs[i] = verbs.Recv{ID: id, SGL: r.sges[i : i+1]}
	}
	r.due = r.due[:0]
	_, err := c.qp.PostRecv(r.reqs...)
	return err
}
