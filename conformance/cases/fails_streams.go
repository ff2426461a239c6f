package cases

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// failsStreams are limits and losses within a stream that few programs come to: Writes that complete when they are
// placed, memory that goes while it is being sent, and Atomics on pages.
var failsStreams = []conformance.Case{
	apiCase("8.2.2/placed-writes", onHost(placedWrites), "R5040-5.5-M6", "RV-6.5-M6"),
	apiCase("6.5/place-for-placed-writes", onHost(placeForPlacedWrites), "R6581-9.1-M2"),
	apiCase("6.5/peers-placed-writes", onHost(peersPlacedWrites), "RV-6.5-M4"),
	apiCase("6.4/second-source-goes", onHost(secondSourceGoes), "RV-6.4-M6", "RV-7.9-M8"),
	apiCase("6.4/source-of-an-answer-goes", sourceOfAnswerGoes, "RV-6.4-M6", "RV-7.9-M8"),
	apiCase("5.1.1/atomics-on-pages", atomicsOnPages, "R7306-5.1.1-M3"),
	apiCase("9.3.2.1/wait-without-room", onHost(waitWithoutRoom), "RV-9.3.2.1-M1"),
}

// enhanced brings a link to RTS, on a stream on which IRD and ORD were agreed.
func (l *link) enhanced(ird, ord int) {
	far, near := tcpPair(l.t)
	l.joinOver(far, verbs.StreamConfig{Conn: near, CRC: true, Enhanced: true, IRD: ird, ORD: ord})
}

// asksFor reads an RDMA Read Request of so many octets with that MSN, and is its answer.
func (l *link) asksFor(msn uint32, octets int) (answer []byte) {
	u := l.next()
	require.Equal(l.t, []any{byte(opReadRequest), msn, uint32(octets)},
		[]any{u[1], binary.BigEndian.Uint32(u[10:]), binary.BigEndian.Uint32(u[30:])}, "an RDMA Read Request: its MSN and size")
	return aReadResponse(binary.BigEndian.Uint32(u[18:]), binary.BigEndian.Uint64(u[22:]), make([]byte, octets))
}

// placedWrites has Writes wait for an RDMA Read of nothing, which is beyond ORD: those that are posted while it is
// answered are asked for together, and what is behind a Write completes behind it.
func placedWrites(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{PlacedWrites: true, ORD: 2})
	l.enhanced(2, 3)
	write := func(id uint64, flags verbs.Flags) verbs.Request {
		return verbs.Request{ID: id, Op: verbs.OpWrite, SGL: n.mr.SGL(0, 4), Remote: theirs, Flags: flags}
	}
	success := func(id uint64, op verbs.Op) verbs.Completion { return l.sentAs(id, op, verbs.StatusSuccess) }
	post(t, l.qp, write(1, 0))
	l.gets1(opWrite)
	first := l.asksFor(1, 0)
	post(t, l.qp, l.aSend(2), write(3, 0), write(4, verbs.Unsignaled), write(5, 0))
	for _, op := range []byte{opSend, opWrite, opWrite, opWrite} {
		l.gets1(op)
	}
	post(t, l.qp, l.aRead(6), l.aRead(7), l.aRead(8))
	a, b := l.asksFor(2, 8), l.asksFor(3, 8)
	l.settled()
	empty(t, l.sq)
	l.send(first)
	completes(t, l.sq, success(1, verbs.OpWrite), success(2, verbs.OpSend))
	second := l.asksFor(4, 0)
	empty(t, l.sq)
	l.send(a)
	third := l.asksFor(5, 8)
	l.send(b)
	l.settled()
	empty(t, l.sq)
	l.send(second)
	completes(t, l.sq, success(3, verbs.OpWrite), success(5, verbs.OpWrite), success(6, verbs.OpRead), success(7, verbs.OpRead))
	l.send(third)
	completes(t, l.sq, success(8, verbs.OpRead))
	post(t, l.qp, write(9, verbs.Unsignaled), l.aSend(10))
	l.gets1(opWrite)
	l.gets1(opSend)
	completes(t, l.sq, success(10, verbs.OpSend))
	l.settled() // nothing is asked for
}

// gets1 reads a segment with that operation.
func (l *link) gets1(op byte) { require.Equal(l.t, op, l.next()[1], "the operation") }

// placeForPlacedWrites has the peer grant a place for the Read of Writes, or none, by what it can answer: one more than
// ORD, or two in place of fewer.
func placeForPlacedWrites(t *conformance.T, n *host) {
	type row struct {
		asked, granted int
		ord            int
		place          bool
	}
	for _, r := range []row{
		{verbs.None, 0, 0, false}, {verbs.None, 1, 0, true}, {1, 0, 0, false}, {1, 1, 1, false}, {1, 2, 1, true},
		{2, 1, 1, false}, {2, 2, 1, true}, {2, 3, 2, true}, {2, 9, 2, true},
	} {
		t.Part("ORD %d, of which the peer grants %d", r.asked, r.granted)
		l := n.idleLink(verbs.QPConfig{PlacedWrites: true, ORD: r.asked})
		l.enhanced(4, r.granted)
		a := attributes(t, l.qp)
		require.Equal(t, []any{r.ord, r.place}, []any{a.ORD, a.PlacedWrites}, "ORD, and whether there is a place")
		post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: n.mr.SGL(0, 4), Remote: theirs})
		l.gets1(opWrite)
		if r.place {
			l.send(l.asksFor(1, 0))
		}
		completes(t, l.sq, l.sentAs(1, verbs.OpWrite, verbs.StatusSuccess))
		require.NoError(t, l.qp.Destroy())
	}
}

// peersPlacedWrites answers a peer's Reads of nothing in spite of NoInboundRead, and one more than IRD at once, but none
// of an octet, and not one more.
func peersPlacedWrites(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{PlacedWrites: true, NoInboundRead: true})
	l.enhanced(3, 3)
	l.fetched(0, 0, 0)
	u := l.readOf(uint32(n.mr.STag()), n.mr.Base(), 1)
	l.send(u)
	l.terminated(0x1201, u, false)
	l.drop()

	for more := range counted(t, "%d more than IRD", 3) {
		const ird = 2
		l := n.idleLink(verbs.QPConfig{PlacedWrites: true, IRD: ird})
		source := n.register(vast, allRights)
		l.enhanced(ird+1, 4)
		var reads [][]byte
		for range ird + more {
			reads = append(reads, l.readOf(uint32(source.STag()), source.Base(), vast))
		}
		l.sendAtOnce(reads...)
		if more < 2 {
			l.next()
			require.Equal(t, verbs.StateRTS, l.qp.State())
		} else {
			reaches(t, l.qp, verbs.StateTerminate)
		}
		l.drop()
		require.NoError(t, l.qp.Destroy())
		require.NoError(t, source.Deregister())
	}
}

// plain brings a link to RTS without CRCs, so that memory is sent from where it is, over a socket that takes little.
func (l *link) plain(emss int) {
	far, near := tcpPair(l.t)
	require.NoError(l.t, near.(*net.TCPConn).SetWriteBuffer(64<<10))
	l.joinOver(far, verbs.StreamConfig{Conn: near, EMSS: emss})
}

// secondSourceGoes deregisters one of the two regions from which Writes are under way to a peer that does not read. The
// other one is not kept, and what has gone is not read.
func secondSourceGoes(t *conformance.T, n *host) {
	const size, writes, mark = 16 << 10, 1024, 0xEE
	for which := range counted(t, "region %d", 2) {
		l := n.idleLink(verbs.QPConfig{SendDepth: writes, SendCQ: n.newCQ(writes)})
		l.plain(5000)
		both := []*verbs.MR{n.register(size, allRights), n.register(size, allRights)}
		for i := range uint64(writes) {
			post(t, l.qp, verbs.Request{ID: i, Op: verbs.OpWrite, SGL: both[i%2].SGL(0, size), Remote: theirs})
		}
		l.next()
		l.full()
		require.NoError(t, both[which].Deregister())
		copy(both[which].Bytes(), bytes.Repeat([]byte{mark}, size))
		for {
			u, err := l.peer.Next()
			if err != nil {
				break
			}
			require.False(t, bytes.Contains(u, []byte{mark, mark, mark, mark}), "memory that is not registered any more")
		}
		l.drop()
		ends(t, l.qp, verbs.StateError)
		failed, over := 0, false // what is not all sent before the one at fault is flushed too
		for _, c := range await(t, l.sq, writes) {
			switch c.Status {
			case verbs.StatusInvalidSTag:
				require.EqualValues(t, which, c.ID%2, "the request at fault")
				failed++
				over = true
			case verbs.StatusFlushed:
				over = true
			default:
				require.Equal(t, verbs.StatusSuccess, c.Status, "request %d", c.ID)
				require.False(t, over, "request %d, behind one that was not sent", c.ID)
			}
		}
		require.Equal(t, 1, failed, "requests at fault")
		require.NoError(t, both[1-which].Deregister(), "nothing holds it")
		require.NoError(t, l.qp.Destroy())
	}
}

// sourceOfAnswerGoes deregisters what is being read by a peer that does not take the answer. Between two segments a
// Terminate Message follows, whose Read Request begins behind what was sent (RFC 5040 4.8); within one a reset. What has gone is
// not read. A few tries are to see both.
func sourceOfAnswerGoes(t *conformance.T) {
	const mark = 0xEE
	for try, seen := 0, map[bool]bool{}; len(seen) < 2 && try < 4; try++ {
		n := newHost(t, hostConfig{})
		l := n.idleLink(verbs.QPConfig{})
		l.plain(either(try%2 == 0, 5000+try, 4096+18-14))
		source := n.register(vast, allRights)
		u := l.readOf(uint32(source.STag()), source.Base(), vast)
		l.send(u)
		sent := len(l.next()) - 14 // of a tagged header
		l.full()
		require.NoError(t, source.Deregister())
		copy(source.Bytes(), bytes.Repeat([]byte{mark}, vast))
		var terminate []byte
		var err error
		for err == nil {
			var got []byte
			if got, err = l.peer.Next(); err != nil {
				break
			}
			if got[1]&0x0F == opTerminate&0x0F {
				terminate = got
				continue
			}
			require.Nil(t, terminate, "behind a Terminate Message")
			sent += len(got) - 14
			require.False(t, bytes.Contains(got, []byte{mark, mark, mark, mark}), "memory that is not registered any more")
		}
		within := terminate == nil
		seen[within] = true
		if within {
			require.False(t, errors.Is(err, io.EOF), "an end within a segment is a reset: %v", err)
		} else {
			rest := aReadRequest(0, read{nowhere, nowhereTO + uint64(sent), uint32(vast - sent), uint32(source.STag()), source.Base() + uint64(sent)})
			copy(u[18:], rest[18:])
			require.Equal(t, aTerminate(0x0100, u, true), terminate)
			require.ErrorIs(t, err, io.EOF)
			l.shut()
		}
		l.remains(verbs.StateError, verbs.EventIRRQSTag)
		require.NoError(t, l.qp.Destroy())
	}
}

// atomicsOnPages has Atomics change numbers on each page of a region, at both ends of it; where a number is not
// aligned, or on two pages, none does.
func atomicsOnPages(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{A: hostConfig{QP: verbs.QPConfig{Extensions: true}}, B: hostConfig{QP: verbs.QPConfig{Extensions: true}}})
	p := w.b.pages(3, 4096)
	list := p.List(8, 3*4096-8)
	list.Addresses[0], list.Addresses[2] = list.Addresses[2], list.Addresses[0]
	mr := w.b.region(w.b.pd, verbs.RegionConfig{Buffers: list, Access: atomicRights, VA: 4096 + 8})
	octets := func(off int) []byte { // of the region, in the pages
		at := off + 8
		return p.Bytes()[[]int{2, 1, 0}[at/4096]*4096+at%4096:][:8]
	}
	for off := range inTurn(t, "octet %d", []int{0, 8, 4080, 4088, 4096, 8176, 8184, 3*4096 - 16}) {
		fill(p.Bytes(), 3)
		want := append([]byte{}, p.Bytes()...)
		was := binary.NativeEndian.Uint64(octets(off))
		post(t, w.a.qp, verbs.Request{ID: 1, Op: verbs.OpFetchAdd, Atomic: verbs.FetchAdd(1 << 20), Remote: mr.Remote(off)})
		completes(t, w.a.cq, verbs.Completion{ID: 1, QP: w.a.qp.ID(), Op: verbs.OpFetchAdd, Value: was})
		require.Equal(t, was+1<<20, binary.NativeEndian.Uint64(octets(off)), "the sum")
		binary.NativeEndian.PutUint64(octets(off), was)
		require.Equal(t, want, p.Bytes(), "all else is as it was")
	}
	for off := range inTurn(t, "octet %d, which is not aligned", []int{4, 4084, 4087, 4089}) {
		a, b := w.connectMore(verbs.QPConfig{Extensions: true}, verbs.QPConfig{Extensions: true})
		want := append([]byte{}, p.Bytes()...)
		post(t, a, verbs.Request{ID: 2, Op: verbs.OpSwap, Atomic: verbs.Swap(1), Remote: mr.Remote(off)})
		ends(t, a, verbs.StateError)
		ends(t, b, verbs.StateError)
		require.Equal(t, want, p.Bytes())
		await(t, w.a.cq, 1)
	}
}

// waitWithoutRoom waits for completions with no room for one, and is refused at once; a wake-up of the program's ends
// waits for a token.
func waitWithoutRoom(t *conformance.T, n *host) {
	refuses(t, "no room", verbs.ErrInvalidModifier, func() error { return second(n.cq.Wait(t.Context(), nil)) })
	for range 2 {
		woken := make(chan error, 1)
		go func() { woken <- n.cq.WaitEvent(t.Context()) }()
		n.cq.Wake()
		require.NoError(t, receive(t, woken, "it is woken, and sleeps on"))
	}
	select {
	case <-n.cq.Events():
		t.Fatalf("a token too many")
	default:
	}
}
