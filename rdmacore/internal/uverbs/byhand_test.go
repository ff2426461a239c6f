//go:build linux && (amd64 || arm64)

package uverbs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

var (
	addr1 = netip.MustParseAddr("127.0.0.1")
	addr2 = netip.MustParseAddr("127.0.0.2")
)

// at is a side of a device of its own, as another process has it.
func at(t testing.TB, a netip.Addr) *side {
	t.Helper()
	return newSide(started(t, Config{Addr: a, CRC: true}), allRights)
}

// handle, gid and number of a side are what programs tell each other.
func (s *side) gid() uabi.GID { return s.dev.config.Addr.As16() }

// rtr changes to RTR, with the address of a peer.
func (s *side) rtr(gid uabi.GID, dest uint32) error {
	m := s.whole(uabi.QPSRTR)
	m.DestQPNum, m.Dest.DGID = dest, gid
	return s.modify(m)
}

// raise takes a side from RESET to RTS, towards a peer, and returns at once.
func (s *side) raise(peer *side) {
	s.t.Helper()
	require.NoError(s.t, s.to(uabi.QPSInit))
	require.NoError(s.t, s.rtr(peer.gid(), peer.qp.QPN))
	require.NoError(s.t, s.to(uabi.QPSRTS))
}

// talk sends a message each way, which has to arrive.
func talk(t *testing.T, a, b *side) {
	t.Helper()
	for n, s := range [][2]*side{{a, b}, {b, a}} {
		from, to := s[0], s[1]
		_, err := to.recv(7, to.sge(1024, 64))
		require.NoError(t, err)
		text := []byte(fmt.Sprint("message ", n))
		from.fill(0, text)
		from.posted(signaled(uabi.WRSend, 8), from.sge(0, len(text)))
		from.one()
		assert.EqualValues(t, len(text), to.one().ByteLen)
		assert.Equal(t, text, to.read(1024, len(text)))
	}
}

// TestByHand in either order of the addresses, and of the changes to RTR.
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, next netip.Addr
	}{
		{"two hosts, the dialer first", addr1, addr2},
		{"two hosts, the dialer last", addr2, addr1},
		{"one host", addr1, addr1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := at(t, c.first), at(t, c.next)
			a.raise(b)
			b.raise(a)
			talk(t, a, b)
		})
	}
}

func TestByHandIPv6(t *testing.T) {
	a, b := at(t, netip.IPv6Loopback()), at(t, netip.IPv6Loopback())
	b.raise(a)
	a.raise(b)
	talk(t, a, b)
}

// TestByHandInOneProcess: both ends, and many pairs beside each other that come up in any order.
func TestByHandInOneProcess(t *testing.T) {
	p := started(t, Config{Addr: addr1})
	var all [][2]*side
	for range 16 {
		all = append(all, [2]*side{newSide(p, allRights), newSide(p, allRights)})
	}
	for _, s := range all {
		s[0].raise(s[1])
	}
	for _, s := range all {
		s[1].raise(s[0])
	}
	for _, s := range all {
		talk(t, s[0], s[1])
	}
}

// TestByHandSpeaksRFC7306: the two agree on it.
func TestByHandSpeaksRFC7306(t *testing.T) {
	a, b := at(t, addr1), at(t, addr2)
	a.raise(b)
	b.raise(a)
	_, err := b.recv(1, b.sge(0, 8))
	require.NoError(t, err)
	a.posted(signaled(uabi.WRSendWithImm, 2))
	a.one()
	assert.NotZero(t, b.one().WCFlags&uabi.WCWithImm)
}

// TestByHandSendImmediate: a Send with both payload and Immediate Data is one completion.
func TestByHandSendImmediate(t *testing.T) {
	a, b := at(t, addr1), at(t, addr2)
	a.raise(b)
	b.raise(a)
	for i := range uint64(3) {
		_, err := b.recv(i, b.sge(0, 64))
		require.NoError(t, err)
	}
	a.fill(0, []byte("payload"))
	for i, inline := range []uint32{0, uabi.SendInline} {
		w := signaled(uabi.WRSendWithImm, 2)
		w.Ex, w.SendFlags = [4]byte{0xca, 0xfe, 0, byte(i)}, w.SendFlags|inline
		a.posted(w, a.sge(0, 7))
		assert.EqualValues(t, uabi.WCSend, a.one().Opcode)
		c := b.one()
		assert.Equal(t, [3]uint32{uabi.WCRecv, uabi.WCWithImm, 7}, [3]uint32{c.Opcode, c.WCFlags, c.ByteLen})
		assert.Equal(t, w.Ex, c.Ex)
		assert.Equal(t, "payload", string(b.read(0, 7)))
	}
	a.posted(signaled(uabi.WRSend, 3), a.sge(0, 7))
	assert.Zero(t, b.one().WCFlags, "a plain one brings none")
}

// TestDisconnectEarly: a change to ERR may come between RTS and the link's own word of it, and is not lost.
func TestDisconnectEarly(t *testing.T) {
	l, closed := &link{}, make(chan struct{})
	l.Disconnect()
	l.closes(func() { close(closed) })
	<-closed
	l.Disconnect()
}

// TestByHandToItself: a queue pair that is its own peer.
func TestByHandToItself(t *testing.T) {
	s := at(t, addr1)
	s.raise(s)
	_, err := s.recv(1, s.sge(4096, 64))
	require.NoError(t, err)
	s.fill(0, []byte("to myself"))
	s.posted(signaled(uabi.WRSend, 2), s.sge(0, 9))
	for _, w := range s.wait(2) {
		assert.EqualValues(t, uabi.WCSuccess, w.Status, "%+v", w)
	}
	assert.Equal(t, "to myself", string(s.read(4096, 9)))
	s.posted(rdma(signaled(uabi.WRRDMARead, 3), s, 0), s.sge(8192, 9))
	s.one()
	assert.Equal(t, "to myself", string(s.read(8192, 9)))
	require.NoError(t, s.to(uabi.QPSErr))
}

// TestByHandToItselfPlaced: of one with the RoCE presentation a Write completes when it is placed, and as many Reads are under way as of others.
func TestByHandToItselfPlaced(t *testing.T) {
	s := newSide(started(t, Config{Addr: addr1, CRC: true, RoCE: true}), allRights)
	s.raise(s)
	for i := range 100 {
		s.fill(0, []byte{byte(i + 1)})
		s.posted(rdma(signaled(uabi.WRRDMAWrite, 1), s, 8192), s.sge(0, 4096))
		require.EqualValues(t, uabi.WCSuccess, s.one().Status)
		require.Equal(t, byte(i+1), s.read(8192, 1)[0])
	}
	a, err := s.verbs().Verbs().Query()
	require.NoError(t, err)
	assert.True(t, a.PlacedWrites)
	assert.Equal(t, maxReads, a.ORD)
}

// TestByHandRefusals: what names no queue pair, and the same twice.
func TestByHandRefusals(t *testing.T) {
	a, b := at(t, addr1), at(t, addr2)
	require.NoError(t, a.to(uabi.QPSInit))
	for name, err := range map[string]error{
		"no GID":           a.rtr(uabi.GID{}, b.qp.QPN),
		"IPv4's wildcard":  a.rtr(netip.IPv4Unspecified().As16(), b.qp.QPN),
		"a multicast GID":  a.rtr(netip.MustParseAddr("ff02::1").As16(), b.qp.QPN),
		"no port":          a.rtr(b.gid(), 17),
		"more than 24 bit": a.rtr(b.gid(), 1<<24|b.qp.QPN),
	} {
		assert.Equal(t, syscall.EINVAL, errnoOf(t, err), name)
	}
	require.NoError(t, a.rtr(b.gid(), b.qp.QPN))
	assert.Equal(t, syscall.EINVAL, errnoOf(t, a.rtr(b.gid(), b.qp.QPN)), "the same twice")
	assert.Equal(t, syscall.EINVAL, errnoOf(t, a.verbs().Take(&link{})), "rdma_cm as well")
	b.raise(a)
	require.NoError(t, a.to(uabi.QPSRTS))
	talk(t, a, b)
}

// TestByHandGivenUp: RESET, ERR and DESTROY end what is under way, without an event, and after RESET the
// queue pair can have another peer.
func TestByHandGivenUp(t *testing.T) {
	a, b, c := at(t, addr2), at(t, addr1), at(t, addr1)
	a.raise(b) // b does not come
	require.NoError(t, a.to(uabi.QPSReset))
	assert.Equal(t, verbs.StateIdle, a.verbs().Verbs().State())
	a.raise(c)
	c.raise(a)
	talk(t, a, c)

	d := at(t, addr2)
	d.raise(b)
	require.NoError(t, d.to(uabi.QPSErr))
	assert.Equal(t, verbs.StateError, d.verbs().Verbs().State())
	require.NoError(t, d.to(uabi.QPSReset))
	d.raise(b)
	must[uabi.DestroyQPResp](d.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: d.qp.QPHandle})
}

// A stranger dials a queue pair's port with private data of its own.
func stranger(t *testing.T, from netip.Addr, to *side, private []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q := at(t, from)
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	nc, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(to.dev.config.Addr, uint16(to.qp.QPN>>8)).String())
	require.NoError(t, err)
	defer nc.Close()
	_, err = cm.Connect(ctx, nc, q.verbs().Verbs(), cm.Config{Model: cm.PeerToPeer, Extensions: true, PrivateData: private})
	return err
}

// TestByHandStrangers: who is not the peer that RTR named is rejected, and harms nobody.
func TestByHandStrangers(t *testing.T) {
	a, b := at(t, addr2), at(t, addr1)
	a.raise(b)
	var rejected *cm.RejectedError
	for name, private := range map[string][]byte{
		"no private data":           nil,
		"too short":                 []byte("SRNQ"),
		"too long":                  append(handData(a.qp.QPN, b.qp.QPN, false), 0),
		"another magic":             append([]byte("SRNX"), handData(a.qp.QPN, b.qp.QPN, false)[4:]...),
		"a number that nobody has":  handData(a.qp.QPN+1, b.qp.QPN, false),
		"a port of somebody else's": handData(b.qp.QPN, a.qp.QPN, false),
		"more than a number has":    handData(1<<24|a.qp.QPN, b.qp.QPN, false),
		"another queue pair":        handData(a.qp.QPN, b.qp.QPN+1, false),
	} {
		require.ErrorAs(t, stranger(t, addr1, a, private), &rejected, name)
	}
	three := netip.MustParseAddr("127.0.0.3")
	require.ErrorAs(t, stranger(t, three, a, handData(a.qp.QPN, b.qp.QPN, false)), &rejected, "the right numbers from another address")
	b.raise(a)
	talk(t, a, b)
	require.ErrorAs(t, stranger(t, addr1, a, handData(a.qp.QPN, b.qp.QPN, false)), &rejected, "again")
}

// TestByHandEarly: a Request that comes before RTR waits, unless 256 do; a later one of its address takes its place.
func TestByHandEarly(t *testing.T) {
	a, b := at(t, addr2), at(t, addr1)
	b.raise(a)
	awaitEarly(t, a.dev, 1)
	again := make(chan error, 1)
	go func() { again <- stranger(t, addr1, a, handData(a.qp.QPN, 1, false)) }()
	var rejected *cm.RejectedError
	require.ErrorAs(t, <-again, &rejected, "b has asked again")
	assert.Equal(t, sayNewer, string(rejected.PrivateData))
	require.NoError(t, b.to(uabi.QPSErr))
	require.NoError(t, a.to(uabi.QPSInit))
	c := at(t, addr1)
	require.NoError(t, a.rtr(c.gid(), c.qp.QPN)) // and b's is none of c's
	require.NoError(t, a.to(uabi.QPSRTS))
	c.raise(a)
	talk(t, a, c)

	d := at(t, addr2)
	d.dev.hand.mu.Lock()
	d.dev.hand.early = maxEarly
	d.dev.hand.mu.Unlock()
	require.ErrorAs(t, stranger(t, addr1, d, handData(d.qp.QPN, 1, false)), &rejected, "there is no room")
	d.dev.hand.mu.Lock()
	d.dev.hand.early = 0
	d.dev.hand.mu.Unlock()
}

// TestByHandGone: a Request whose peer has given up before RTR is not taken for its peer's, which asks again.
func TestByHandGone(t *testing.T) {
	a, b := at(t, addr2), at(t, addr1)
	b.raise(a)
	awaitEarly(t, a.dev, 1)
	require.NoError(t, b.to(uabi.QPSReset))
	a.raise(b)
	b.raise(a)
	talk(t, a, b)
}

// awaitEarly waits until so many Requests wait for RTR.
func awaitEarly(t *testing.T, d *Device, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // there is no event to wait for
		d.hand.mu.Lock()
		have := d.hand.early
		d.hand.mu.Unlock()
		if have == n {
			return
		}
		require.True(t, time.Now().Before(end), "%d wait", have)
	}
}

// TestNumbers: 256 queue pairs share a port, which is given up with the last of them.
func TestNumbers(t *testing.T) {
	var fds atomic.Int32
	p := open(t, Config{Addr: addr1, Own: func(int) { fds.Add(1) }})
	d := p.dev
	qps := make([]*QP, 300)
	ports, numbers := map[uint32]int{}, map[uint32]bool{}
	for i := range qps {
		qps[i] = &QP{}
		n, err := d.newQPN(qps[i])
		require.NoError(t, err)
		require.Zero(t, n>>24)
		require.False(t, numbers[n])
		numbers[n], qps[i].qpn = true, n
		ports[n>>8]++
	}
	assert.Len(t, ports, 2)
	assert.EqualValues(t, 2, fds.Load(), "Own is told of the listeners")
	d.freeQPN(qps[0])
	d.freeQPN(qps[0]) // of one that has none any more
	n, err := d.newQPN(qps[0])
	require.NoError(t, err)
	assert.Contains(t, ports, n>>8)
	qps[0].qpn = n
	for _, q := range qps {
		d.freeQPN(q)
	}
	assert.Empty(t, d.hand.ports)
	for port := range ports {
		_, err := net.Dial("tcp", netip.AddrPortFrom(addr1, uint16(port)).String())
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				q := &QP{}
				n, err := d.newQPN(q)
				assert.NoError(t, err)
				q.qpn = n
				d.freeQPN(q)
			}
		})
	}
	wg.Wait()
	assert.Empty(t, d.hand.ports)
}

// TestNoAddress: a device whose address this machine does not have says so at the first queue pair.
func TestNoAddress(t *testing.T) {
	p := started(t, Config{Addr: netip.MustParseAddr("192.0.2.1")})
	pd, cq := p.pd(), p.cq(8, -1)
	_, err := write[uabi.CreateQPResp](p, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: config(pd, cq, cq)})
	assert.Equal(t, syscall.EADDRNOTAVAIL, errnoOf(t, err))
}

func FuzzHandData(f *testing.F) {
	f.Add(handData(0xc35000, 0xffffff, false))
	f.Add(handData(0xc35000, 0xffffff, true))
	f.Add([]byte("SRNQ"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if dest, src, uc, ok := parseHandData(b); ok {
			assert.Equal(t, b, handData(dest, src, uc))
		}
	})
}
