package cases

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/vipl"
	"github.com/softrnic/softrnic/wr"
)

// guardsWakeups are those who wait beside others: of two, each is told of its own; and nobody waits for what a
// clock or a second look would bring.
var guardsWakeups = []conformance.Case{
	apiCase("7.9/two-deregistered-at-once", twoDeregistered, "RV-7.9-M8"),
	apiCase("8.2.5/wake", onHost(wakeEndsWaits), "RV-8.2.5-M9"),
	apiCase("6.4.3.1/one-of-two-stalls", onHost(oneOfTwoStalls), "R5042-6.4.3.1-M1"),
	apiCase("5.3/busy-one-of-two", onHost(busyOneOfTwo), "RV-5.3-M3"),
	apiCase("8.1.1/bursts-without-a-look", onHost(burstsWithoutALook), "RV-8.1.1-M2"),
	apiCase("6.2.1.2/after-the-last-message", onHost(afterTheLastMessage), "RV-6.2.1.2-M3"),
	apiCase("3.3/vi-peer-to-peer-early", viPeerToPeerEarly, "VT-3.3-M2"),
}

// twoDeregistered has two threads deallocate a region each, which is in use: the one whose region is free goes on, in
// whatever order they came.
func twoDeregistered(t *conformance.T) {
	for order := range inTurn(t, "let go %v", [][]int{{0, 1}, {1, 0}}) {
		table := stag.NewTable(stag.Config{})
		t.Cleanup(func() { _ = table.Close() })
		var held [2]stag.Ref
		var gone [2]chan error
		for i := range held {
			info := must(table.Register(stag.RegionConfig{PD: 1, Memory: make([]byte, 8), Access: wr.LocalRead}))(t)
			ref, fault := table.Resolve(info.STag, info.Base, 8, stag.User{PD: 1}, wr.LocalRead)
			require.Zero(t, fault)
			require.True(t, ref.Hold())
			held[i], gone[i] = ref, make(chan error, 1)
			id := make(chan string, 1)
			go func() {
				id <- thisGoroutine()
				gone[i] <- table.Deallocate(info.STag)
			}()
			who := <-id
			eventually(t, func() bool { return stateOf(who) == "sync.Cond.Wait" }, "it waits for those who use the region")
		}
		for _, i := range order {
			held[i].Release()
			require.NoError(t, receive(t, gone[i], "nobody uses the region any more, and Deallocate goes on waiting"))
		}
	}
}

// wakeEndsWaits ends a WaitEvent, where the data arrives and where it does not, and with two who wait one after the
// other.
func wakeEndsWaits(t *conformance.T, n *host) {
	for groups := range inTurn(t, "two groups: %v", []bool{false, true}) {
		l := n.link(verbs.QPConfig{RecvCQ: n.patient()})
		if groups {
			n.link(verbs.QPConfig{SendCQ: l.rq, RecvCQ: n.patient()})
		}
		s := &scene{t: t, wait: l.rq.WaitEvent}
		for range 3 {
			a := s.sleeps()
			l.rq.Wake()
			a.wakes()
		}
		a, b := s.sleeps(), s.sleeps()
		l.rq.Wake()
		rest := eitherWakes(a, b)
		rest.stillSleeps()
		l.rq.Wake()
		rest.wakes()
	}
}

// oneOfTwoStalls has one of two streams of an S-RQ begin a message, before the other is there or behind it, and
// go on no more. It ends; the other has the receives that are left.
func oneOfTwoStalls(t *conformance.T, n *host) {
	for before := range inTurn(t, "begun before the other is there: %v", []bool{false, true}) {
		s := n.newSRQ(verbs.SRQConfig{StallTimeout: shortly})
		n.receives(s, 1, 2)
		keeps := n.link(verbs.QPConfig{SRQ: s})
		begin := func() {
			keeps.send(untagged(moreUntagged, opSend, 0, 0, keeps.nextSend(), 0, []byte{1}))
			eventually(t, func() bool { return s.Stats().Taken == 1 }, "the message has a receive")
		}
		if before {
			begin()
		}
		other := n.link(verbs.QPConfig{SRQ: s})
		if !before {
			begin()
		}
		keeps.terminated(0x0207, nil, false)
		keeps.closesTo(verbs.StateError)
		completes(t, keeps.rq, keeps.recvAs(verbs.StatusFlushed, 1)...)
		keeps.raised(verbs.EventSRQStalled)
		other.says(2)
		n.quiet()
	}
}

// busyOneOfTwo has a program poll that finds something on one stream each time: what the other has sent comes all the
// same.
func busyOneOfTwo(t *conformance.T, n *host) {
	c := verbs.QPConfig{RecvCQ: n.patient()}
	busy, other := n.link(c), n.link(c)
	other.recv(1)
	at := n.mr.Remote(0)
	for range manyPolls { // the background poller steps aside: nobody but this goroutine serves
		_, err := c.RecvCQ.PollOne()
		require.ErrorIs(t, err, verbs.ErrCQEmpty)
	}
	const before, most = 32, 4096
	for i := range before + most {
		if i == before {
			other.sendMessage([]byte("text"))
		}
		busy.send(aWrite(uint32(at.STag), at.TO+512, []byte{byte(i)}))
		done, err := c.RecvCQ.PollOne()
		if err == nil {
			require.Equal(t, other.got(1, 4), done)
			return
		}
		require.ErrorIs(t, err, verbs.ErrCQEmpty)
	}
	t.Fatalf("%d polls, each with something from one peer, and nothing from the other", most)
}

// burstsWithoutALook posts one burst after the other and never looks for what has completed: each leaves.
func burstsWithoutALook(t *conformance.T, n *host) {
	const bursts, each = 24, 12
	l := n.link(verbs.QPConfig{SendDepth: bursts * each})
	for i := range counted(t, "burst %d", bursts) {
		want, failed, req := make([][]byte, each), error(nil), l.aSend(0)
		for k := range want {
			want[k] = aSend(uint32(i*each+k+1), l.mr.Bytes()[:4])
		}
		for range want { // with nothing in between: or it is no burst
			if _, err := l.qp.PostSend(req); err != nil {
				failed = err
			}
		}
		require.NoError(t, failed, "PostSQ")
		l.expect(want...)
	}
}

// lateConn is a connection on which, from late on, no time is left for a Write that has a deadline.
type lateConn struct {
	net.Conn
	mu       sync.Mutex
	deadline time.Time
	late     bool
}

func (c *lateConn) SetDeadline(d time.Time) error {
	return errors.Join(c.SetWriteDeadline(d), c.Conn.SetReadDeadline(d))
}

func (c *lateConn) SetWriteDeadline(d time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = d
	return c.Conn.SetWriteDeadline(d)
}

func (c *lateConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	over := c.late && !c.deadline.IsZero()
	c.mu.Unlock()
	if over {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Write(b)
}

// afterTheLastMessage goes on over a connection that is no socket when the time for the last message of streaming
// mode would be over.
func afterTheLastMessage(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{})
	s, peer := aStream(t)
	c := &lateConn{Conn: s.Conn}
	s.Conn = c
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s, LastMessage: []byte("now iWARP")}))
	peer.text("now iWARP")
	l.peer = peer
	c.mu.Lock()
	c.late = true
	c.mu.Unlock()
	post(t, l.qp, l.aSend(1))
	l.expect(aSend(1, l.mr.Bytes()[:4]))
	l.settled()
}

// viPeerToPeerEarly has a request of the wrong kind wait for somebody: he who comes has it rejected, there and then.
func viPeerToPeerEarly(t *conformance.T) {
	for peer := range inTurn(t, "asked as a peer: %v", []bool{false, true}) {
		l := must(vitcp.Listen("127.0.0.1:0", vitcp.ListenConfig{MatchTimeout: hour}))(t)
		t.Cleanup(func() { _ = l.Close() })
		asks := func(peer bool) *viPeer {
			p, ce := newVIPeer(t, must(net.Dial("tcp", l.Addr().String()))(t)), viPeerCE(vipl.ServiceUnreliable, "server")
			if peer {
				ce.attributes |= viPeerToPeer
			}
			p.asks(ce)
			return p
		}
		wrong := asks(peer)
		eventually(t, func() bool { return l.Held() == 1 }, "the request waits for somebody")
		came := make(chan error, 1)
		go func() {
			r, err := l.Wait(t.Context(), vitcp.Filter{Called: "server", PeerToPeer: !peer})
			if err == nil {
				err = r.Close()
			}
			came <- err
		}()
		wrong.get(viReject)
		wrong.over()
		asks(!peer)
		require.NoError(t, receive(t, came, "the right one is not offered"))
	}
}
