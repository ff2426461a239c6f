package report

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// tape makes a trace, in pieces that have nothing to do with the frames.
type tape struct {
	t       *testing.T
	rand    *rand.Rand
	whole   bool // pieces are frames after all
	marks   []conformance.Mark
	framers map[conformance.Direction]*mpa.Framer
}

func newTape(t *testing.T, seed uint64, crc, markers bool) *tape {
	a, b := mpa.NewFramer(crc, markers), mpa.NewFramer(crc, markers)
	return &tape{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)),
		framers: map[conformance.Direction]*mpa.Framer{conformance.Sent: &a, conformance.Received: &b},
	}
}

func (p *tape) raw(stream int, d conformance.Direction, b []byte) {
	for len(b) > 0 {
		n := len(b)
		if !p.whole {
			n = 1 + p.rand.IntN(len(b))
		}
		p.marks = append(p.marks, conformance.Mark{
			At: time.Duration(len(p.marks)) * time.Microsecond, Stream: stream, Direction: d, Octets: b[:n],
		})
		b = b[n:]
	}
}

func (p *tape) startup(d conformance.Direction, s mpa.Startup) {
	b, err := s.Append(nil)
	require.NoError(p.t, err)
	p.raw(1, d, b)
}

func (p *tape) fpdu(d conformance.Direction, ulpdu []byte) []byte {
	b := p.framers[d].AppendFPDU(nil, nil, ulpdu)
	p.raw(1, d, b)
	return b
}

func (p *tape) note(text string) { p.marks = append(p.marks, conformance.Mark{Text: text}) }

func (p *tape) end(d conformance.Direction, how string) {
	p.marks = append(p.marks, conformance.Mark{Stream: 1, Direction: d, Text: how})
}

// conversation plays a startup, if there is to be one, and messages.
func (p *tape) conversation(startup, crc, markers bool) {
	if startup {
		p.startup(conformance.Sent, mpa.Startup{Rev: 2, CRC: crc, Markers: markers, Enhanced: true, IRD: 3, ORD: 4, PrivateData: []byte("hi")})
		p.startup(conformance.Received, mpa.Startup{Reply: true, Rev: 2, CRC: crc, Markers: markers, Enhanced: true, IRD: 4, ORD: 3})
	}
	p.note("first a write")
	p.fpdu(conformance.Sent, rawpeer.Write(0x11223344, 0x1000, make([]byte, 900)).Octets())
	p.fpdu(conformance.Sent, rawpeer.Send(1, []byte("abc")).Octets())
	p.fpdu(conformance.Received, rawpeer.Terminate(rdmap.TerminateHeader{
		Code: 0x0102, HasLength: true, SegmentLength: 914, DDPHeader: rawpeer.Write(0x11223344, 0x1000, nil).Octets(),
	}).Octets())
	p.end(conformance.Received, "FIN")
}

func titles(entries []Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Arrow()+" "+e.Title)
	}
	return all
}

func TestDecode(t *testing.T) {
	messages := []string{
		"   first a write",
		"-> Write, STag 0x11223344, TO 0x1000, 900 octets",
		"-> Send, QN 0, MSN 1, MO 0, 3 octets",
		"<- Terminate 0x0102 (RDMAP remote protection error: access rights violation)",
		"<- FIN",
	}
	for seed := range uint64(20) {
		for _, startup := range []bool{true, false} {
			for _, crc := range []bool{true, false} {
				for _, markers := range []bool{true, false} {
					p := newTape(t, seed, crc, markers)
					p.conversation(startup, crc, markers)
					entries := Decode(p.marks)
					want := messages
					if startup {
						how := ", revision 2"
						if markers {
							how += ", markers"
						}
						if crc {
							how += ", CRC"
						}
						want = append([]string{"-> MPA Request" + how + ", enhanced", "<- MPA Reply" + how + ", enhanced"}, messages...)
					}
					require.Equal(t, want, titles(entries), "startup %v, CRC %v, markers %v", startup, crc, markers)
					for _, e := range entries {
						require.Empty(t, e.Complaint, e.Title)
					}
					wholeOctets(t, p.marks, entries)
				}
			}
		}
	}
}

// wholeOctets says that nothing is lost or moved: the fields are the entry's octets,
// and the entries those of the stream.
func wholeOctets(t *testing.T, marks []conformance.Mark, entries []Entry) {
	t.Helper()
	type half struct {
		stream int
		d      conformance.Direction
	}
	was, is := map[half][]byte{}, map[half][]byte{}
	for _, m := range marks {
		if len(m.Octets) > 0 {
			was[half{m.Stream, m.Direction}] = append(was[half{m.Stream, m.Direction}], m.Octets...)
		}
	}
	for _, e := range entries {
		var fields []byte
		for _, f := range e.Fields {
			require.NotEmpty(t, f.Octets, f.Text)
			fields = append(fields, f.Octets...)
		}
		if len(e.Octets) > 0 {
			require.Equal(t, e.Octets, fields, e.Title)
			is[half{e.Stream, e.Direction}] = append(is[half{e.Stream, e.Direction}], e.Octets...)
		}
	}
	require.Equal(t, was, is)
}

// Whatever a case does to its stream, all octets are shown.
func TestDecodeNonsense(t *testing.T) {
	for seed := range uint64(300) {
		markers := seed%2 == 0
		p := newTape(t, seed, true, markers)
		p.conversation(seed%3 > 0, true, markers)
		for range 1 + p.rand.IntN(8) { // damage
			m := &p.marks[p.rand.IntN(len(p.marks))]
			if len(m.Octets) > 0 {
				m.Octets = append([]byte(nil), m.Octets...)
				m.Octets[p.rand.IntN(len(m.Octets))] ^= byte(1 + p.rand.IntN(255))
				m.Octets = m.Octets[:1+p.rand.IntN(len(m.Octets))]
			}
		}
		wholeOctets(t, p.marks, Decode(p.marks))
	}
}

func TestDecodeComplaints(t *testing.T) {
	request := func(p *tape) {
		p.startup(conformance.Sent, mpa.Startup{Rev: 1, CRC: true})
		p.startup(conformance.Received, mpa.Startup{Reply: true, Rev: 1, CRC: true})
	}
	tests := []struct {
		name  string
		play  func(*tape)
		want  string // of the last entry
		wrong string
	}{
		{"CRC", func(p *tape) {
			request(p)
			b := append([]byte(nil), p.framers[conformance.Sent].AppendFPDU(nil, nil, rawpeer.Send(1, []byte("abc")).Octets())...)
			b[len(b)-1] ^= 1
			p.raw(1, conformance.Sent, b)
		}, "Send, QN 0, MSN 1, MO 0, 3 octets", "CRC is 0x"},
		{"an FPDU begun", func(p *tape) {
			request(p)
			p.raw(1, conformance.Sent, []byte{0, 40, 0x41, 0x43, 0, 0})
		}, "Send, header cut off", "incomplete"},
		{"a length begun", func(p *tape) {
			request(p)
			p.raw(1, conformance.Sent, []byte{0})
		}, "FPDU", "incomplete"},
		{"a length that is none", func(p *tape) {
			request(p)
			p.raw(1, conformance.Sent, []byte{0xff, 0xff, 0x41, 0x43, 0, 0})
		}, "Send, header cut off", "ULPDU_Length 65535"},
		{"no DDP header", func(p *tape) {
			request(p)
			p.fpdu(conformance.Sent, []byte{1})
		}, "FPDU without a DDP header", ""},
		{"opcode", func(p *tape) {
			request(p)
			s := rawpeer.Send(1, nil)
			s.Op = 14
			p.fpdu(conformance.Received, s.Octets())
		}, "opcode 0xe, QN 0, MSN 1, MO 0", ""},
		{"more follows", func(p *tape) {
			request(p)
			s := rawpeer.Send(1, nil)
			s.More = true
			p.fpdu(conformance.Received, s.Octets())
		}, "Send (more follows), QN 0, MSN 1, MO 0, 0 octets", ""},
		{"a startup frame begun", func(p *tape) {
			p.raw(1, conformance.Sent, []byte("MPA ID Req Frame\x40"))
		}, "MPA Request", "incomplete"},
		{"a bad key", func(p *tape) {
			p.raw(1, conformance.Sent, []byte("MPA ID Rex Frame\x40\x01\x00\x00"))
		}, "MPA startup frame, revision 1, CRC", ""},
		{"rejected", func(p *tape) {
			p.startup(conformance.Sent, mpa.Startup{Rev: 1})
			p.startup(conformance.Received, mpa.Startup{Reply: true, Reject: true, Rev: 1})
			p.raw(1, conformance.Received, []byte{0, 2, 3, 4})
		}, "octets outside of FPDUs", ""},
		{"not MPA", func(p *tape) {
			p.startup(conformance.Sent, mpa.Startup{Rev: 1})
			p.raw(1, conformance.Received, []byte("HTTP/1.1 400 Bad Request\r\n"))
		}, "octets outside of FPDUs", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newTape(t, 1, true, false)
			p.whole = true
			tt.play(p)
			entries := Decode(p.marks)
			wholeOctets(t, p.marks, entries)
			last := entries[len(entries)-1]
			assert.Equal(t, tt.want, last.Title)
			if tt.wrong == "" {
				assert.Empty(t, last.Complaint)
			}
			assert.Contains(t, last.Complaint, tt.wrong)
		})
	}
}

func TestFields(t *testing.T) {
	p := newTape(t, 1, true, false)
	p.whole = true
	p.startup(conformance.Sent, mpa.Startup{Rev: 2, CRC: true, Enhanced: true, IRD: 3, ORD: 4, P2P: true, RTR: mpa.RTRWrite, PrivateData: []byte("hi")})
	p.startup(conformance.Received, mpa.Startup{Reply: true, Rev: 2, CRC: true})
	fault := rawpeer.ReadRequest(7, rdmap.ReadRequestHeader{SinkSTag: 1, SinkTO: 2, Size: 3, SourceSTag: 4, SourceTO: 5}).Octets()
	p.fpdu(conformance.Received, rawpeer.Terminate(rdmap.TerminateHeader{
		Code: 0x0100, HasLength: true, SegmentLength: 46, DDPHeader: fault[:18], ReadRequest: fault[18:],
	}).Octets())
	s := rawpeer.Send(9, []byte{0xaa, 0xbb, 0xcc})
	s.Op, s.Inv = rdmap.SendInvalidate, 0xdead
	p.fpdu(conformance.Sent, s.Octets())
	entries := Decode(p.marks)
	require.Len(t, entries, 4)
	lines := func(e Entry) []string {
		var all []string
		for _, r := range rows(viewed{Entry: e}) {
			all = append(all, r.Offset+"|"+r.Head+"|"+r.Layer+"|"+r.Text)
		}
		return all
	}
	assert.Equal(t, []string{
		`0000|4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65|MPA|Key "MPA ID Req Frame"`,
		"0010|50|MPA|M=0 C=1 R=0 S=1 Res=0x0",
		"0011|02|MPA|Rev = 2",
		"0012|00 06|MPA|PD_Length = 6",
		"0014|80 03 80 04|MPA|A=1 B=0 IRD=3, C=1 D=0 ORD=4",
		"0018|68 69|data|Private Data, 2 octets",
	}, lines(entries[0]))
	assert.Equal(t, []string{
		"0000|00 46|MPA|ULPDU_Length = 70",
		"0002|41|DDP|T=0 L=1 Rsvd=0x0 DV=1",
		"0003|47|RDMAP|RV=1 Rsv=0 Opcode=0x7 Terminate",
		"0004|00 00 00 00|RDMAP|Invalidate STag = 0x00000000",
		"0008|00 00 00 02|DDP|QN = 2",
		"000c|00 00 00 01|DDP|MSN = 1",
		"0010|00 00 00 00|DDP|MO = 0",
		"0014|01|RDMAP|Layer = 0 EType = 1",
		"0015|00|RDMAP|Error Code = 0x00: RDMAP remote protection error: invalid STag",
		"0016|e0 00|RDMAP|M=1 D=1 R=1 Reserved=0x0",
		"0018|00 2e|RDMAP|DDP Segment Length = 46",
		"001a|41|DDP|Terminated: T=0 L=1 Rsvd=0x0 DV=1",
		"001b|41|RDMAP|Terminated: RV=1 Rsv=0 Opcode=0x1 ReadRequest",
		"001c|00 00 00 00|RDMAP|Terminated: Invalidate STag = 0x00000000",
		"0020|00 00 00 01|DDP|Terminated: QN = 1",
		"0024|00 00 00 07|DDP|Terminated: MSN = 7",
		"0028|00 00 00 00|DDP|Terminated: MO = 0",
		"002c|00 00 00 01|RDMAP|Terminated: Sink STag = 0x00000001",
		"0030|00 00 00 00 00 00 00 02|RDMAP|Terminated: Sink TO = 0x2",
		"0038|00 00 00 03|RDMAP|Terminated: Size = 3",
		"003c|00 00 00 04|RDMAP|Terminated: Source STag = 0x00000004",
		"0040|00 00 00 00 00 00 00 05|RDMAP|Terminated: Source TO = 0x5",
	}, lines(entries[2])[:22])
	last := lines(entries[3])
	assert.Equal(t, "0004|00 00 de ad|RDMAP|Invalidate STag = 0x0000dead", last[3])
	assert.Equal(t, []string{"0014|aa bb cc|data|Payload, 3 octets", "0017|00|MPA|Pad"}, last[7:9])
}
