package cases

import (
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_3 is what DDP wants of the LLP: RFC 5041 3. The LLP is MPA over whatever
// connection there is.
var r5041_3 = []conformance.Case{
	upperCase("3/boundaries", boundaries, "R5041-3-M5", "R5041-3-M8"),
	upperCase("3/accepted-or-told", acceptedOrTold, "R5041-3-M4"),
	upperCase("3/digest", digestCovers, "R5041-3-M7"),
	upperCase("3/erroneous-stream", streamMarked, "R5041-3-M9", "R5041-3-M10"),
	upperCase("3/ends-told", endsTold, "R5041-3-M11", "R5041-3-M12"),
	upperCase("3/connection-torn-down", tornDown, "R5041-3-M13"),
}

// boundaries: TCP cuts the stream in any way. Each Send arrives as it was sent, and
// its length leaves no pad octet in the buffer.
func boundaries(t *conformance.T) {
	for most := range inTurn(t, "pieces of %d octets", []int{1, 7, 64 << 10}) {
		r := open(t, setup{qp: uppertester.OpenArgs{RecvDepth: 64}})
		bufs := r.recv(24, 64)
		var ulpdus [][]byte
		var want []verbs.Completion
		for i := range bufs {
			n := i % 8 // all lengths of pad
			data := uppertester.Pattern(uint8(i), 16+n)
			bufs[i].gets(0, data)
			lengths := either(i%3 == 1, []int{16, n}, []int{16 + n})
			ulpdus = append(ulpdus, cutUp(opSend, 0, r.nextSend(), data, lengths...)...)
			want = append(want, verbs.Completion{ID: uint64(i + 1), Op: verbs.OpRecv, Bytes: uint32(16 + n)})
		}
		r.sendPieces(most, ulpdus...)
		r.completions(want...)
		allUnchanged(bufs)
		r.idle()
	}
}

// acceptedOrTold: the connection is cut somewhere in a row of messages. Each of them
// has a completion, Success for what the LLP took and Flushed for what is behind; and
// that the stream failed is told.
func acceptedOrTold(t *conformance.T) {
	const count, size = 64, 150_000
	for heard := range inTurn(t, "cut behind %d messages", []int{0, 1, 10, 30, count}) {
		r, b := openWith(t, setup{narrow: true, qp: uppertester.OpenArgs{SendDepth: count}}, size)
		for i := range count {
			r.post(verbs.Request{ID: uint64(i), SGL: b.sgl(0, size)})
		}
		for i := range heard {
			p := r.message()
			require.Equal(t, uint32(i+1), p.msn)
			same(t, b.first, p.payload, "message %d", i)
		}
		if heard == count {
			var all []verbs.Completion
			for i := range count {
				all = append(all, verbs.Completion{ID: uint64(i)})
			}
			r.completions(all...)
			continue
		}
		require.NoError(t, r.peer.Reset())
		r.ended(verbs.StateError)
		got := r.poll(r.SendCQ, count, r.patience())
		require.Len(t, got, count)
		sent := 0
		for i, c := range got {
			require.EqualValues(t, i, c.ID)
			if c.Status == verbs.StatusSuccess {
				require.Equal(t, i, sent, "a message behind one that was not sent")
				sent++
				continue
			}
			require.Equal(t, verbs.StatusFlushed, c.Status)
		}
		require.GreaterOrEqual(t, sent, heard)
		require.Less(t, sent, count, "there is no socket that takes all")
		var e uppertester.Events
		require.NoError(t, r.up.Events(uppertester.EventsArgs{N: 1, Timeout: r.patience()}, &e))
		require.Len(t, e.Events, 1)
		require.Contains(t, []verbs.EventID{verbs.EventLLPReset, verbs.EventLLPLost}, e.Events[0].ID)
	}
}

// digestCovers changes one bit after the other: of the header, the payload, the pad
// and the CRC.
func digestCovers(t *conformance.T) {
	u := func(v *faultRig) []byte { return aWrite(v.region.tag(), v.region.at(3), []byte("payload")) }
	for at := range counted(t, "octet %d of the FPDU", 32) { // 2 of length, 14 of header, 7 of payload, 1 of pad, 4 of CRC
		if at < 2 || at >= 28 { // a wrong length moves the CRC: RFC 5044
			continue
		}
		v := newFaultRig(t, setup{})
		f := v.peer.Frame(u(v))
		require.Len(t, f, 28)
		f[at] ^= 1 << t.Rand().IntN(8)
		require.NoError(t, v.peer.Raw(f))
		v.rejects(badCRC, nil)
	}
	t.Part("as it should be")
	v := newFaultRig(t, setup{})
	v.send(u(v))
	v.settled()
	v.region.holds(3, []byte("payload"))
}

// streamMarked: once a segment is refused the stream is the Terminate Message's alone.
// Good segments behind have no effect, and what is still to be posted is refused.
func streamMarked(t *conformance.T) {
	v := newFaultRig(t, twoCQs())
	bad := aWrite(v.region.tag()^1, v.region.at(0), []byte("bad"))
	good := [][]byte{
		aWrite(v.region.tag(), v.region.at(0), []byte("good")), aSend(1, []byte("good")),
		aReadResponse(v.sink.tag(), v.sink.at(0), []byte("response")),
		aReadRequest(1, read{nowhere, nowhereTO, 4, v.region.tag(), v.region.at(0)}),
	}
	v.sendAtOnce(append([][]byte{bad}, good...)...)
	v.expect(aTerminate(0x1100, bad, false))
	_, err := v.peer.Next()
	require.ErrorIs(t, err, io.EOF, "nothing but the Terminate Message")
	v.state(verbs.StateTerminate)
	v.refusesPost(verbs.ErrInvalidState, verbs.Request{})
	v.send(good...) // and later ones
	v.shut()
	v.ended(verbs.StateError)
	v.events(verbs.EventProtSTag)
	v.completionsOf(v.RecvCQ, flushedRecvs(1)...)
	v.completionsOf(v.SendCQ, verbs.Completion{ID: 50, Op: verbs.OpRead, Status: verbs.StatusFlushed})
	v.region.unchanged()
	v.sink.unchanged()
	v.receive.unchanged()
}

// endsTold: an orderly end, begun by either side, is told once. With MPA over TCP it is
// the end of stream and connection at the same time.
func endsTold(t *conformance.T) {
	for _, do := range named(t, "%s", map[string]func(r *rig){
		"by the peer": func(r *rig) { r.shut(); r.finished() },
		"by its program": func(r *rig) {
			r.close()
			require.ErrorIs(t, second(r.peer.Next()), io.EOF)
			r.events() // one half is closed
			r.state(verbs.StateClosing)
			r.shut()
		},
	}) {
		r, b := openWith(t, setup{}, 8)
		r.post(verbs.Request{ID: 1, SGL: b.sgl(0, 8)})
		r.expect(aSend(1, b.first))
		r.completions(verbs.Completion{ID: 1})
		r.settled()
		do(r)
		require.False(t, r.ended(verbs.StateIdle).Stream)
		r.events(verbs.EventLLPCloseComplete)
	}
}

// tornDown: however its only stream has ended, the connection goes with it.
func tornDown(t *conformance.T) {
	for _, do := range named(t, "%s", map[string]func(r *rig){
		"in order":       func(r *rig) { r.close(); r.finished() },
		"by the peer":    func(r *rig) { r.shut(); r.finished() },
		"by a bad Write": func(r *rig) { r.send(badSTag); r.gone(); _ = r.peer.CloseWrite() },
		"by a bad CRC": func(r *rig) {
			r.peer.Frame(nil)
			require.NoError(t, r.peer.Raw(make([]byte, 64)))
			r.gone()
			_ = r.peer.CloseWrite()
		},
		"and no FIN":      func(r *rig) { r.send(badSTag); r.gone() }, // the peer's half stays open
		"by its program":  func(r *rig) { require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateError})); r.gone() },
		"by its Destroy":  func(r *rig) { require.NoError(t, r.up.Destroy(r.QP, &uppertester.None{})); r.gone() },
		"by a bad header": func(r *rig) { r.send([]byte{0xFF}); r.gone(); _ = r.peer.CloseWrite() },
	}) {
		r := open(t, setup{qp: uppertester.OpenArgs{CloseTimeout: 50_000_000}}) // 50 ms
		r.settled()
		do(r)
		eventually(t, func() bool {
			_, err := r.peer.Conn.Write([]byte{0})
			return err != nil
		}, "the connection is gone")
	}
}
