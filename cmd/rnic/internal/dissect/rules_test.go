package dissect

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// allRules has each rule once; TestRules wants a case for every one.
var allRules = []rule{
	ruleStartupKey, ruleStartupLength, ruleStartupRevision, ruleStartupReserved, ruleStartupEnhanced,
	ruleStartupModel, ruleStartupDepth, ruleEarlyFPDU, ruleFirstFPDU, ruleRTR,
	ruleLength, ruleCRC, ruleMarker,
	ruleShort, ruleDDPVersion, ruleDDPReserved, ruleLast, ruleMSN, ruleMO, ruleTO, ruleConstant,
	ruleRDMAPVersion, ruleRDMAPReserved, ruleOpcode, ruleTagged, ruleQueue, ruleInvalidateSTag, ruleSize,
	ruleReadResponse, ruleAtomicResponse, ruleDepth, ruleAfterTerminate,
	ruleTerminateLayout, ruleTerminateCode, ruleTerminateReserved, ruleTerminateLength,
}

// broken lists "end#FPDU rule" for each violation, the client's first.
func broken(c *Connection) []string {
	out := []string{}
	for i, s := range c.Streams {
		for _, v := range s.Violations {
			out = append(out, fmt.Sprintf("%s#%d %s", [...]string{"client", "server"}[i], v.FPDU, v.Rule))
		}
	}
	return out
}

type ruleCase struct {
	name string
	run  func(s *script)
	want []string
}

func TestRules(t *testing.T) {
	covered := map[string]bool{}
	for _, group := range [][]ruleCase{cleanCases, startupCases, fpduCases, sequenceCases, readCases, terminateCases} {
		for _, tc := range group {
			t.Run(tc.name, func(t *testing.T) {
				s := newScript(t)
				tc.run(s)
				assert.Equal(t, append([]string{}, tc.want...), broken(s.one()))
			})
			for _, w := range tc.want {
				var place, name string
				_, err := fmt.Sscan(w, &place, &name)
				assert.NoError(t, err)
				covered[name] = true
			}
		}
	}
	for _, r := range allRules {
		assert.True(t, covered[r.name], "no case breaks rule %s", r.name)
		assert.Contains(t, r.cite, "RFC ")
	}
	assert.Len(t, covered, len(allRules), "allRules lacks one")
}

// Legal traffic that is near the edge of a rule.
var cleanCases = []ruleCase{
	{"nothing after startup", func(s *script) { s.plain() }, nil},
	{"every opcode", func(s *script) {
		s.depths()
		s.fpdu(client, send(1, 1, 2, 3))
		s.fpdu(client, untagged(true, rdmap.SendSE, 2, 0))
		s.fpdu(client, append(ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.SendInvalidate), 77, 0, 3, 0), 1))
		s.fpdu(client, tagged(true, rdmap.Write, 5, 6, 7))
		s.fpdu(client, rdmap.AppendImmediate(untagged(true, rdmap.Immediate, 4, 0), 1))
		s.fpdu(client, readRequest(1, 5, 100, 10))
		s.fpdu(client, atomicRequest(2, 8))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 5, 100, 10))
		s.fpdu(server, atomicResponse(1, 8))
		s.fpdu(server, terminate(0x20020000))
	}, nil},
	{"segmented messages of both kinds, interleaved", func(s *script) {
		s.plain()
		s.fpdu(client, untagged(false, rdmap.Send, 1, 0, 1, 2))
		s.fpdu(client, tagged(false, rdmap.Write, 5, 100, 4))
		s.fpdu(client, untagged(true, rdmap.Send, 1, 2, 3))
		s.fpdu(client, tagged(true, rdmap.Write, 5, 104, 4))
		s.fpdu(client, send(2))
	}, nil},
	{"segments of a message out of order, which is discouraged but legal", func(s *script) {
		s.plain()
		s.fpdu(client, untagged(false, rdmap.Send, 1, 2, 3))
		s.fpdu(client, untagged(false, rdmap.Send, 1, 0, 1, 2))
		s.fpdu(client, untagged(true, rdmap.Send, 1, 3, 4))
		s.fpdu(client, tagged(false, rdmap.Write, 5, 104, 4))
		s.fpdu(client, tagged(false, rdmap.Write, 5, 100, 4))
		s.fpdu(client, tagged(true, rdmap.Write, 5, 108, 4))
	}, nil},
	{"empty tagged messages carry any STag and TO", func(s *script) {
		s.plain()
		s.fpdu(client, tagged(true, rdmap.Write, 0, 0, 0))
		s.fpdu(client, readRequest(1, 5, 100, 0))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 9, 9, 0))
	}, nil},
	{"a Read is asked again once answered", func(s *script) {
		s.depths()
		s.fpdu(client, readRequest(1, 5, 100, 4))
		s.fpdu(client, readRequest(2, 6, 100, 4))
		s.fpdu(server, tagged(false, rdmap.ReadResponse, 5, 100, 2))
		s.fpdu(server, tagged(true, rdmap.ReadResponse, 5, 102, 2))
		s.fpdu(client, readRequest(3, 7, 100, 4))
	}, nil},
	{"peer-to-peer", func(s *script) {
		s.start(mpa.Startup{Rev: 2, CRC: true, Enhanced: true, P2P: true, RTR: mpa.RTRWrite | mpa.RTRRead},
			mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRWrite})
		s.fpdu(client, tagged(true, rdmap.Write, 1, 0, 0))
		s.fpdu(server, send(1))
	}, nil},
	{"markers both ways", func(s *script) {
		s.start(mpa.Startup{Rev: 1, CRC: true, Markers: true}, mpa.Startup{Rev: 1, Markers: true})
		s.fpdu(client, send(1, make([]byte, 1500)...))
		s.fpdu(server, send(1, make([]byte, 700)...))
		s.fpdu(client, send(2, make([]byte, 30)...))
	}, nil},
	{"markers one way", func(s *script) {
		s.start(mpa.Startup{Rev: 1, CRC: true, Markers: true}, mpa.Startup{Rev: 1})
		s.fpdu(client, send(1, make([]byte, 700)...))
		s.fpdu(server, send(1, make([]byte, 700)...))
	}, nil},
	{"markers the other way", func(s *script) {
		s.start(mpa.Startup{Rev: 1, CRC: true}, mpa.Startup{Rev: 1, Markers: true})
		s.fpdu(client, send(1, make([]byte, 700)...))
		s.fpdu(server, send(1, make([]byte, 700)...))
	}, nil},
	{"CRC not in use may be anything", func(s *script) {
		s.start(mpa.Startup{Rev: 1}, mpa.Startup{Rev: 1})
		b := s.framed(client, send(1))
		s.send(client, with(b, len(b)-1, 0xaa))
	}, nil},
	{"after a reject TCP may carry anything", func(s *script) {
		s.start(mpa.Startup{Rev: 1}, mpa.Startup{Rev: 1, Reject: true})
		s.send(client, []byte("sorry to hear that, here is something else"))
		s.send(server, []byte("goodbye"))
	}, nil},
	{"an experimental opcode", func(s *script) {
		s.plain()
		s.fpdu(client, with(send(1), 1, 0x4F))
	}, nil},
	{"depths left open", func(s *script) {
		s.start(mpa.Startup{Rev: 2, Enhanced: true, IRD: mpa.NotNegotiated, ORD: mpa.NotNegotiated},
			mpa.Startup{Rev: 2, Enhanced: true, IRD: mpa.NotNegotiated, ORD: mpa.NotNegotiated})
		s.fpdu(client, readRequest(1, 5, 100, 4))
		s.fpdu(client, readRequest(2, 5, 100, 4))
	}, nil},
}

// raw makes a startup frame from its parts.
func raw(key string, flags, rev byte, length uint16, data ...byte) []byte {
	b := append([]byte(key), flags, rev)
	return append(binary.BigEndian.AppendUint16(b, length), data...)
}

const (
	reqKey = "MPA ID Req Frame"
	repKey = "MPA ID Rep Frame"
)

var startupCases = []ruleCase{
	{"Reply with another key", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0, 1, 0))
		s.send(server, []byte("HTTP/1.1 400 Bad Request"))
	}, []string{"server#0 startup-key"}},
	{"both are Initiators", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0, 1, 0))
		s.send(server, raw(reqKey, 0, 1, 0))
	}, []string{"server#0 startup-key"}},
	{"Request too long", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0, 1, 513))
	}, []string{"client#0 startup-length"}},
	{"Reply without room for its enhanced word", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x10, 2, 4, 0, 0, 0, 0))
		s.send(server, raw(repKey, 0x10, 2, 3, 0, 0, 0))
	}, []string{"server#0 startup-length"}},
	{"revision 0", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0, 0, 0))
	}, []string{"client#0 startup-revision"}},
	{"reserved flags", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x08, 1, 0))
		s.send(server, raw(repKey, 0x10, 1, 0)) // S is reserved in revision 1
	}, []string{"client#0 startup-reserved", "server#0 startup-reserved"}},
	{"S is not mirrored", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x10, 2, 4, 0, 0, 0, 0))
		s.send(server, raw(repKey, 0, 2, 0))
	}, []string{"server#0 startup-enhanced"}},
	{"A is not mirrored", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x10, 2, 4, 0xC0, 0, 0, 0))
		s.send(server, raw(repKey, 0x10, 2, 4, 0, 0, 0, 0))
	}, []string{"server#0 startup-model"}},
	{"B without A", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x10, 2, 4, 0x40, 0, 0, 0))
	}, []string{"client#0 startup-model"}},
	{"peer-to-peer without an RTR message", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x10, 2, 4, 0xC0, 0, 0, 0))
		s.send(server, raw(repKey, 0x10, 2, 4, 0x80, 0, 0, 0))
	}, []string{"server#0 startup-model"}},
	{"ORD above the peer's IRD", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x10, 2, 4, 0, 4, 0, 4))
		s.send(server, raw(repKey, 0x10, 2, 4, 0, 4, 0, 5))
	}, []string{"server#0 startup-depth"}},
	{"a reject may ask for more", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x10, 2, 4, 0, 4, 0, 4))
		s.send(server, raw(repKey, 0x30, 2, 4, 0, 4, 0, 5))
	}, nil},
	{"open depths are answered with numbers", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x10, 2, 4, 0x3F, 0xFF, 0x3F, 0xFF))
		s.send(server, raw(repKey, 0x10, 2, 4, 0, 4, 0, 4))
	}, []string{"server#0 startup-depth", "server#0 startup-depth"}},
	{"FPDU before the Reply", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0x40, 1, 0))
		s.frameWith(mpa.Startup{CRC: true}, mpa.Startup{})
		s.fpdu(client, send(1))
		s.send(server, raw(repKey, 0x40, 1, 0))
		s.fpdu(client, send(2))
		s.fpdu(client, send(4))
	}, []string{"client#1 early-fpdu", "client#3 ddp-msn"}},
	{"Responder first", func(s *script) {
		s.plain()
		s.fpdu(server, send(1))
		s.fpdu(server, send(2))
		s.fpdu(client, send(1))
	}, []string{"server#1 first-fpdu"}},
	{"Responder first, in the segment of its Reply", func(s *script) {
		s.handshake()
		s.send(client, raw(reqKey, 0, 1, 0))
		s.send(server, append(raw(repKey, 0, 1, 0), s.framed(server, send(1))...))
	}, []string{"server#1 first-fpdu"}},
	{"Responder first, in pieces", func(s *script) {
		s.plain()
		b := s.framed(server, send(1))
		s.send(server, b[:5])
		s.send(server, b[5:9])
		s.send(server, b[9:])
	}, []string{"server#1 first-fpdu"}},
	{"wrong RTR message", func(s *script) {
		s.start(mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRWrite | mpa.RTRRead},
			mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRWrite})
		s.fpdu(client, send(1))
	}, []string{"client#1 rtr"}},
	{"RTR message with octets", func(s *script) {
		s.start(mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRWrite},
			mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRWrite})
		s.fpdu(client, tagged(true, rdmap.Write, 5, 5, 5))
	}, []string{"client#1 rtr"}},
	{"Terminate in place of an RTR message", func(s *script) {
		s.start(mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRWrite},
			mpa.Startup{Rev: 2, Enhanced: true, P2P: true, RTR: mpa.RTRRead})
		s.fpdu(client, terminate(0x20070000))
	}, nil},
}

var fpduCases = []ruleCase{
	{"bad CRC", func(s *script) {
		s.plain()
		s.fpdu(client, send(1))
		s.send(client, with(s.framed(client, send(2, 1, 2, 3, 4)), 20, 0x55))
		s.fpdu(client, send(3))
		s.fpdu(client, send(5))
	}, []string{"client#2 mpa-crc", "client#4 ddp-msn"}},
	{"zero CRC in use", func(s *script) {
		s.plain()
		b := s.framed(client, send(1))
		s.send(client, append(b[:len(b)-4], 0, 0, 0, 0))
	}, []string{"client#1 mpa-crc"}},
	{"CRC is in use if one side wants it", func(s *script) {
		s.start(mpa.Startup{Rev: 1}, mpa.Startup{Rev: 1, CRC: true})
		b := s.framed(client, send(1))
		s.send(client, append(b[:len(b)-4], 1, 2, 3, 4))
	}, []string{"client#1 mpa-crc"}},
	{"marker", func(s *script) {
		s.start(mpa.Startup{Rev: 1}, mpa.Startup{Rev: 1, Markers: true})
		s.send(client, with(s.framed(client, send(1)), 3, 8))
	}, []string{"client#1 mpa-marker"}},
	{"length", func(s *script) {
		s.plain()
		s.fpdu(client, send(1))
		s.send(client, []byte{0xFD, 0x01, 0x41, 0x43})
		s.fpdu(client, send(7))
	}, []string{"client#2 mpa-length"}},
	{"short ULPDU", func(s *script) {
		s.plain()
		s.fpdu(client, []byte{0x41, 0x43, 0})
		s.fpdu(client, nil)
	}, []string{"client#1 ddp-short", "client#2 ddp-short"}},
	{"DDP version", func(s *script) {
		s.plain()
		s.fpdu(client, with(send(1), 0, 0x40))
		s.fpdu(client, with(tagged(true, rdmap.Write, 1, 1, 1), 0, 0xC2))
		s.fpdu(client, send(2))
	}, []string{"client#1 ddp-version", "client#2 ddp-version"}},
	{"DDP reserved bits", func(s *script) {
		s.plain()
		s.fpdu(client, with(send(1), 0, 0x45))
	}, []string{"client#1 ddp-reserved"}},
	{"RDMAP version", func(s *script) {
		s.plain()
		s.fpdu(client, with(send(1), 1, 0x33)) // reserved bits of another version are its own
		s.fpdu(client, send(2))
	}, []string{"client#1 rdmap-version"}},
	{"RDMAP reserved bits", func(s *script) {
		s.plain()
		s.fpdu(client, with(send(1), 1, 0x63))
	}, []string{"client#1 rdmap-reserved"}},
	{"opcode", func(s *script) {
		s.plain()
		s.fpdu(client, with(send(1), 1, 0x4C))
	}, []string{"client#1 rdmap-opcode"}},
	{"tagged Send, untagged Write", func(s *script) {
		s.plain()
		s.fpdu(client, tagged(true, rdmap.Send, 1, 1, 1))
		s.fpdu(client, untagged(true, rdmap.Write, 1, 0))
	}, []string{"client#1 rdmap-tagged", "client#2 rdmap-tagged"}},
	{"queue", func(s *script) {
		s.plain()
		s.fpdu(client, with(send(1), 9, 1))
		s.fpdu(client, with(send(1), 9, 200))
		s.fpdu(client, send(1))
	}, []string{"client#1 rdmap-queue", "client#2 rdmap-queue"}},
	{"Invalidate STag in a plain Send", func(s *script) {
		s.plain()
		s.fpdu(client, with(send(1), 5, 9))
	}, []string{"client#1 rdmap-invalidate-stag"}},
	{"sizes", func(s *script) {
		s.plain()
		s.fpdu(client, append(readRequest(1, 1, 1, 1), 0))
		s.fpdu(client, untagged(true, rdmap.Immediate, 1, 0, 1, 2, 3, 4, 5, 6, 7))
		s.fpdu(client, untagged(true, rdmap.AtomicRequest, 2, 0, 1))
		s.fpdu(client, untagged(true, rdmap.Terminate, 1, 0, 1))
	}, []string{"client#1 rdmap-size", "client#2 rdmap-size", "client#3 rdmap-size", "client#4 rdmap-size"}},
	{"Read Request without L, and at an offset", func(s *script) {
		s.plain()
		s.fpdu(client, with(readRequest(1, 1, 1, 1), 0, 0x01))
		s.fpdu(client, with(readRequest(2, 1, 1, 1), 17, 4))
	}, []string{"client#1 ddp-last", "client#2 ddp-mo"}},
}
