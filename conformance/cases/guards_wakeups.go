package cases

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
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
	apiCase("8.2.2.2/local-fence-behind-memory", onHost(localFenceBehindMemory), "RV-8.2.2.2-M6"),
	apiCase("6.2.2/behind-and-on-again", onHost(behindAndOnAgain), "RV-6.2.2-M4"),
	apiCase("6.2.2.4/reset-below", onHost(resetBelow), "RV-6.2.2.4-M4"),
	apiCase("8.2.5/contexts-in-turn", onHost(contextsInTurn), "RV-8.2.5-M9"),
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

// burstsWithoutALook posts one burst after the other and never looks for what has completed: each leaves. So do those
// of the next queue pair, whose receives complete at the same CQ, when the one before it has gone.
func burstsWithoutALook(t *conformance.T, n *host) {
	const bursts, each = 12, 12
	rq := n.newCQ(8)
	for range counted(t, "connection %d", 3) {
		l := n.link(verbs.QPConfig{RecvCQ: rq, SendDepth: bursts * each})
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
		require.NoError(t, l.qp.Destroy())
	}
}

// localFenceBehindMemory has nothing but a memory operation stand before an Invalidate with a Local Fence: no octet that
// leaves, and no second post, brings it on.
func localFenceBehindMemory(t *conformance.T, n *host) {
	p := n.pages(2, 4096)
	for kind := range inTurn(t, "behind a %v", []verbs.Op{verbs.OpBind, verbs.OpFastRegister}) {
		l, gone, first := n.link(privileged), n.register(8, allRights), binds(n.newMW().BindRequest(n.mr, 0, 8, remoteRights, 1))
		if kind == verbs.OpFastRegister {
			first = fastRegister(n.allocated().WithKey(1), p.List(0, 64), 4096, allRights)
		}
		post(t, l.qp, first, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: gone.STag(), Flags: verbs.LocalFence})
		completes(t, l.sq, l.sentAs(first.ID, kind, verbs.StatusSuccess), l.sentAs(2, verbs.OpInvalidate, verbs.StatusSuccess))
		require.False(t, queried(t, gone).Valid)
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

// upperConn is a connection over another, as TLS is.
type upperConn struct {
	net.Conn
	below net.Conn
}

func (c *upperConn) NetConn() net.Conn { return c.below }

// resetBelow takes a queue pair to Error whose connection is over another, which alone can be reset.
func resetBelow(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{})
	far, near := tcpPair(t)
	l.joinOver(far, verbs.StreamConfig{Conn: &upperConn{near, near}, CRC: true})
	l.settled()
	l.modify(verbs.StateError)
	l.endsAs(endReset, "FPDUs before the reset")
	ends(t, l.qp, verbs.StateError)
}

// readConn is a connection that tells who reads it.
type readConn struct {
	net.Conn
	reader atomic.Value // the name of a goroutine
}

func (c *readConn) Read(b []byte) (int, error) {
	c.reader.CompareAndSwap(nil, thisGoroutine())
	return c.Conn.Read(b)
}

// behindAndOnAgain has a queue pair fall so far behind what comes that nobody reads its connection, which is no socket,
// any more: for want of a receive. With one it catches up.
func behindAndOnAgain(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{GracefulReceive: true})
	far, near := tcpPair(t)
	c := &readConn{Conn: near}
	l.joinOver(far, verbs.StreamConfig{Conn: c, CRC: true})
	l.sendMessage(nil)
	eventually(t, func() bool { return l.qp.Stats().ReceiveWaits > 0 }, "it waits for a receive")
	const writes, each = 64, 32 << 10
	at := l.mr.Remote(0)
	data := fill(make([]byte, each), 3)
	behind := l.fpdus(aWrite(uint32(at.STag), at.TO, data))
	sent := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < writes && err == nil; i++ {
			err = l.Raw(behind)
		}
		sent <- err
	}()
	eventually(t, func() bool {
		who, _ := c.reader.Load().(string)
		return stateOf(who) == "sync.Cond.Wait"
	}, "it reads no more")
	l.recv(1)
	completes(t, l.rq, l.got(1, 0))
	require.NoError(t, receive(t, sent, "there is room again, and nobody reads"))
	l.settled()
	same(t, data, l.mr.Bytes()[:each], "what was written")
}

// watched is a context that counts who is to be told of its end. It has none.
type watched struct {
	context.Context
	done    chan struct{}
	watches atomic.Int32
}

func (w *watched) Done() <-chan struct{} { return w.done }
func (w *watched) Value(any) any         { return nil } // or it is taken for the one that it is made of

// AfterFunc is what the context package calls of a context that is none of its own.
func (w *watched) AfterFunc(func()) (stop func() bool) {
	w.watches.Add(1)
	var once sync.Once
	return func() (stopped bool) {
		once.Do(func() {
			w.watches.Add(-1)
			stopped = true
		})
		return stopped
	}
}

// contextsInTurn waits with one context and the other, which live on. Neither comes to have more to tell, of as many
// waits as there may be, and nothing when the CQ is gone.
func contextsInTurn(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{RecvCQ: n.patient()})
	both := [2]*watched{}
	for i := range both {
		both[i] = &watched{Context: t.Context(), done: make(chan struct{})}
	}
	for i := range counted(t, "wait %d", 8) {
		ctx := both[i%2]
		s := &scene{t: t, wait: func(context.Context) error { return waitOne(l.rq)(ctx) }}
		a := s.sleeps()
		require.LessOrEqual(t, ctx.watches.Load(), int32(1), "the context of the one that sleeps") // 0: it looks by itself
		require.Zero(t, both[1-i%2].watches.Load(), "the other context")
		l.recv(1)
		l.sendMessage(nil)
		a.wakes()
	}
	require.NoError(t, errors.Join(l.qp.Destroy(), l.rq.Destroy()))
	for _, ctx := range both {
		require.Zero(t, ctx.watches.Load(), "the CQ is gone")
	}
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
