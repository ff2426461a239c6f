package cases

import (
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_5 is FPDUs found in a stream, and checked before they go up: RFC 5044 5, 6
// and A.4.
var r5044_5 = []conformance.Case{
	upperCase("5.1/any-segmentation", anySegmentation, "R5044-5.1-M1", "R5044-A.4-M1"),
	upperCase("5.2/next-by-length", nextByLength, "R5044-5.2-M1"),
	upperCase("6/nothing-else-is-a-start", lookalikes, "R5044-6-M3"),
	upperCase("6/checked-before-placed", eachRole(checkedBeforePlaced), "R5044-6-M1", "R5044-6-M2"),
	upperCase("6/complete-or-nothing", eachRole(completeOrNothing), "R5044-6-M4"),
	apiCase("6/nothing-before-the-last-octet", onHost(lastOctetCounts), "R5044-6-M1", "R5044-6-M4"),
}

// pieces are ways to cut a stream: each says how long the next piece is.
func pieces(t *conformance.T) map[string]func() int {
	return map[string]func() int{
		"octet by octet":   func() int { return 1 },
		"three at a time":  func() int { return 3 },
		"511 at a time":    func() int { return 511 },
		"4099 at a time":   func() int { return 4099 },
		"all at once":      func() int { return 1 << 30 },
		"as chance has it": func() int { return 1 + t.Rand().IntN(1500) },
	}
}

// cut sends octets in pieces.
func (w *peer) cut(b []byte, next func() int) {
	for len(b) > 0 {
		n := min(next(), len(b))
		w.raw(b[:n])
		b = b[n:]
	}
}

// anySegmentation sends the same messages cut in many ways: what comes of them is
// the same.
func anySegmentation(t *conformance.T) {
	for _, markers := range []bool{false, true} {
		for how, next := range pieces(t) {
			t.Part("%s, markers %v", how, markers)
			r, region := openMPAWith(t, setup{far: uppertester.ConnectArgs{Markers: markers}, quiet: true}, 3000)
			lengths := []int{0, 1, 2, 3, 5, 100, 507, 508, 509, 1454}
			b := r.recv(len(lengths), 1500)
			var stream []byte
			var want []verbs.Completion
			for i, n := range lengths {
				data := uppertester.Pattern(uint8(i), n)
				stream = append(stream, r.out.fpdu(r.aSend(data))...)
				stream = append(stream, r.out.fpdu(aWrite(region.tag(), region.at(10*i), data))...)
				region.gets(10*i, data)
				b[i].gets(0, data)
				want = append(want, r.got(uint64(i+1), n))
			}
			r.cut(stream, next)
			r.completions(want...)
			r.settled()
			region.unchanged()
			for i := range b {
				b[i].unchanged()
			}
			r.unharmed()
		}
	}
}

// nextByLength has length fields lead into what was payload. Without a CRC that is
// an FPDU like any other; without markers nothing else tells.
func nextByLength(t *conformance.T) {
	r := openMPA(t, setup{noCRC: true, far: uppertester.ConnectArgs{NoCRC: true}})
	b := r.recv(3, 64)
	plain := mpaLane{}
	inner := plain.fpdu(aSend(2, []byte("inner FPDU")))
	// A Send of 2 octets by its length field. Pad and CRC are the first 6 octets of
	// what was more payload, and the rest is another FPDU.
	outer := aSend(1, append([]byte("ab\x00\x00\x00\x00\x00\x00"), inner...))
	r.raw(plain.twisted(outer, twist{longer: 20 - len(outer)})[:28+len(inner)])
	r.sends = 2
	r.completions(r.got(1, 2), r.got(2, 10))
	b[0].holds(0, []byte("ab"))
	b[1].holds(0, []byte("inner FPDU"))
	r.sendMessage([]byte("c"))
	r.completions(r.got(3, 1))
	r.settled()

	// One that says to be longer takes the next one with it.
	r = openMPA(t, setup{noCRC: true, far: uppertester.ConnectArgs{NoCRC: true}})
	b = r.recv(2, 64)
	second := plain.fpdu(aSend(2, []byte("second")))
	first := plain.twisted(aSend(1, []byte("ab")), twist{longer: 6 + len(second)})
	r.raw(append(first, second...))
	r.raw(make([]byte, 4)) // the CRC field
	r.completions(r.got(1, 2+6+len(second)))
	got := append([]byte("ab\x00\x00\x00\x00\x00\x00"), second...)
	b[0].holds(0, got)
	r.sends = 1
	r.sendMessage([]byte("third"))
	r.completions(r.got(2, 5))

	// With a CRC it is the end.
	for _, longer := range []int{-4, 4, 8} {
		r = openMPA(t, setup{})
		b = r.recv(1, 64)
		f := r.out.twisted(aSend(1, []byte("twelve octets")), twist{longer: longer})
		r.raw(append(f, make([]byte, 64)...))
		r.terminated(0x2002, nil, false)
		r.failed(verbs.EventBadCRC, 1)
		b[0].unchanged()
	}
}

// lookalikes sends payloads that look like FPDUs, markers or startup frames: they
// are payload.
func lookalikes(t *conformance.T) {
	for _, markers := range []bool{false, true} {
		for how, next := range pieces(t) {
			t.Part("%s, markers %v", how, markers)
			r := openMPA(t, setup{far: uppertester.ConnectArgs{Markers: markers}})
			plain := mpaLane{crc: true}
			f := plain.fpdu(aSend(1, []byte("not this")))
			payloads := [][]byte{
				append([]byte{1, 2}, f...), f, append(f, f...),
				requestFrame(frameC, 1, []byte("private")), replyFrame(frameM|frameR, 2, nil),
				make([]byte, 1000), unhexed(figure5),
			}
			b := r.recv(len(payloads), 1100)
			var stream []byte
			var want []verbs.Completion
			for i, p := range payloads {
				stream = append(stream, r.out.fpdu(r.aSend(p))...)
				want = append(want, r.got(uint64(i+1), len(p)))
				b[i].gets(0, p)
			}
			r.cut(stream, next)
			r.completions(want...)
			for i := range b {
				b[i].unchanged()
			}
			r.settled()
		}
	}
}

// checkedBeforePlaced sends an RDMA Write of 32 KiB whose CRC is wrong, or a marker,
// bit by bit: the target does not change before that shows, nor afterwards.
func checkedBeforePlaced(t *conformance.T, play conformance.Role) {
	for markers := range inTurn(t, "markers %v", []bool{false, true}) {
		r := openMPA(t, setup{play: play, far: uppertester.ConnectArgs{Markers: markers}})
		r.send(aWrite(0, 0, nil))
		b := r.region(32<<10, allRights)
		u := aWrite(b.tag(), b.at(0), uppertester.Pattern(9, 32<<10))
		x, code, event := twist{crc: func(good uint32) uint32 { return ^good }}, uint16(0x2002), verbs.EventBadCRC
		if markers {
			last := 0
			x, code, event = twist{pointer: func(p uint16) uint16 {
				if last++; last == 60 {
					return p + 4
				}
				return p
			}}, 0x2003, verbs.EventBadFPDU
		}
		bad := r.out.twisted(u, x)
		for len(bad) > 0 {
			n := min(4000, len(bad))
			r.raw(bad[:n])
			bad = bad[n:]
			b.unchanged()
		}
		r.terminated(code, nil, false)
		r.failed(event, 0)
		b.unchanged()

		r = openMPA(t, setup{play: play, far: uppertester.ConnectArgs{Markers: markers}})
		b = r.region(32<<10, allRights)
		u = aWrite(b.tag(), b.at(0), uppertester.Pattern(9, 32<<10))
		r.raw(r.out.fpdu(u)) // nothing wrong with it
		r.settled()
		b.holds(0, uppertester.Pattern(9, 32<<10))
	}
}

// completeOrNothing ends the stream within FPDUs of each kind, also one octet before
// their end.
func completeOrNothing(t *conformance.T, play conformance.Role) {
	for missing := range inTurn(t, "%d octets missing", []int{1, 2, 4, 5, 20}) {
		for send := range inTurn(t, "Send: %v", []bool{true, false}) {
			r := openMPA(t, setup{play: play})
			b, region := r.recv(1, 64)[0], r.region(64, allRights)
			u := either(send, aSend(1, []byte("some octets")), aWrite(region.tag(), region.at(0), []byte("some octets")))
			f := r.out.fpdu(u)
			r.raw(f[:len(f)-missing])
			r.shut()
			r.failed(verbs.EventLLPLost, 1)
			b.unchanged()
			region.unchanged()
		}
	}
}

// steps is one end of a net.Pipe whose other end is a queue pair's: each Write
// returns once that has read it, and a further one once it has looked at it.
func steps(t *conformance.T, qp *verbs.QP) net.Conn {
	x, y := net.Pipe()
	t.Cleanup(func() { _ = x.Close() })
	begin(t, qp, verbs.StreamConfig{Conn: y, Role: asResponder, CRC: true})
	return t.Trace().Conn(x)
}

// lastOctetCounts: of an FPDU of which one octet is missing nothing is seen.
func lastOctetCounts(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{})
	l.recv(1)
	at := n.mr.Remote(8192)
	c := steps(t, l.qp)
	lane := mpaLane{crc: true}
	put := func(b []byte) { require.NoError(t, second(c.Write(b))) }
	for _, u := range [][]byte{
		aWrite(uint32(at.STag), at.TO, []byte("the whole of it")), aSend(1, []byte("the whole of it")),
	} {
		f := lane.fpdu(u)
		put(f[:len(f)-2])
		put(f[len(f)-2 : len(f)-1]) // taken: what came before has been looked at
		require.Equal(t, make([]byte, 64), n.mr.Bytes()[64:128], "the receive")
		empty(t, l.rq)
		if u[1] == opWrite {
			l.looks(at, make([]byte, 15))
		}
		put(f[len(f)-1:])
	}
	completes(t, l.rq, l.got(1, 15))
	require.Equal(t, "the whole of it", string(n.mr.Bytes()[64:79]))
	l.looks(at, []byte("the whole of it"))
	require.NoError(t, l.qp.Destroy())
}

// looks says what is in memory that the peer may write: the query comes behind what
// has been placed.
func (l *link) looks(at verbs.Remote, want []byte) {
	_, _ = l.mr.Query()
	off := int(at.TO - l.mr.Base())
	require.Equal(l.t, want, l.mr.Bytes()[off:off+len(want)], "what the peer has written")
}
