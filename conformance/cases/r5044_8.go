package cases

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

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
