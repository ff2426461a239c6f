package dissect

import (
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

var sequenceCases = []ruleCase{
	{"first MSN", func(s *script) {
		s.plain()
		s.fpdu(client, send(2))
		s.fpdu(client, send(3))
	}, []string{"client#1 ddp-msn"}},
	{"MSN gap, and back", func(s *script) {
		s.plain()
		s.fpdu(client, send(1))
		s.fpdu(client, send(3))
		s.fpdu(client, send(4))
		s.fpdu(client, send(4))
	}, []string{"client#2 ddp-msn", "client#4 ddp-msn"}},
	{"MSN moves before the message has ended", func(s *script) {
		s.plain()
		s.fpdu(client, untagged(false, rdmap.Send, 1, 0, 1, 2))
		s.fpdu(client, untagged(true, rdmap.Send, 2, 0, 3))
		s.fpdu(client, send(3))
	}, []string{"client#2 ddp-msn"}},
	{"queues count apart", func(s *script) {
		s.plain()
		s.fpdu(client, send(1))
		s.fpdu(client, readRequest(2, 1, 1, 1))
	}, []string{"client#2 ddp-msn"}},
	{"MO ahead", func(s *script) {
		s.plain()
		s.fpdu(client, untagged(true, rdmap.Send, 1, 4, 1))
		s.fpdu(client, send(2))
	}, []string{"client#1 ddp-mo"}},
	{"MO behind", func(s *script) {
		s.plain()
		s.fpdu(client, untagged(false, rdmap.Send, 1, 0, 1, 2, 3, 4))
		s.fpdu(client, untagged(true, rdmap.Send, 1, 3, 5))
	}, []string{"client#2 ddp-mo"}},
	{"the last segment is not the highest", func(s *script) {
		s.plain()
		s.fpdu(client, untagged(false, rdmap.Send, 1, 2, 3, 4))
		s.fpdu(client, untagged(true, rdmap.Send, 1, 0, 1, 2))
	}, []string{"client#2 ddp-mo"}},
	{"after a lost segment the message is not judged, the next is", func(s *script) {
		s.plain()
		s.send(client, with(s.framed(client, untagged(false, rdmap.Send, 1, 0, 1, 2)), 20, 0x55))
		s.fpdu(client, untagged(false, rdmap.Send, 1, 2, 3))
		s.fpdu(client, untagged(true, rdmap.Send, 1, 3, 3))
		s.fpdu(client, untagged(true, rdmap.Send, 2, 1, 3))
	}, []string{"client#1 mpa-crc", "client#4 ddp-mo"}},
	{"opcode changes within a message", func(s *script) {
		s.plain()
		s.fpdu(client, untagged(false, rdmap.Send, 1, 0, 1))
		s.fpdu(client, untagged(true, rdmap.SendSE, 1, 1, 2))
	}, []string{"client#2 ddp-constant"}},
	{"STag changes within a message", func(s *script) {
		s.plain()
		s.fpdu(client, tagged(false, rdmap.Write, 5, 100, 4))
		s.fpdu(client, tagged(true, rdmap.Write, 6, 104, 4))
		s.fpdu(client, tagged(true, rdmap.Write, 6, 104, 4))
	}, []string{"client#2 ddp-constant"}},
	{"STag changes in an empty last segment", func(s *script) {
		s.plain()
		s.fpdu(client, tagged(false, rdmap.Write, 5, 100, 4))
		s.fpdu(client, tagged(true, rdmap.Write, 6, 104, 0))
	}, []string{"client#2 ddp-constant"}},
	{"tagged message whose beginning was lost", func(s *script) {
		s.plain()
		s.send(client, with(s.framed(client, tagged(false, rdmap.Write, 5, 100, 4)), 17, 0x55))
		s.fpdu(client, tagged(false, rdmap.Write, 5, 108, 4))
		s.fpdu(client, tagged(true, rdmap.Write, 5, 120, 4))
	}, []string{"client#1 mpa-crc"}},
	{"TO leaves a hole", func(s *script) {
		s.plain()
		s.fpdu(client, tagged(false, rdmap.Write, 5, 100, 4))
		s.fpdu(client, tagged(true, rdmap.Write, 5, 105, 4))
	}, []string{"client#2 ddp-to"}},
	{"TO repeats", func(s *script) {
		s.plain()
		s.fpdu(client, tagged(false, rdmap.Write, 5, 100, 4))
		s.fpdu(client, tagged(true, rdmap.Write, 5, 103, 4))
	}, []string{"client#2 ddp-to"}},
}

var readCases = []ruleCase{
	{"response to nothing", func(s *script) {
		s.plain()
		s.fpdu(client, send(1))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 5, 100, 4))
	}, []string{"server#1 read-response"}},
	{"response to another STag", func(s *script) {
		s.plain()
		s.fpdu(client, readRequest(1, 5, 100, 4))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 6, 100, 4))
	}, []string{"server#1 read-response"}},
	{"response to another TO", func(s *script) {
		s.plain()
		s.fpdu(client, readRequest(1, 5, 100, 4))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 5, 99, 4))
	}, []string{"server#1 read-response"}},
	{"response too long", func(s *script) {
		s.plain()
		s.fpdu(client, readRequest(1, 5, 100, 4))
		s.fpdu(server, tagged(false, rdmap.ReadResponse, 5, 100, 4))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 5, 104, 1))
	}, []string{"server#2 read-response"}},
	{"response too short", func(s *script) {
		s.plain()
		s.fpdu(client, readRequest(1, 5, 100, 4))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 5, 100, 3))
	}, []string{"server#1 read-response"}},
	{"responses in another order", func(s *script) {
		s.plain()
		s.fpdu(client, readRequest(1, 5, 100, 4))
		s.fpdu(client, readRequest(2, 6, 100, 4))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 6, 100, 4))
	}, []string{"server#1 read-response"}},
	{"too many Reads", func(s *script) {
		s.depths()
		s.fpdu(client, readRequest(1, 5, 100, 4))
		s.fpdu(client, readRequest(2, 5, 100, 4))
		s.fpdu(client, readRequest(3, 5, 100, 4))
	}, []string{"client#3 read-depth"}},
	{"Reads and Atomics share a limit, the server's is its own", func(s *script) {
		s.depths()
		s.fpdu(client, send(1))
		s.fpdu(server, readRequest(1, 5, 100, 4))
		s.fpdu(server, atomicRequest(2, 1))
	}, []string{"server#2 read-depth"}},
	{"the RTR Read counts", func(s *script) {
		s.start(mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRRead, ORD: 1},
			mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRRead, IRD: 1})
		s.fpdu(client, readRequest(1, 1, 0, 0))
		s.fpdu(client, readRequest(2, 5, 100, 4))
	}, []string{"client#2 read-depth"}},
	{"after a lost FPDU, outstanding Reads cannot be counted", func(s *script) {
		s.depths()
		s.send(client, with(s.framed(client, send(1, 1, 2, 3, 4)), 20, 0x55))
		for msn := uint32(1); msn < 5; msn++ {
			s.fpdu(client, readRequest(msn, 5, 100, 4))
			s.fpdu(server, tagged(true, rdmap.ReadResponse, 5, 100, 4))
		}
	}, []string{"client#1 mpa-crc"}},
	{"nor after a lost response", func(s *script) {
		s.depths()
		for msn := uint32(1); msn < 5; msn++ {
			s.fpdu(client, readRequest(msn, 5, 100, 4))
			b := s.framed(server, tagged(true, rdmap.ReadResponse, 5, 100, 4))
			if msn == 1 {
				b[17] = 0x55
			}
			s.send(server, b)
		}
	}, []string{"server#1 mpa-crc"}},
	{"Atomic Response to nothing", func(s *script) {
		s.plain()
		s.fpdu(client, send(1))
		s.fpdu(server, atomicResponse(1, 5))
	}, []string{"server#1 atomic-response"}},
	{"Atomic Response to another request", func(s *script) {
		s.plain()
		s.fpdu(client, atomicRequest(1, 5))
		s.fpdu(server, atomicResponse(1, 6))
	}, []string{"server#1 atomic-response"}},
}

var terminateCases = []ruleCase{
	{"anything after a Terminate", func(s *script) {
		s.plain()
		s.fpdu(client, terminate(0x20020000))
		s.fpdu(server, send(1)) // the other direction is not ended by it
		s.fpdu(client, send(1))
	}, []string{"client#2 after-terminate"}},
	{"siw's layout", func(s *script) {
		s.plain()
		s.fpdu(client, send(1))
		s.fpdu(server, terminate(0x21050300))
	}, []string{"server#1 terminate-layout"}},
	{"undefined code", func(s *script) {
		s.plain()
		s.fpdu(client, terminate(0x12070000))
	}, []string{"client#1 terminate-code"}},
	{"reserved bits", func(s *script) {
		s.plain()
		s.fpdu(client, terminate(0x20020010))
	}, []string{"client#1 terminate-reserved"}},
	{"missing headers", func(s *script) {
		s.plain()
		s.fpdu(client, terminate(0x1205C000, 0, 20, 0x41))
	}, []string{"client#1 terminate-length"}},
	{"second Terminate", func(s *script) {
		s.plain()
		s.fpdu(client, terminate(0x20020000))
		s.fpdu(client, with(terminate(0x20020000), 13, 2))
	}, []string{"client#2 after-terminate", "client#2 ddp-msn"}},
}
