package demo

import (
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/pattern"
	"github.com/softrnic/softrnic/verbs"
)

// The protocol of `rnic demo`. The client brings the plan in its private data.
// The server receives by a shared receive queue, and opens its slots to the
// client by a memory window only. Three transfers, each of the plan's next
// octets, are cut into messages that both sides work out for themselves.
//
//	Send            client: Send of the message         server: verify, empty Send
//	Bind            server: Bind, Send of the address   client: await it
//	Write           client: Write to a slot, empty Send server: verify, empty Send
//	Read            server: fill a slot, empty Send     client: Read, verify, empty Send
//	SendInvalidate  client: Send with Invalidate        server: check, empty Send
//	Write           client: Write to a slot, empty Send server: Terminate
//
// An empty Send toward the sender of the data is a credit: message i is
// verified and its slot is free again. A Send with contents from the server is
// a demoNote.

// demoOps are the transfers, in order.
var demoOps = [...]verbs.Op{sendTransfer: verbs.OpSend, writeTransfer: verbs.OpWrite, readTransfer: verbs.OpRead}

const (
	sendTransfer = iota
	writeTransfer
	readTransfer
)

const (
	// demoSlots is how many messages may be on their way or unverified.
	demoSlots = 8
	// demoSlotSize is the longest message, in octets.
	demoSlotSize = 1 << 20
	// demoNoteSize is room for a demoNote.
	demoNoteSize = 1024
)

// demoSizes are the lengths of successive messages: long ones for the bulk of
// the data, and others that end within a segment or word.
var demoSizes = [...]int{demoSlotSize, demoSlotSize / 4, 64<<10 + 1, 4096, 1461, 64, 1}

// demoPlan is what a client asks for.
type demoPlan struct {
	Bytes uint64 `json:"bytes"` // in all
	Seed  uint64 `json:"seed"`
}

// share is the number of octets that transfer i of demoOps moves: a third,
// and the first ones take what does not divide.
func (p demoPlan) share(i int) uint64 {
	n := uint64(len(demoOps))
	share := p.Bytes / n
	if uint64(i) < p.Bytes%n {
		share++
	}
	return share
}

// pattern is the data of transfer i; what the refused Write carries is that of
// one transfer more.
func (p demoPlan) pattern(i int) pattern.Pattern {
	return pattern.Pattern(pattern.Pattern(p.Seed).Word(uint64(i)))
}

// messages starts the messages of transfer i.
func (p demoPlan) messages(i int) messages { return messages{total: p.share(i)} }

// messages goes through the messages of a transfer.
type messages struct {
	total  uint64
	index  int    // of the next message
	offset uint64 // of the next message in the transfer
}

// message is one message of a transfer.
type message struct {
	index  int
	offset uint64
	length int
}

func (m message) slot() int { return m.index % demoSlots }

func (m *messages) more() bool { return m.offset < m.total }

func (m *messages) next() message {
	n := min(uint64(demoSizes[m.index%len(demoSizes)]), m.total-m.offset)
	msg := message{m.index, m.offset, int(n)}
	m.index++
	m.offset += n
	return msg
}

// demoNote is what a server says in a Send with contents: the address of its
// window, or what was wrong.
type demoNote struct {
	Window *endpoint.RemoteBuffer `json:"window,omitempty"`
	Wrong  string                 `json:"wrong,omitempty"`
}

// newDemoNote encodes a note, which JSON makes up to six times as long as the
// text.
func newDemoNote(window *endpoint.RemoteBuffer, wrong string) []byte {
	const longest = demoNoteSize / 8
	return endpoint.Marshal(demoNote{Window: window, Wrong: wrong[:min(len(wrong), longest)]})
}
