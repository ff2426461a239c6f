package cases

import (
	"net"
	"time"

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
		put(f[len(f)-2 : len(f)-1])
		put(nil) // taken: what came before has been looked at
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

// r5044_8 is MPA's errors, and a peer of another age: RFC 5044 8 and C.1.
var r5044_8 = []conformance.Case{
	upperCase("8/errors-noticed", eachRole(errorsNoticed), "R5044-8-M1"),
	upperCase("8/startup-error-closes-at-once", eachRole(closesAtOnce), "R5044-8-M2"),
	upperCase("8/nothing-more-delivered", eachRole(nothingMore), "R5044-8-M3"),
	upperCase("8/closing-left-to-the-ulp", eachRole(closingLeft), "R5044-8-M4"),
	upperCase("C.1/one-version", eachRole(oneVersion), "R5044-C.1-M1"),
}

// errorsNoticed: each of the errors has its own name.
func errorsNoticed(t *conformance.T, play conformance.Role) {
	for x := range inTurn(t, "%s", []struct {
		what  string
		do    func(r *rig)
		code  uint16 // of a Terminate Message, or 0
		event verbs.EventID
	}{
		{"FIN within an FPDU", func(r *rig) { r.raw(r.out.fpdu(aSend(1, nil))[:7]); r.shut() }, 0, verbs.EventLLPLost},
		{"FIN within a length field", func(r *rig) { r.raw([]byte{0}); r.shut() }, 0, verbs.EventLLPLost},
		{"RST", func(r *rig) {
			r.reset()
		}, 0, verbs.EventLLPReset},
		{"a wrong CRC", func(r *rig) {
			r.twisted(nil, twist{crc: func(c uint32) uint32 { return c + 1 }})
		}, 0x2002, verbs.EventBadCRC},
		{"a marker that leads elsewhere", func(r *rig) {
			r.twisted(make([]byte, 600), twist{pointer: func(p uint16) uint16 { return p + 8 }})
		}, 0x2003, verbs.EventBadFPDU},
	}) {
		r := openMPA(t, setup{play: play, far: uppertester.ConnectArgs{Markers: true}})
		r.send(aWrite(0, 0, nil))
		r.settled()
		b := r.recv(1, 600)
		x.do(r)
		if x.code != 0 {
			r.terminated(x.code, nil, false)
		}
		r.failed(x.event, 1)
		b[0].unchanged()
	}
	t.Part("the peer is the %s, a startup frame that is none", play)
	r := beginMPA(t, setup{play: play})
	if play == conformance.Responder {
		r.frame()
	}
	r.raw(make([]byte, 20))
	r.refused(badFrame)
}

// closesAtOnce: a startup frame that is none ends the TCP connection, though the
// peer does nothing more and there would be time for more.
func closesAtOnce(t *conformance.T, play conformance.Role) {
	key := either(play == conformance.Responder, "MPA ID Rep Frame", "MPA ID Req Frame")
	for _, bad := range named(t, "%s", map[string][]byte{
		"a wrong key":      []byte("MPA ID Xxx Frame"),
		"an FPDU":          unhexed("0012 4143 00000000 00000000 00000001"),
		"PD_Length 600":    startupFrame(key, 0, 1, 600, nil),
		"another revision": startupFrame(key, 0, 7, 0, nil),
	}) {
		r := beginMPA(t, setup{play: play, far: uppertester.ConnectArgs{Timeout: time.Hour}})
		if play == conformance.Responder {
			r.frame()
		}
		r.raw(bad)
		r.refused(badFrame)
	}
}

// nothingMore has a bad FPDU and good ones behind it come in one write: the good
// ones are as if they had not been sent.
func nothingMore(t *conformance.T, play conformance.Role) {
	for _, x := range named(t, "%s", map[string]struct {
		twist twist
		code  uint16
		event verbs.EventID
	}{
		"a wrong CRC":    {twist{crc: func(c uint32) uint32 { return c ^ 2 }}, 0x2002, verbs.EventBadCRC},
		"a wrong marker": {twist{pointer: func(p uint16) uint16 { return p ^ 4 }}, 0x2003, verbs.EventBadFPDU},
		"a wrong length": {twist{longer: 64300}, 0x2003, verbs.EventBadFPDU},
	}) {
		r := openMPA(t, setup{play: play, far: uppertester.ConnectArgs{Markers: true}})
		r.send(aWrite(0, 0, nil))
		region, b := r.region(64, allRights), r.recv(12, 600)
		data := uppertester.Pattern(1, 500)
		all := r.out.fpdu(r.aSend(data))
		all = append(all, r.out.twisted(r.aSend(make([]byte, 520)), x.twist)...)
		for i := range 10 {
			all = append(all, r.out.fpdu(r.aSend([]byte("late")))...)
			all = append(all, r.out.fpdu(aWrite(region.tag(), region.at(i), []byte("late")))...)
			all = append(all, r.out.fpdu(aReadRequest(uint32(i+1), read{nowhere, nowhereTO, 4, region.tag(), region.at(0)}))...)
		}
		r.raw(all)
		r.tornDown(x.code, nil, false)
		r.events(x.event)
		want := []verbs.Completion{r.got(1, 500)}
		for i := range uint64(11) {
			want = append(want, verbs.Completion{ID: i + 2, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
		}
		r.completions(want...)
		b[0].holds(0, data)
		for _, late := range b[1:] {
			late.unchanged()
		}
		region.unchanged()
	}
}

// closingLeft: behind a bad FPDU the other direction works, and carries a Terminate
// Message. What comes meanwhile does not get in its way.
func closingLeft(t *conformance.T, play conformance.Role) {
	for _, x := range named(t, "%s", map[string]struct {
		twist twist
		code  uint16
		event verbs.EventID
	}{
		"a wrong CRC":    {twist{crc: func(c uint32) uint32 { return c ^ 2 }}, 0x2002, verbs.EventBadCRC},
		"a wrong marker": {twist{pointer: func(p uint16) uint16 { return p ^ 4 }}, 0x2003, verbs.EventBadFPDU},
	}) {
		r := openMPA(t, setup{play: play, far: uppertester.ConnectArgs{Markers: true}, flags: frameM})
		r.send(aWrite(0, 0, nil))
		b := r.region(2000, allRights)
		r.posts(b, 2000)
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpSend})
		r.twisted(make([]byte, 600), x.twist)
		for range 8 {
			r.raw(make([]byte, 2000))
		}
		r.wholeMessage(aSend(1, nil), b.first)
		r.terminated(x.code, nil, false) // and FIN, not RST
		r.failed(x.event, 0)
	}
}

// oneVersion: the DDP and RDMAP versions are 1 in all that is sent, and only that is
// taken.
func oneVersion(t *conformance.T, play conformance.Role) {
	r, b := openMPAWith(t, setup{play: play}, 100)
	r.post(
		verbs.Request{ID: 1, SGL: b.sgl(0, 4)},
		verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: b.sgl(0, 4), Remote: theirs},
		verbs.Request{ID: 3, Op: verbs.OpRead, Local: b.sge(0, 4), Remote: theirs},
	)
	for range 3 {
		u := r.next()
		require.Equal(t, [2]byte{1, 1}, [2]byte{u[0] & 3, u[1] >> 6}, "DV and RV of % x", u)
	}
	for _, x := range named(t, "%s", map[string]struct {
		ulpdu []byte
		code  uint16
		event verbs.EventID
	}{
		"DV 0, untagged": {untagged(0x40, opSend, 0, 0, 1, 0, nil), 0x1206, verbs.EventDDPVersion},
		"DV 0, tagged":   {tagged(0xC0, opWrite, 1, 1, nil), 0x1104, verbs.EventDDPVersion},
		"RV 0, untagged": {untagged(lastUntagged, 0x03, 0, 0, 1, 0, nil), 0x0205, verbs.EventRDMAPVersion},
		"RV 0, tagged":   {tagged(lastTagged, 0x00, 1, 1, nil), 0x0205, verbs.EventRDMAPVersion},
	}) {
		r := openMPA(t, setup{play: play})
		r.recv(1, 8)
		r.send(x.ulpdu)
		r.terminated(x.code, x.ulpdu, false)
		r.failed(x.event, 1)
	}
}
