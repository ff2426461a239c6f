package cases

import (
	"bytes"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_3_5 is how queue pairs take receives from an S-RQ, and what resizing does to it:
// verbs draft 6.3.2, 6.3.5, 6.3.7.
var rv6_3_5 = []conformance.Case{
	apiCase("6.3.2/resize-with-receives", onHost(srqResize), "RV-6.3.2-M1", "RV-6.3.7-M4"),
	apiCase("6.3.2/resize-disturbs-nothing", srqResizeDisturbs, "RV-6.3.2-M2"),
	apiCase("6.3.2/shrink-refused", onHost(srqShrinkRefused), "RV-6.3.2-M3", "RV-6.3.2-M4"),
	apiCase("6.3.5/posting-rules", onHost(srqPostingRules), "RV-6.3.5-M4", "RV-6.3.5-M5"),
	apiCase("6.3.5/message-order", srqMessageOrder, "RV-6.3.5-M6"),
	apiCase("6.3.5/one-element-a-message", onHost(srqOneElement), "RV-6.3.5-M7"),
	apiCase("6.3.5/used-until-polled", onHost(srqUsedUntilPolled), "RV-6.3.5-M8", "RV-6.3.7-M2"),
	apiCase("6.3.5/any-queue-pair", onHost(srqAnyQP), "RV-6.3.5-M9", "RV-6.3.7-M3"),
	apiCase("6.3.5/pd-of-the-srq", onHost(srqPDChecked), "RV-6.3.5-M11", "RV-6.3.5-M12", "PV-7.6.3-M4"),
	apiCase("6.3.5/stag-of-zero", onHost(srqSTagZero), "RV-6.3.5-M13", "RV-6.3.5-M14"),
	apiCase("6.3.5/empty-for-good", onHost(srqEmptyForGood), "PV-9.5.3-M12", "RV-6.3.6-M3"),
}

// depthOf is Query S-RQ's.
func depthOf(t *conformance.T, s *verbs.SRQ) int { return queried[verbs.SRQAttributes](t, s).Depth }

// srqResize changes the depth up and down with receives posted, in use, and completed
// but not polled. One queue pair may use all of them each time.
func srqResize(t *conformance.T, n *host) {
	for range 2 { // every S-RQ can
		s := n.newSRQ(verbs.SRQConfig{Depth: 4})
		l := n.link(verbs.QPConfig{SRQ: s})
		n.receives(s, 1, 2, 3, 4)
		l.sendMessage([]byte{1})
		l.send(untagged(moreUntagged, opSend, 0, 0, l.nextSend(), 0, []byte{1}))
		l.settled()
		for _, depth := range []int{32, 4, 8, 32} {
			require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: ptr(depth)}), "to %d", depth)
			require.GreaterOrEqual(t, depthOf(t, s), depth)
		}
		l.send(untagged(lastUntagged, opSend, 0, 0, l.sends, 1, []byte{2}))
		completes(t, l.rq, l.got(1, 1), l.got(2, 2))
		n.receives(s, upTo(5, 34)...)
		require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull)
		for range 32 {
			l.sendMessage([]byte{1, 2, 3})
		}
		for id := range uint64(32) {
			completes(t, l.rq, l.got(id+3, 3))
		}
		require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: ptr(8)}))
		n.receives(s, upTo(1, 8)...)
		require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull)
		for id := range uint64(8) {
			l.says(id + 1)
		}
		l.sendsTooMuch()
	}
}

// srqResizeDisturbs resizes at random while three queue pairs receive.
func srqResizeDisturbs(t *conformance.T) {
	const messages = 300
	n := newHost(t, hostConfig{})
	s := n.newSRQ(verbs.SRQConfig{Depth: 64})
	cq := n.newCQ(256)
	var lines []*link
	for range 3 {
		lines = append(lines, n.link(verbs.QPConfig{SRQ: s, RecvCQ: cq}))
	}
	n.receives(s, upTo(1, 40)...)
	// Each peer sends no more than this side has taken in, and ten.
	var g sync.WaitGroup
	defer g.Wait()
	over := make(chan struct{})
	defer close(over)
	credit := map[verbs.QPID]chan struct{}{}
	for _, l := range lines {
		c := make(chan struct{}, messages+10)
		credit[l.id] = c
		for range 10 {
			c <- struct{}{}
		}
		g.Go(func() {
			for i := range messages {
				select {
				case <-c:
				case <-over:
					return
				}
				if !assert.NoError(t, l.peer.Send(aSend(uint32(i+1), []byte{byte(i), byte(i >> 8)}))) {
					return
				}
			}
		})
	}
	next := map[verbs.QPID]int{}
	for range 3 * messages {
		c := await(t, cq, 1)[0]
		require.Equal(t, verbs.Completion{ID: c.ID, QP: c.QP, Op: verbs.OpRecv, Bytes: 2}, c)
		b := n.mr.Bytes()[64*c.ID:]
		require.Equal(t, next[c.QP], int(b[0])|int(b[1])<<8, "message of queue pair %d", c.QP)
		next[c.QP]++
		n.receives(s, c.ID)
		require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: ptr(40 + t.Rand().IntN(100))}))
		credit[c.QP] <- struct{}{}
	}
	n.quiet()
	for _, l := range lines {
		require.Equal(t, verbs.StateRTS, l.qp.State())
	}
}

func srqShrinkRefused(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	l := n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, upTo(1, 5)...)
	shrink := func() error { return s.Modify(verbs.ModifySRQ{Depth: ptr(4)}) }
	refuses(t, "five posted", verbs.ErrShrinkFailed, shrink, queries(s.Query))
	l.sendMessage([]byte{1})
	l.sendMessage([]byte{2})
	l.settled()
	refuses(t, "two of them completed", verbs.ErrShrinkFailed, shrink, queries(s.Query))
	n.receives(s, 6, 7, 8)
	require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull, "the old depth")
	completes(t, l.rq, l.got(1, 1), l.got(2, 1))
	require.Equal(t, []byte{1, 2}, []byte{n.mr.Bytes()[64], n.mr.Bytes()[128]})
	for id := range uint64(3) {
		refuses(t, "more than four", verbs.ErrShrinkFailed, shrink, queries(s.Query))
		l.says(id + 3)
		if id == 1 {
			break
		}
	}
	require.NoError(t, shrink())
	for _, id := range []uint64{5, 6, 7, 8} {
		l.says(id)
	}
}

// srqPostingRules: the first that is refused stops the list, and a list is copied.
func srqPostingRules(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 4, SGE: 2})
	l := n.link(verbs.QPConfig{SRQ: s})
	one := n.mr.SGE(0, 4)
	sgl := []verbs.SGE{n.mr.SGE(64, 2), n.mr.SGE(200, 2)}
	k, err := s.PostRecv(verbs.Recv{ID: 1, SGL: sgl}, verbs.Recv{ID: 2}, verbs.Recv{ID: 3, SGL: []verbs.SGE{one, one, one}}, verbs.Recv{ID: 4})
	require.ErrorIs(t, err, verbs.ErrInvalidSGLLength)
	require.Equal(t, 2, k)
	clear(sgl)
	k, err = s.PostRecv(n.aReceive(5), n.aReceive(6), n.aReceive(7))
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.Equal(t, 2, k)
	l.sendMessage([]byte{1, 2, 3})
	completes(t, l.rq, l.got(1, 3))
	require.Equal(t, []byte{1, 2}, n.mr.Bytes()[64:66])
	require.Equal(t, byte(3), n.mr.Bytes()[200])
	l.sendMessage(nil)
	completes(t, l.rq, l.got(2, 0))
	l.says(5)
	l.says(6)
	l.sendsTooMuch()
}

// srqMessageOrder has four peers send numbered messages of random length.
func srqMessageOrder(t *conformance.T) {
	const messages = 50
	n := newHost(t, hostConfig{})
	s := n.newSRQ(verbs.SRQConfig{Depth: 256})
	cq := n.newCQ(256)
	n.receives(s, upTo(1, 4*messages)...)
	var g sync.WaitGroup
	defer g.Wait()
	for range 4 {
		l := n.link(verbs.QPConfig{SRQ: s, RecvCQ: cq})
		var segments [][]byte
		for i := range messages {
			size := 2 + t.Rand().IntN(60)
			m := bytes.Repeat([]byte{byte(i)}, size)
			cut := t.Rand().IntN(size)
			segments = append(segments, untagged(moreUntagged, opSend, 0, 0, uint32(i+1), 0, m[:cut]),
				untagged(lastUntagged, opSend, 0, 0, uint32(i+1), uint32(cut), m[cut:]))
		}
		g.Go(func() {
			for _, u := range segments {
				assert.NoError(t, l.peer.Send(u))
			}
		})
	}
	next := map[verbs.QPID]byte{}
	for _, c := range await(t, cq, 4*messages) {
		require.Equal(t, verbs.StatusSuccess, c.Status)
		require.Equal(t, bytes.Repeat([]byte{next[c.QP]}, int(c.Bytes)), n.mr.Bytes()[64*c.ID:][:c.Bytes], "%+v", c)
		next[c.QP]++
	}
	require.Len(t, next, 4)
}

func srqOneElement(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	l := n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1, 2, 3)
	l.nextSend()
	for i := range uint32(9) {
		l.send(untagged(moreUntagged, opSend, 0, 0, l.sends, i, []byte{byte(i)}))
	}
	l.send(untagged(lastUntagged, opSend, 0, 0, l.sends, 9, []byte{9}))
	completes(t, l.rq, l.got(1, 10))
	require.Equal(t, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, n.mr.Bytes()[64:74])
	l.says(2)
	l.says(3)
	l.sendsTooMuch()
}

func srqUsedUntilPolled(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 4})
	a, b := n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1, 2, 3, 4)
	full := func() { require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull) }
	for _, l := range []*link{a, b, a, b} {
		full()
		l.sendMessage([]byte{1})
		l.settled()
		full()
	}
	for i, l := range []*link{b, a, a, b} {
		completes(t, l.rq, l.got([]uint64{2, 1, 3, 4}[i], 1))
		n.receives(s, uint64(5+i))
		full()
	}
	for id := range uint64(4) {
		a.says(5 + id)
	}
	s = n.newSRQ(verbs.SRQConfig{Depth: 4})
	l := n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1, 2)
	l.sendMessage(nil)
	l.sendMessage(nil)
	l.settled()
	n.receives(s, 3, 4)
	in := s.Stats().Queue
	require.Equal(t, []uint64{4, 4}, []uint64{in.Now, in.Most}, "in use, and at most")
}

// srqAnyQP: one of three takes all, or each some, as messages come.
func srqAnyQP(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 16})
	lines := []*link{n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})}
	for _, only := range lines {
		n.receives(s, upTo(1, 16)...)
		for range 16 {
			only.sendMessage([]byte{7})
		}
		for id := range uint64(16) {
			completes(t, only.rq, only.got(id+1, 1))
		}
	}
	n.receives(s, upTo(1, 16)...)
	for id := range uint64(16) {
		lines[t.Rand().IntN(3)].says(id + 1)
	}
	for _, l := range lines {
		l.sendsTooMuch()
	}
}

// srqPDChecked has an S-RQ in one domain and a queue pair in another, and buffers of
// both.
func srqPDChecked(t *conformance.T, n *host) {
	other := n.newPD()
	s := n.newSRQ(verbs.SRQConfig{PD: other})
	theirs := n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	l := n.link(verbs.QPConfig{SRQ: s})
	postRecv(t, s, verbs.Recv{ID: 1, SGL: theirs.SGL(0, 8)})
	l.delivers(1, "abc")
	require.Equal(t, "abc", string(theirs.Bytes()[:3]))
	clear(n.mr.Bytes()[:128])
	n.receives(s, 1)
	l.sendMessage([]byte("abc"))
	completes(t, l.rq, l.recvAs(verbs.StatusInvalidPD, 1)...)
	l.terminated(0x0000, nil, false)
	require.Equal(t, make([]byte, 128), n.mr.Bytes()[:128])
}

func srqSTagZero(t *conformance.T, n *host) {
	p := n.pages(1, 4096)
	s := n.newSRQ(verbs.SRQConfig{})
	may, mayNot, third := n.link(verbs.QPConfig{SRQ: s, Privileged: true}), n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
	for range 2 {
		postRecv(t, s, verbs.Recv{ID: 1, SGL: []verbs.SGE{physical(p, 100, 8)}})
	}
	may.delivers(1, "abc")
	require.Equal(t, "abc", string(p.Bytes()[100:103]))
	clear(p.Bytes())
	mayNot.sendMessage([]byte("abc"))
	completes(t, mayNot.rq, mayNot.recvAs(verbs.StatusInvalidSTag, 1)...)
	mayNot.terminated(0x0000, nil, false)
	mayNot.closesWith(verbs.StateError)
	require.Equal(t, make([]byte, 4096), p.Bytes())
	n.receives(s, 2, 3)
	may.says(2)
	third.says(3)
}

// srqEmptyForGood has a message keep the only receive, and a Send of another stream find none. It waits until the
// message has stood still for too long and its stream has ended. Then nobody posts a receive, and it waits no longer.
func srqEmptyForGood(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{StallTimeout: shortly})
	keeps, waits := n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1)
	keeps.send(untagged(moreUntagged, opSend, 0, 0, keeps.nextSend(), 0, []byte{1}))
	eventually(t, func() bool { return s.Stats().Taken == 1 }, "the message has the receive")
	tooMuch := waits.peer.aSend([]byte{2})
	waits.send(tooMuch)
	keeps.terminated(0x0207, nil, false)
	keeps.closesTo(verbs.StateError)
	completes(t, keeps.rq, keeps.recvAs(verbs.StatusFlushed, 1)...)
	waits.terminated(0x1202, tooMuch, false)
	waits.closesTo(verbs.StateError)
	got := []verbs.Event{n.events.next(), n.events.next()}
	want := []verbs.Event{{ID: verbs.EventSRQStalled, QP: keeps.id}, {ID: verbs.EventRQMSNRange, QP: waits.id}}
	require.ElementsMatch(t, want, got, "the events")
	empty(t, waits.rq)
	n.receives(s, 3)
	n.link(verbs.QPConfig{SRQ: s}).says(3)
	n.quiet()
}
