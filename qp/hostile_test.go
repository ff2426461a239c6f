package qp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// echo says which headers a Terminate repeats (RFC 5040 4.8 figure 10).
type echo uint8

const (
	echoNone echo = iota
	echoDDP       // M and D
	echoRead      // M, D and R
)

// attack is what a hostile peer does to a queue pair, and what has to follow.
type attack struct {
	name  string
	set   func(*setup)
	idle  bool              // no work on the queue pair's Send Queue
	sink  func(*rig) wr.SGE // of the RDMA Read; nil: readTO of full
	lead  func(*rig) [][]byte
	bad   func(*rig) []byte   // the ULPDU at fault
	spoil func([]byte) []byte // its FPDU is changed by this
	fault streamFault
	code  uint16 // of the Terminate
	echo  echo
	event wr.EventID // 0: a completion tells
	recvs []comp     // nil: both are flushed
	read  wr.Status  // of the RDMA Read; zero: it is flushed
	after func(*rig) // what was placed
}

// The work in an attack: receives 1 and 2, of 64 octets each in two pieces; an
// RDMA Read 10 whose request the peer has seen; a Send 11 behind its fence.
const (
	recvSize = 64
	readSize = 32
	readTO   = 1024 // of the sink, in full
)

func (r *rig) arrange(idle bool) {
	r.t.Helper()
	r.arrangeInto(r.full.sge(readTO, readSize), idle)
}

func (r *rig) arrangeInto(sink wr.SGE, idle bool) {
	r.t.Helper()
	r.postRecv(
		wr.Recv{ID: 1, SGL: []wr.SGE{r.full.sge(0, 40), {}, r.full.sge(512, 24)}},
		wr.Recv{ID: 2, SGL: r.full.sgl(64, recvSize)},
	)
	r.openGate()
	if idle {
		return
	}
	r.postSend(
		wr.Request{ID: 10, Op: wr.OpRead, Local: sink, Remote: wr.Remote{STag: 0x77, TO: 0x99}},
		wr.Request{ID: 11, Flags: wr.ReadFence, SGL: r.full.sgl(0, 8)},
	)
	want := rawpeer.ReadRequest(1, rdmap.ReadRequestHeader{
		SinkSTag: uint32(sink.STag), SinkTO: sink.TO, Size: readSize, SourceSTag: 0x77, SourceTO: 0x99,
	})
	require.Equal(r.t, want.Octets(), r.next())
}

// terminate is the Terminate Message that a fault asks for, octet by octet.
func terminate(code uint16, e echo, bad []byte) []byte {
	b := []byte{
		0x41, 0x47, 0, 0, 0, 0, // untagged, last, DV 1; RV 1, Terminate
		0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, // QN, MSN, MO
		byte(code >> 8), byte(code), 0, 0,
	}
	if e == echoNone {
		return b
	}
	b[20] = 0xC0
	b = binary.BigEndian.AppendUint16(b, uint16(len(bad)))
	n := 18
	if bad[0]&0x80 != 0 {
		n = 14
	}
	b = append(b, bad[:n]...)
	if e == echoRead {
		b[20] |= 0x20
		b = append(b, bad[n:n+28]...)
	}
	return b
}

func (a attack) run(t *testing.T, c setup) {
	if a.set != nil {
		a.set(&c)
	}
	r := newRig(t, c)
	if a.sink == nil {
		r.arrange(a.idle)
	} else {
		r.aim = a.sink(r)
		r.arrangeInto(r.aim, a.idle)
	}
	if a.lead != nil {
		r.send(a.lead(r)...)
	}
	bad := a.bad(r)
	fpdu := r.peer.Frame(bad)
	if a.spoil != nil {
		fpdu = a.spoil(fpdu)
	}
	if n := 2 + ddp.UntaggedHeader + 1; c.split && len(fpdu) > n {
		require.NoError(t, r.peer.Raw(fpdu[:n]))
		r.untilBuffered(n)
		fpdu = fpdu[n:]
	}
	require.NoError(t, r.peer.Raw(fpdu))

	want := terminate(a.code, a.echo, bad)
	require.Equal(t, want, r.next(), "the Terminate Message")
	end, more, err := r.peer.End()
	require.NoError(t, err)
	assert.Equal(t, rawpeer.FIN, end, "a graceful close behind the Terminate")
	assert.Zero(t, more, "nothing follows a Terminate")
	require.NoError(t, r.peer.Close())
	r.over()

	assert.Equal(t, a.fault, r.s.cause.fault)
	r.requireReason(a.name)
	assert.Equal(t, wr.StateError, r.q.State())
	q := r.q.Query()
	require.NotNil(t, q.Terminate)
	assert.True(t, q.Terminate.Sent)
	assert.Equal(t, want[18:], q.Terminate.Raw)
	assert.Equal(t, rdmap.TermCode(a.code), q.Terminate.Code)
	for _, at := range r.events.query {
		assert.Equal(t, wr.StateTerminate, at.State, "the state that follows")
		assert.Equal(t, q.Terminate, at.Terminate, "it can be queried when the event comes (draft 8.3.3)")
	}
	if a.event == 0 {
		r.requireEvents()
	} else {
		r.requireEvents(a.event)
	}
	if a.recvs == nil {
		a.recvs = flushed(1, 2)
	}
	assert.Equal(t, a.recvs, r.all(r.rcq), "Receive Queue")
	if a.idle {
		assert.Empty(t, r.all(r.scq), "Send Queue")
	} else {
		want := flushed(10, 11)
		if a.read != 0 {
			want[0].Status = a.read
		}
		assert.Equal(t, want, r.all(r.scq), "Send Queue")
	}
	if a.after != nil {
		a.after(r)
	}
	r.requireMemory()
	_, err = r.q.PostSend(wr.Request{})
	require.ErrorIs(t, err, wr.ErrInvalidState)
	_, err = r.q.PostRecv(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrInvalidState)
	r.requireReusable()
	r.requireMemory()
}

func attacks() (all []attack) {
	for _, group := range [][]attack{framingAttacks, headerAttacks, sendAttacks, taggedAttacks, readAttacks, responseAttacks, sinkAttacks, windowAttacks, extensionAttacks(), atomicAttacks(), localSinkAttacks()} {
		all = append(all, group...)
	}
	return all
}

// seg is an attack with a segment that needs nothing of the rig.
func seg(s rawpeer.Segment) func(*rig) []byte {
	return func(*rig) []byte { return s.Octets() }
}

// patch is seg with one octet changed.
func patch(s rawpeer.Segment, at int, v byte) func(*rig) []byte {
	return func(*rig) []byte {
		b := s.Octets()
		b[at] = v
		return b
	}
}

func octets(n int, b byte) func(*rig) []byte {
	return func(*rig) []byte {
		p := make([]byte, n)
		for i := range p {
			p[i] = b
		}
		return p
	}
}

// filled is n octets of payload.
func filled(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i + 1)
	}
	return p
}

var framingAttacks = []attack{
	{
		name: "CRC wrong", set: func(c *setup) { c.crc = true },
		bad:   func(r *rig) []byte { return rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(100)).Octets() },
		spoil: func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		fault: faultCRC, code: 0x2002, event: wr.EventBadCRC,
	},
	{
		name: "payload damaged under a CRC", set: func(c *setup) { c.crc = true },
		bad:   func(r *rig) []byte { return rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(100)).Octets() },
		spoil: func(b []byte) []byte { b[40] ^= 0x80; return b },
		fault: faultCRC, code: 0x2002, event: wr.EventBadCRC,
	},
	{
		name: "length above 64768",
		bad:  seg(rawpeer.Send(1, nil)),
		spoil: func(b []byte) []byte {
			binary.BigEndian.PutUint16(b, 64769) // markers: none is due before this FPDU
			return b
		},
		fault: faultFPDU, code: 0x2003, event: wr.EventBadFPDU,
	},
	{
		name: "marker points elsewhere", set: func(c *setup) { c.role, c.markers, c.crc = mpa.Responder, true, false },
		bad: func(r *rig) []byte { return rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(1000)).Octets() },
		spoil: func(b []byte) []byte {
			// The stream stands at 24, behind a marker and an empty FPDU: the
			// next marker is at 512.
			b[512-24+3] ^= 4
			return b
		},
		fault: faultFPDU, code: 0x2003, event: wr.EventBadFPDU,
	},
	{name: "empty ULPDU", bad: octets(0, 0), fault: faultSegmentSize, code: 0x1000, event: wr.EventSegmentSize},
	{name: "ULPDU of 1 octet", bad: octets(1, 0xC1), fault: faultSegmentSize, code: 0x1000, event: wr.EventSegmentSize},
	{name: "tagged ULPDU of 13 octets", bad: octets(13, 0xC1), fault: faultSegmentSize, code: 0x1000, event: wr.EventSegmentSize},
	{name: "untagged ULPDU of 14 octets", bad: octets(14, 0x41), fault: faultSegmentSize, code: 0x1000, event: wr.EventSegmentSize},
	{name: "untagged ULPDU of 17 octets", bad: octets(17, 0x41), fault: faultSegmentSize, code: 0x1000, event: wr.EventSegmentSize},
}

var headerAttacks = append([]attack{
	{
		name: "DDP version 0 tagged", bad: patch(rawpeer.Write(1, 2, filled(3)), 0, 0xC0),
		fault: faultDDPVersionTagged, code: 0x1104, echo: echoDDP, event: wr.EventDDPVersion,
	},
	{
		name: "DDP version 3 tagged", bad: patch(rawpeer.Write(1, 2, nil), 0, 0xC3),
		fault: faultDDPVersionTagged, code: 0x1104, echo: echoDDP, event: wr.EventDDPVersion,
	},
	{
		name: "DDP version 2 untagged", bad: patch(rawpeer.Send(1, filled(3)), 0, 0x42),
		fault: faultDDPVersionUntagged, code: 0x1206, echo: echoDDP, event: wr.EventDDPVersion,
	},
	{
		name: "RDMAP version 0", bad: patch(rawpeer.Send(1, filled(3)), 1, 0x03),
		fault: faultRDMAPVersion, code: 0x0205, echo: echoDDP, event: wr.EventRDMAPVersion,
	},
	{
		name: "RDMAP version 3 tagged", bad: patch(rawpeer.Write(1, 0, filled(3)), 1, 0xC0),
		fault: faultRDMAPVersion, code: 0x0205, echo: echoDDP, event: wr.EventRDMAPVersion,
	},
	{
		name: "Send that is tagged", bad: seg(rawpeer.Segment{Tagged: true, Op: rdmap.Send, Payload: filled(20)}),
		fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
	},
	{
		name: "Write that is untagged", bad: seg(rawpeer.Segment{Op: rdmap.Write, MSN: 1, Payload: filled(20)}),
		fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
	},
	{
		name: "Send to queue 1", bad: seg(rawpeer.Segment{Op: rdmap.Send, QN: 1, MSN: 1}),
		fault: faultQN, code: 0x1201, echo: echoDDP, event: wr.EventInvalidQN,
	},
	{
		name: "Send to queue 4", bad: seg(rawpeer.Segment{Op: rdmap.Send, QN: 4, MSN: 1, Payload: filled(3)}),
		fault: faultQN, code: 0x1201, echo: echoDDP, event: wr.EventInvalidQN,
	},
	{
		name: "Read Request to queue 0", bad: seg(rawpeer.Segment{Op: rdmap.ReadRequest, MSN: 1, Payload: make([]byte, 28)}),
		fault: faultQN, code: 0x1201, echo: echoDDP, event: wr.EventInvalidQN,
	},
	{
		name: "Terminate to queue 0", bad: seg(rawpeer.Segment{Op: rdmap.Terminate, MSN: 1, Payload: make([]byte, 4)}),
		fault: faultQN, code: 0x1201, echo: echoDDP, event: wr.EventInvalidQN,
	},
	{
		name: "Terminate with MSN 2", bad: seg(rawpeer.Segment{Op: rdmap.Terminate, QN: 2, MSN: 2, Payload: make([]byte, 4)}),
		fault: faultTerminateMSN, code: 0x1203, echo: echoDDP, event: wr.EventUnexpectedOpcode,
	},
	{
		name: "Terminate with an MO", bad: seg(rawpeer.Segment{Op: rdmap.Terminate, QN: 2, MSN: 1, MO: 4, Payload: make([]byte, 4)}),
		fault: faultUntaggedMO, code: 0x1204, echo: echoDDP, event: wr.EventSegmentSize,
	},
	{
		name: "Terminate without L", bad: seg(rawpeer.Segment{More: true, Op: rdmap.Terminate, QN: 2, MSN: 1, Payload: make([]byte, 4)}),
		fault: faultNoLBit, code: 0x0207, echo: echoDDP, event: wr.EventNoLBit,
	},
	{
		name: "Terminate of 53 octets", bad: seg(rawpeer.Segment{Op: rdmap.Terminate, QN: 2, MSN: 1, Payload: make([]byte, 53)}),
		fault: faultUntaggedLength, code: 0x1205, echo: echoDDP, event: wr.EventSegmentSize,
	},
	{
		name: "Terminate of 3 octets", bad: seg(rawpeer.Segment{Op: rdmap.Terminate, QN: 2, MSN: 1, Payload: make([]byte, 3)}),
		fault: faultSegmentSize, code: 0x1000, event: wr.EventSegmentSize,
	},
}, unknownOpcodes()...)

// unknownOpcodes are those of RFC 7306, which this side does not offer, and those
// of nobody (RFC 5040 7.2), on every queue they could mean.
func unknownOpcodes() (all []attack) {
	for op := rdmap.Immediate; op <= 0xF; op++ {
		for _, tagged := range []bool{false, true} {
			name := op.String() + " untagged"
			if tagged {
				name = op.String() + " tagged"
			}
			all = append(all, attack{
				name:  "opcode " + name,
				bad:   seg(rawpeer.Segment{Tagged: tagged, Op: op, MSN: 1, Payload: make([]byte, 8)}),
				fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
			})
		}
	}
	return all
}
