//go:build linux && (amd64 || arm64)

package uverbs

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

const udKey = 0x11111111

// newUD is a side with a UD queue pair in RTS, and more about how it is made.
func newUD(p *program, change func(*side, *uabi.QPConfig)) *side {
	p.t.Helper()
	s := &side{program: p, pd: p.pd(), cq: p.cq(1024, -1)}
	s.mem, s.mr = p.region(s.pd, sideBytes, uabi.AccessLocalWrite)
	c := config(s.pd, s.cq, s.cq)
	c.QPType = uabi.QPTUD
	if change != nil {
		change(s, &c)
	}
	s.qp = must[uabi.CreateQPResp](p, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: c})
	s.toUD()
	return s
}

func (s *side) toUD() {
	s.t.Helper()
	require.NoError(s.t, s.modify(uabi.ModifyQP{AttrMask: uabi.QPState | uabi.QPPkeyIndex | uabi.QPPort | uabi.QPQkey, QPState: uabi.QPSInit, PortNum: 1, Qkey: udKey}))
	require.NoError(s.t, s.to(uabi.QPSRTR))
	assert.EqualValues(s.t, uabi.QPSRTR, s.query().QPState)
	require.NoError(s.t, s.modify(uabi.ModifyQP{AttrMask: uabi.QPState | uabi.QPSQPSN, QPState: uabi.QPSRTS}))
	assert.EqualValues(s.t, uabi.QPSRTS, s.query().QPState)
	assert.EqualValues(s.t, udKey, s.query().Qkey)
}

// ah is an address handle for a device.
func (s *side) ah(to *side) uint32 {
	s.t.Helper()
	return must[uabi.CreateAHResp](s.program, uabi.CmdCreateAH, &uabi.CreateAH{
		PDHandle: s.pd, Attr: uabi.AHAttr{GRH: uabi.GlobalRoute{DGID: to.gid()}, IsGlobal: 1, PortNum: 1},
	}).AHHandle
}

func udTo(w uabi.SendWR, ah, qpn, key uint32) uabi.SendWR {
	w.SetUD(ah, qpn, key)
	return w
}

// message checks a completion of a receive into s at off.
func (s *side) message(w uabi.WC, from *side, off int, want []byte) {
	s.t.Helper()
	assert.EqualValues(s.t, uabi.WCRecv, w.Opcode)
	assert.EqualValues(s.t, udwire.GRHSize+len(want), w.ByteLen)
	assert.Equal(s.t, from.qp.QPN, w.SrcQP)
	assert.NotZero(s.t, w.WCFlags&uabi.WCGRH)
	b := s.read(off, int(w.ByteLen))
	gid := from.gid()
	assert.Equal(s.t, gid[:], b[8:24], "the source")
	gid = s.gid()
	assert.Equal(s.t, gid[:], b[24:40], "the destination")
	assert.Equal(s.t, want, b[udwire.GRHSize:])
}

// TestUD sends between two devices, both ways, with all that a message can have.
func TestUD(t *testing.T) {
	a := newUD(started(t, Config{}), nil)
	b := newUD(started(t, Config{Addr: netip.MustParseAddr("127.0.0.2"), RoCE: true}), nil)
	for _, p := range [][2]*side{{a, b}, {b, a}, {a, a}} {
		from, to := p[0], p[1]
		h := from.ah(to)
		for i, n := range []int{5, 0, udwire.MTU} {
			want := bytes.Repeat([]byte{byte('a' + i)}, n)
			_, err := to.recv(7, to.sge(8192, 8192))
			require.NoError(t, err)
			from.fill(0, want)
			w := udTo(signaled(uabi.WRSend, 3), h, to.qp.QPN, udKey)
			if n == 5 {
				w.Opcode, w.Ex = uabi.WRSendWithImm, [4]byte{1, 2, 3, 4}
			}
			from.posted(w, from.sge(0, n))
			var got uabi.WC
			if from == to {
				l := from.wait(2)
				got = l[0]
				if got.Opcode != uabi.WCRecv {
					got = l[1]
				}
			} else {
				assert.EqualValues(t, 3, from.one().WRID)
				got = to.one()
			}
			to.message(got, from, 8192, want)
			if n == 5 {
				assert.Equal(t, [4]byte{1, 2, 3, 4}, got.Ex)
				assert.NotZero(t, got.WCFlags&uabi.WCWithImm)
			} else {
				assert.Zero(t, got.WCFlags&uabi.WCWithImm)
			}
		}
		must[uabi.None](from.program, uabi.CmdDestroyAH, &uabi.DestroyAH{AHHandle: h})
	}
}

// TestUDDrops: what has another Q_Key, is longer than the receive, or comes from another port than its number says is not
// received, and the next message is.
func TestUDDrops(t *testing.T) {
	p := started(t, Config{})
	a, b := newUD(p, nil), newUD(p, nil)
	h := a.ah(b)
	_, err := b.recv(1, b.sge(0, udwire.GRHSize+8))
	require.NoError(t, err)
	a.fill(0, []byte("0123456789"))
	a.posted(udTo(signaled(uabi.WRSend, 1), h, b.qp.QPN, udKey+1), a.sge(0, 8))
	a.posted(udTo(signaled(uabi.WRSend, 2), h, b.qp.QPN, udKey), a.sge(0, 9))
	stranger, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(udwire.Port(b.qp.QPN))})
	require.NoError(t, err)
	defer stranger.Close()
	g := udwire.Datagram{Dest: b.qp.QPN, Source: a.qp.QPN, QKey: udKey, Payload: []byte("spoofed")}
	_, err = stranger.Write(g.Append(nil))
	require.NoError(t, err)
	_, err = stranger.Write([]byte("nothing"))
	require.NoError(t, err)
	own := udTo(signaled(uabi.WRSend, 3), h, b.qp.QPN, 1<<31) // the queue pair's own Q_Key
	a.posted(own, a.sge(0, 8))
	for range 3 {
		a.one()
	}
	b.message(b.one(), a, 0, []byte("01234567"))
	assert.Empty(t, b.poll(1))
}

// TestUDWaits: what arrives before its receive waits for it, as far as there is room, and the order is kept.
func TestUDWaits(t *testing.T) {
	p := started(t, Config{})
	a, b := newUD(p, nil), newUD(p, nil)
	h := a.ah(b)
	const n = 100
	for i := range n {
		a.fill(0, []byte{byte(i)})
		a.posted(udTo(signaled(uabi.WRSend, i), h, b.qp.QPN, udKey), a.sge(0, 1))
		a.one()
		_, err := b.recv(uint64(i), b.sge(128, 64))
		require.NoError(t, err)
		b.message(b.one(), a, 128, []byte{byte(i)})
	}
}

// TestUDShared takes receives from a shared queue.
func TestUDShared(t *testing.T) {
	p := started(t, Config{})
	a := newUD(p, nil)
	var srq uint32
	b := newUD(p, func(s *side, c *uabi.QPConfig) {
		srq = must[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{PDHandle: s.pd, MaxWR: 8, MaxSGE: 1}).SRQHandle
		c.IsSRQ, c.SRQHandle = 1, srq
	})
	must[uabi.PostResp](p, uabi.CmdPostSRQRecv, &uabi.PostSRQRecv{SRQHandle: srq, WRCount: 1, SGECount: 1, WQESize: 16},
		umem.Octets([]uabi.RecvWR{{WRID: 9, NumSGE: 1}}), umem.Octets([]uabi.SGE{b.sge(0, 100)}))
	a.fill(0, []byte("shared"))
	a.posted(udTo(signaled(uabi.WRSend, 1), a.ah(b), b.qp.QPN, udKey), a.sge(0, 6))
	w := b.one()
	assert.EqualValues(t, 9, w.WRID)
	b.message(w, a, 0, []byte("shared"))
}

// TestUDSharedTooLong: a datagram that is longer than a receive of the shared queue costs nothing but itself, and so
// does one that comes before the queue has had any.
func TestUDSharedTooLong(t *testing.T) {
	p := started(t, Config{})
	a := newUD(p, nil)
	var srq uint32
	b := newUD(p, func(s *side, c *uabi.QPConfig) {
		srq = must[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{PDHandle: s.pd, MaxWR: 8, MaxSGE: 1}).SRQHandle
		c.IsSRQ, c.SRQHandle = 1, srq
	})
	h := a.ah(b)
	send := func(text string) {
		a.fill(0, []byte(text))
		a.posted(udTo(signaled(uabi.WRSend, 1), h, b.qp.QPN, udKey), a.sge(0, len(text)))
		a.one()
	}
	send("too early")
	_, err := a.recv(2, a.sge(4096, 64))
	require.NoError(t, err)
	a.posted(udTo(signaled(uabi.WRSend, 3), a.ah(a), a.qp.QPN, udKey), a.sge(0, 1))
	a.wait(2) // from the same socket as that before, which has been looked at
	for _, n := range []int{50, 100} {
		must[uabi.PostResp](p, uabi.CmdPostSRQRecv, &uabi.PostSRQRecv{SRQHandle: srq, WRCount: 1, SGECount: 1, WQESize: 16},
			umem.Octets([]uabi.RecvWR{{WRID: 9, NumSGE: 1}}), umem.Octets([]uabi.SGE{b.sge(0, n)}))
		send("0123456789a")
		send("0123456789")
		b.message(b.one(), a, 0, []byte("0123456789"))
		assert.Empty(t, b.poll(1))
	}
	assert.EqualValues(t, uabi.QPSRTS, b.query().QPState)
}

// again has s, in ERR, receive from a behind RESET.
func (s *side) again(a *side) {
	s.t.Helper()
	require.NoError(s.t, s.to(uabi.QPSReset))
	s.toUD()
	_, err := s.recv(2, s.sge(0, 100))
	require.NoError(s.t, err)
	a.fill(0, []byte("again"))
	a.posted(udTo(signaled(uabi.WRSend, 1), a.ah(s), s.qp.QPN, udKey), a.sge(0, 5))
	s.message(s.one(), a, 0, []byte("again"))
}

// TestUDAgain: a queue pair that went to ERR flushes, and works again after RESET.
func TestUDAgain(t *testing.T) {
	p := started(t, Config{})
	a, b := newUD(p, nil), newUD(p, nil)
	_, err := b.recv(1, b.sge(0, 100))
	require.NoError(t, err)
	require.NoError(t, b.to(uabi.QPSErr))
	assert.EqualValues(t, uabi.WCWRFlushErr, b.wait(1)[0].Status)
	b.again(a)
	must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: b.qp.QPHandle})
	a.posted(udTo(signaled(uabi.WRSend, 2), a.ah(b), b.qp.QPN, udKey), a.sge(0, 5))
	for range 2 {
		a.one()
	}
}

// TestUDInError: a queue pair in ERR takes posts, and flushes them, however it came there.
func TestUDInError(t *testing.T) {
	for _, roce := range []bool{false, true} {
		p := started(t, Config{RoCE: roce})
		for name, end := range map[string]func(a, b *side){
			"MODIFY": func(_, b *side) { require.NoError(t, b.to(uabi.QPSErr)) },
			"fault": func(a, b *side) {
				_, err := b.recv(1, uabi.SGE{Addr: b.mem, Length: 100, Lkey: b.mr.Lkey ^ 0xFF})
				require.NoError(t, err)
				a.posted(udTo(signaled(uabi.WRSend, 1), a.ah(b), b.qp.QPN, udKey), a.sge(0, 5))
				require.NotEqualValues(t, uabi.WCSuccess, b.wait(1)[0].Status)
				b.over()
			},
		} {
			a, b := newUD(p, nil), newUD(p, nil)
			end(a, b)
			_, err := b.recv(2, b.sge(0, 100))
			require.NoError(t, err, name)
			b.posted(udTo(signaled(uabi.WRSend, 3), b.ah(a), a.qp.QPN, udKey), b.sge(0, 5))
			assert.Equal(t, [][2]uint64{{2, uabi.WCWRFlushErr}, {3, uabi.WCWRFlushErr}}, b.statuses(2), name)
			b.again(a)
		}
	}
}

// TestUDLatePost: a post to a queue pair that has failed looks at the completions of datagrams that nobody has polled.
func TestUDLatePost(t *testing.T) {
	p := started(t, Config{RoCE: true})
	a, b := newUD(p, nil), newUD(p, nil)
	_, err := b.recv(1, b.sge(0, 100))
	require.NoError(t, err)
	_, err = b.recv(2, uabi.SGE{Addr: b.mem, Length: 100, Lkey: b.mr.Lkey ^ 0xFF})
	require.NoError(t, err)
	a.fill(0, []byte("again"))
	for id := range 2 {
		a.posted(udTo(signaled(uabi.WRSend, id), a.ah(b), b.qp.QPN, udKey), a.sge(0, 5))
	}
	b.over()
	_, err = b.recv(3, b.sge(0, 100))
	require.NoError(t, err)
	b.message(b.one(), a, 0, []byte("again"))
	assert.EqualValues(t, 2, b.wait(1)[0].WRID)
	assert.Equal(t, [][2]uint64{{3, uabi.WCWRFlushErr}}, b.statuses(1))
}

// TestUDDown: a port that is down does not hold up the end of queue pairs with datagrams to send, by themselves or with their context.
func TestUDDown(t *testing.T) {
	p := started(t, Config{})
	var all []*side
	for range 4 {
		all = append(all, newUD(p, nil))
	}
	p.dev.SetLink(Link{Down: true})
	for _, s := range all {
		s.posted(udTo(signaled(uabi.WRSend, 1), s.ah(s), s.qp.QPN, udKey), s.sge(0, 8))
	}
	all[0].destroy()
	p.file.Close()
	assert.True(t, p.dev.Down(), "and it is down still")
}

// TestUDRefused: what a UD queue pair does not do.
func TestUDRefused(t *testing.T) {
	p := started(t, Config{})
	a := newUD(p, nil)
	h := a.ah(a)
	send := func(w uabi.SendWR, g uabi.SGE) syscall.Errno {
		_, err := a.send(w, g)
		return errnoOf(t, err)
	}
	ok := udTo(signaled(uabi.WRSend, 1), h, a.qp.QPN, udKey)
	assert.Equal(t, syscall.EINVAL, send(ok, a.sge(0, udwire.MTU+1)))
	assert.Equal(t, syscall.EINVAL, send(udTo(signaled(uabi.WRRDMAWrite, 1), h, a.qp.QPN, udKey), a.sge(0, 1)))
	assert.Equal(t, syscall.EINVAL, send(udTo(signaled(uabi.WRSend, 1), h+1, a.qp.QPN, udKey), a.sge(0, 1)))
	other := newUD(p, nil)
	assert.Equal(t, syscall.EINVAL, send(udTo(signaled(uabi.WRSend, 1), other.ah(a), a.qp.QPN, udKey), a.sge(0, 1)), "of another domain")
	require.NoError(t, other.to(uabi.QPSErr))
	require.NoError(t, other.to(uabi.QPSReset))
	_, err := other.send(ok, other.sge(0, 1))
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err), "in RESET")
	for name, attr := range map[string]uabi.AHAttr{
		"no GID":    {PortNum: 1},
		"multicast": {PortNum: 1, IsGlobal: 1, GRH: uabi.GlobalRoute{DGID: netip.MustParseAddr("224.0.0.1").As16()}},
		"port":      {PortNum: 2, IsGlobal: 1, GRH: uabi.GlobalRoute{DGID: a.gid()}},
		"index":     {PortNum: 1, IsGlobal: 1, GRH: uabi.GlobalRoute{DGID: a.gid(), SGIDIndex: 1}},
	} {
		_, err := write[uabi.CreateAHResp](p, uabi.CmdCreateAH, &uabi.CreateAH{PDHandle: a.pd, Attr: attr})
		assert.Equal(t, syscall.EINVAL, errnoOf(t, err), name)
	}
	_, err = write[uabi.None](p, uabi.CmdDestroyAH, &uabi.DestroyAH{AHHandle: 99})
	assert.Equal(t, syscall.ENOENT, errnoOf(t, err))
}

// gate is a feeder's socket that takes the first datagram only when somebody waits for what is under way: it is the lock of
// the condition that drain waits for, too.
type gate struct {
	sender
	sync.Locker
	waiting, opened sync.Once
	waits           chan struct{}
	t               *testing.T
}

// Unlock is called by sync.Cond.Wait, when it is on the list of those to be woken.
func (g *gate) Unlock() {
	g.waiting.Do(func() { close(g.waits) })
	g.Locker.Unlock()
}

func (g *gate) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	g.opened.Do(func() {
		select {
		case <-g.waits:
		case <-time.After(10 * time.Second):
			g.t.Error("the queue pair is destroyed, and nobody waits for what it has sent")
		}
	})
	return g.sender.WriteToUDPAddrPort(b, to)
}

// TestUDLeaves: what has completed is on the network when its queue pair is destroyed.
func TestUDLeaves(t *testing.T) {
	p := started(t, Config{})
	b := newUD(p, nil)
	const n = 32
	for i := range n {
		_, err := b.recv(uint64(i), b.sge(0, 64))
		require.NoError(t, err)
	}
	a := newUD(p, nil)
	u := a.verbs().ud
	u.mu.Lock()
	g := &gate{sender: u.feeder.conns[0], Locker: &u.mu, waits: make(chan struct{}), t: t}
	u.feeder.conns[0], u.left.L = g, g
	u.mu.Unlock()
	h := a.ah(b)
	for i := range n {
		a.posted(udTo(signaled(uabi.WRSend, i), h, b.qp.QPN, udKey), a.sge(0, 8))
	}
	a.wait(n)
	must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: a.qp.QPHandle})
	b.wait(n)
}

// TestUDResize: a completion queue is not cut below what the datagrams posted need, though nobody has waited for them.
func TestUDResize(t *testing.T) {
	p := started(t, Config{})
	a := newUD(p, nil)
	h := a.ah(a)
	resize := func(n uint32) error {
		_, err := write[uabi.ResizeCQResp](p, uabi.CmdResizeCQ, &uabi.ResizeCQ{CQHandle: a.cq, CQE: n})
		return err
	}
	const n = 6
	for round := range 50 {
		for i := range n {
			a.posted(udTo(signaled(uabi.WRSend, i), h, a.qp.QPN, udKey), a.sge(0, 1024))
		}
		require.Equal(t, syscall.EINVAL, errnoOf(t, resize(n-1)), "round %d", round)
		a.wait(n)
		require.NoError(t, resize(n))
	}
}
