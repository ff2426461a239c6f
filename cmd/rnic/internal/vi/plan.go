package vi

import (
	"encoding/json"
	"fmt"

	"github.com/softrnic/softrnic/cmd/rnic/internal/pattern"
	"github.com/softrnic/softrnic/vipl"
)

// The protocol of `rnic vi ping`. A client makes one connection after the other, each
// with a VI of its own: one for each reliability level, without and with CRC. The first
// one calls viService; it names a session, and the next ones call that, so that no
// other client comes in between. On each connection:
//
//	client                                          server
//	Send: viPlan                                ->
//	                                            <-  Send: viBuffer, of its slots
//	and then the series of the plan, all rounds of one before the next:
//	Send: data                                  ->
//	                                            <-  Send: the same data
//	RDMA Write: data to a slot; immediate data  ->
//	                                            <-  RDMA Write: the same data, immediate data inverted
//	RDMA Write: data to viReadSlot              ->
//	RDMA Read: the same data                    <-  (its program takes no part)
//	and in the end:
//	empty Send                                  ->  it has found all data right
//	                                            <-  empty Send
//	Disconnect
//
// Round n of a connection lands in slot n%2 of the server, which so can compare the data of
// a round with what they should be while its answer is on the way and even while the
// next round arrives.

const (
	viService = "rnic vi ping"

	// viNoteSize is room for a viPlan, the longest with maxViSeries sizes, or a viBuffer.
	viNoteSize = 2048

	// Of the server. The client has two: what goes out, and what comes back.
	viReadSlot = 2
	viSlots    = 3

	viOutSlot, viInSlot = 0, 1

	maxViCount  = 1 << 20 // rounds of a series
	maxViSeries = 64      // sizes of a plan
)

// viOp is how a series moves its data.
type viOp int

const (
	viSend viOp = iota
	viWrite
	viRead
)

func (o viOp) String() string { return [...]string{"Send", "RDMA Write", "RDMA Read"}[o] }

// arrival is what completes the receive for its data.
func (o viOp) arrival() vipl.Status {
	if o == viSend {
		return vipl.StatusOpReceive
	}
	return vipl.StatusOpRemoteRdmaWrite
}

// viPlan is what a client wants of a connection.
type viPlan struct {
	Session string   `json:"session"` // the address of the next connection
	Left    int      `json:"left"`    // how many connections follow
	Seed    uint64   `json:"seed"`
	Count   int      `json:"count"` // rounds of each series
	Sizes   []uint64 `json:"sizes"`
	Sink    viBuffer `json:"sink"` // where RDMA Writes to the client go
}

// viBuffer is how memory is named to the peer.
type viBuffer struct {
	Address vipl.Address   `json:"address"`
	Handle  vipl.MemHandle `json:"handle"`
}

func (b viBuffer) at(off uint64) vipl.AddressSegment {
	return vipl.AddressSegment{Data: b.Address + vipl.Address(off), Handle: b.Handle}
}

// parseViPlan reads a plan and checks it: a server must not do whatever anyone asks for.
func parseViPlan(note []byte) (p viPlan, err error) {
	if err = json.Unmarshal(note, &p); err != nil {
		return p, fmt.Errorf("the client does not speak the protocol of rnic vi ping: %w", err)
	}
	if p.Count < 1 || p.Count > maxViCount || p.Left < 0 || len(p.Sizes) == 0 || len(p.Sizes) > maxViSeries ||
		p.Session == "" || len(p.Session) > vipl.MaxDiscriminator {
		return p, fmt.Errorf("the client asks for what no rnic vi ping does: %.200s", note)
	}
	for _, size := range p.Sizes {
		if size < 1 || size > maxViSize {
			return p, fmt.Errorf("the client asks for messages of %d octets, 1 to %d are served", size, maxViSize)
		}
	}
	return p, nil
}

// slot is the length of a slot in octets.
func (p *viPlan) slot() uint64 {
	var most uint64
	for _, size := range p.Sizes {
		most = max(most, size)
	}
	return most
}

// viSeries are Count rounds that do the same.
type viSeries struct {
	op      viOp
	size    uint64
	pattern pattern.Pattern
}

// series are those of a connection. RDMA Reads come last: the server's program does not
// notice them, and has nothing to do but to wait for the end.
func (p *viPlan) series(level vipl.ReliabilityLevel) []viSeries {
	var all []viSeries
	for op := viSend; op <= viRead; op++ {
		if op == viRead && level == vipl.ServiceUnreliable { // VI Architecture 2.5.1
			continue
		}
		for _, size := range p.Sizes {
			all = append(all, viSeries{op, size, pattern.Pattern(pattern.Pattern(p.Seed).Word(uint64(len(all))))})
		}
	}
	return all
}

// immediate is the immediate data of round k, from the client.
func (s *viSeries) immediate(k int) uint32 { return uint32(^s.pattern.Word(uint64(k))) }

// offset is where in the pattern round k has its data.
func (s *viSeries) offset(k int) uint64 { return uint64(k) * s.size }

// compare is an error if the data of round k differ from what they should be.
func (s *viSeries) compare(k int, data []byte) error {
	if uint64(len(data)) != s.size {
		return fmt.Errorf("data mismatch: %v %d of %d octets came with %d", s.op, k, s.size, len(data))
	}
	if i := s.pattern.Mismatch(data, s.offset(k)); i >= 0 {
		return fmt.Errorf("data mismatch: %v %d of %d octets differs at octet %d", s.op, k, s.size, i)
	}
	return nil
}
