package cases

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_7_1 is the startup frames: RFC 5044 7.1.1.
var r5044_7_1 = []conformance.Case{
	upperCase("7.1.1/request-octets", requestOctets,
		"R5044-7.1.1-M1", "R5044-7.1.1-M5", "R5044-7.1.1-M13", "R5044-7.1.1-M14", "R5044-7.1.1-M17", "R5044-7.1.2-M1",
		"PR-5044-7.1.1-M1", "PR-5044-7.1.1-M2", "PR-6581-6-M1"),
	upperCase("7.1.1/reply-octets", replyOctets,
		"R5044-7.1.1-M3", "R5044-7.1.1-M5", "R5044-7.1.1-M13", "R5044-7.1.1-M14", "R5044-7.1.1-M17", "PR-5044-7.1.1-M2",
		"PR-6581-6-M1"),
	upperCase("7.1.1/wrong-key-in-request", wrongKeyInRequest, "R5044-7.1.1-M2", "R5044-7.1.2-M9"),
	upperCase("7.1.1/wrong-key-in-reply", wrongKeyInReply, "R5044-7.1.1-M4", "R5044-7.1.2-M9"),
	upperCase("7.1.1/reserved-bits-received", reservedBits, "R5044-7.1.1-M13", "PR-5044-7.1.1-M1"),
	upperCase("7.1.1/revision-received", eachRole(revisionReceived), "R5044-7.1.1-M15", "R5044-7.1.1-M16"),
}

// requestOctets: the whole of what an Initiator sends before there is a Reply.
func requestOctets(t *conformance.T) {
	word := func(b ...byte) []byte { return b }
	for x := range inTurn(t, "%s", []struct {
		what string
		far  upper.ConnectArgs
		want []byte
	}{
		{"nothing in particular", upper.ConnectArgs{Rev: 1}, requestFrame(0x40, 1, nil)},
		{"no CRC", upper.ConnectArgs{Rev: 1, NoCRC: true}, requestFrame(0x00, 1, nil)},
		{"markers", upper.ConnectArgs{Rev: 1, Markers: true}, requestFrame(0xC0, 1, nil)},
		{"private data", upper.ConnectArgs{Rev: 1, PrivateData: []byte("abc")}, requestFrame(0x40, 1, []byte("abc"))},
		{"depths", upper.ConnectArgs{Rev: 2}, requestFrame(0x50, 2, word(0, 5, 0, 7))},
		{
			"depths and private data", upper.ConnectArgs{Rev: 2, PrivateData: []byte("ab"), Markers: true},
			requestFrame(0xD0, 2, word(0, 5, 0, 7, 'a', 'b')),
		},
		{"peer-to-peer", upper.ConnectArgs{Rev: 2, P2P: true}, requestFrame(0x50, 2, word(0x80, 5, 0xC0, 7))},
	}) {
		r := mpaBegin(t, mpaSetup{play: conformance.Responder, far: x.far, qp: upper.OpenArgs{IRD: 5, ORD: 7}})
		require.Equal(t, x.want, r.frame(), "the Request")
		require.Equal(t, "4d504120494420526571204672616d65", fmt.Sprintf("%x", r.theirs[:16]), "its key")
		r.mute()
		r.drop()
		require.NotEmpty(t, r.connection().Failed)
	}
}

// replyOctets: the whole of what a Responder sends before there is an FPDU, accepting
// and rejecting.
func replyOctets(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what string
		far  upper.ConnectArgs
		ask  []byte
		want []byte
	}{
		{"nothing in particular", upper.ConnectArgs{Rev: 2}, requestFrame(0x40, 1, nil), replyFrame(0x40, 1, nil)},
		{"no CRC", upper.ConnectArgs{NoCRC: true}, requestFrame(0x00, 1, nil), replyFrame(0x00, 1, nil)},
		{"no CRC against one", upper.ConnectArgs{NoCRC: true}, requestFrame(0x40, 1, nil), replyFrame(0x00, 1, nil)},
		{"markers", upper.ConnectArgs{Markers: true}, requestFrame(0x40, 1, nil), replyFrame(0xC0, 1, nil)},
		{"no markers against some", upper.ConnectArgs{}, requestFrame(0xC0, 1, nil), replyFrame(0x40, 1, nil)},
		{"private data", upper.ConnectArgs{PrivateData: []byte("abc")}, requestFrame(0x40, 1, []byte("x")), replyFrame(0x40, 1, []byte("abc"))},
		{"refusal", upper.ConnectArgs{Reject: true}, requestFrame(0x40, 1, nil), replyFrame(0x60, 1, nil)},
		{
			"refusal with private data", upper.ConnectArgs{Reject: true, PrivateData: []byte("no")},
			requestFrame(0x40, 1, []byte("please")), replyFrame(0x60, 1, []byte("no")),
		},
		{
			"depths", upper.ConnectArgs{Rev: 2, PrivateData: []byte("abc")},
			requestFrame(0x50, 2, []byte{0, 9, 0, 4}), replyFrame(0x50, 2, []byte{0, 5, 0, 7, 'a', 'b', 'c'}),
		},
	}) {
		r := mpaBegin(t, mpaSetup{play: conformance.Initiator, far: x.far, qp: upper.OpenArgs{IRD: 5, ORD: 7}})
		r.raw(x.ask)
		require.Equal(t, x.want, r.frame(), "the Reply")
		require.Equal(t, "4d504120494420526570204672616d65", fmt.Sprintf("%x", r.theirs[:16]), "its key")
		c := r.connection()
		require.Equal(t, x.far.Reject, c.Rejected)
		if !x.far.Reject {
			require.Empty(t, c.Failed)
			r.mute()
		}
	}
}

// wrongKeyInRequest spoils each octet of the key: the TCP connection is closed, as
// soon as there are 16 octets, without one in answer, and the program is told.
func wrongKeyInRequest(t *conformance.T) {
	good := requestFrame(frameC, 1, nil)
	for i := range counted(t, "octet %d of the key", 16) {
		for n := range inTurn(t, "%d octets", []int{16, 20}) {
			r := mpaBegin(t, mpaSetup{play: conformance.Initiator})
			bad := append([]byte(nil), good[:n]...)
			bad[i] ^= 0x20
			r.raw(bad)
			r.refused(badFrame)
		}
	}
	t.Part("no frame at all")
	r := mpaBegin(t, mpaSetup{play: conformance.Initiator})
	r.raw([]byte("GET / HTTP/1.1\r\n"))
	r.refused(badFrame)
}

// wrongKeyInReply is the same for the other role.
func wrongKeyInReply(t *conformance.T) {
	good := replyFrame(frameC, 1, nil)
	for i := range counted(t, "octet %d of the key", 16) {
		for n := range inTurn(t, "%d octets", []int{16, 20}) {
			r := mpaBegin(t, mpaSetup{play: conformance.Responder})
			b := r.region(8, allRights)
			r.posts(b, 8) // must not go out
			r.frame()
			bad := append([]byte(nil), good[:n]...)
			bad[i] ^= 0x20
			r.raw(bad)
			r.refused(badFrame)
			r.incomplete()
		}
	}
	t.Part("no frame at all")
	r := mpaBegin(t, mpaSetup{play: conformance.Responder})
	r.frame()
	r.raw([]byte("220 smtp.example"))
	r.refused(badFrame)
}

// reservedBits sets each of the bits of a frame that have no meaning: nothing
// changes.
func reservedBits(t *conformance.T) {
	for play := range inTurn(t, "the peer is the %s", bothRoles) {
		for bits := range inTurn(t, "bits %02x with revision 1", []byte{0x01, 0x02, 0x04, 0x08, 0x0F, frameS, frameS | 0x0F}) {
			r := mpaOpen(t, mpaSetup{play: play, flags: bits})
			require.Equal(t, byte(frameC), r.theirs[16], "the flags of its frame")
			r.settled()
		}
	}
	t.Part("R in a Request") // it has no meaning there
	r := mpaOpen(t, mpaSetup{play: conformance.Initiator, flags: frameR})
	r.settled()
	t.Part("reserved bits with revision 2")
	r = mpaBegin(t, mpaSetup{play: conformance.Initiator, far: upper.ConnectArgs{Rev: 2}})
	r.raw(requestFrame(frameC|frameS|0x0F, 2, []byte{0, 1, 0, 1, 'x'}))
	require.Equal(t, byte(frameC|frameS), r.frame()[16], "the flags of the Reply")
	r.full(frameC)
	require.Equal(t, []byte("x"), r.told.PrivateData)
	r.settled()
}

// revisionReceived: revisions 1 and 2 are spoken. Others end the startup.
func revisionReceived(t *conformance.T, play conformance.Role) {
	for rev := range inTurn(t, "revision %d", []byte{0, 1, 2, 3, 4, 0x81, 255}) {
		r := mpaBegin(t, mpaSetup{play: play})
		send := requestFrame
		if play == conformance.Responder {
			r.frame()
			send = replyFrame
		}
		r.raw(send(frameC, rev, nil))
		if rev != 1 && rev != 2 {
			r.refused(badFrame)
			continue
		}
		if play == conformance.Initiator {
			require.Equal(t, byte(1), r.frame()[17], "the revision of the Reply")
		}
		r.full(frameC)
		r.settled()
		r.state(verbs.StateRTS)
	}
}
