//go:build linux && (amd64 || arm64)

package uverbs

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// sayings are the lines that a device says.
type sayings struct {
	mu             sync.Mutex
	report, strace []string
}

func (l *sayings) config(a netip.Addr, roce bool) Config {
	add := func(to *[]string) func(string) {
		return func(s string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			*to = append(*to, s)
		}
	}
	return Config{Addr: a, CRC: true, RoCE: roce, Report: add(&l.report), Trace: add(&l.strace)}
}

// with are the lines of a list that have a text.
func (l *sayings) with(list *[]string, text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range *list {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// ucSide is a side with a queue pair of UC.
func ucSide(t testing.TB, c Config) *side {
	t.Helper()
	s := newSide(started(t, c), allRights)
	s.toUC(0)
	return s
}

// toUC makes another queue pair the side's, of UC.
func (s *side) toUC(srq uint32) {
	s.t.Helper()
	c := config(s.pd, s.cq, s.cq)
	c.QPType = uabi.QPTUC
	if srq != 0 {
		c.IsSRQ, c.SRQHandle = 1, srq
	}
	s.qp = must[uabi.CreateQPResp](s.program, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: c})
}

// ucPair is two connected queue pairs of UC, and what their devices say.
func ucPair(t testing.TB, roce bool) (a, b *side, said *sayings) {
	t.Helper()
	said = &sayings{}
	a, b = ucSide(t, Config{Addr: addr1, CRC: true, RoCE: roce}), ucSide(t, said.config(addr2, roce))
	a.raise(b)
	b.raise(a)
	return a, b, said
}

func TestUC(t *testing.T) {
	for _, roce := range []bool{false, true} {
		a, b, _ := ucPair(t, roce)
		talk(t, a, b)
		a.fill(0, []byte("unreliable"))
		for i, c := range []struct {
			op, flags uint32
			octets    int
			recv      bool
			want      uabi.WC
		}{
			{op: uabi.WRSend, octets: 10, recv: true, want: uabi.WC{Opcode: uabi.WCRecv, ByteLen: 10}},
			{op: uabi.WRSend, flags: uabi.SendInline, octets: 10, recv: true, want: uabi.WC{Opcode: uabi.WCRecv, ByteLen: 10}},
			{op: uabi.WRSendWithImm, octets: 10, recv: true, want: uabi.WC{Opcode: uabi.WCRecv, ByteLen: 10, WCFlags: uabi.WCWithImm}},
			{op: uabi.WRSendWithImm, octets: 0, recv: true, want: uabi.WC{Opcode: uabi.WCRecv, WCFlags: uabi.WCWithImm}},
			{op: uabi.WRRDMAWrite, octets: 10},
			{op: uabi.WRRDMAWriteWithImm, octets: 10, recv: true, want: uabi.WC{Opcode: uabi.WCRecvRDMAWithImm, ByteLen: 10, WCFlags: uabi.WCWithImm}},
			{op: uabi.WRRDMAWriteWithImm, octets: 0, recv: true, want: uabi.WC{Opcode: uabi.WCRecvRDMAWithImm, WCFlags: uabi.WCWithImm}},
		} {
			if c.recv {
				_, err := b.recv(1, b.sge(4096, 64))
				require.NoError(t, err)
			}
			w := rdma(signaled(int(c.op), i), b, 8192)
			w.Ex, w.SendFlags = [4]byte{1, 2, 3, byte(i)}, w.SendFlags|c.flags
			var list []uabi.SGE
			if c.octets > 0 {
				list = append(list, a.sge(0, c.octets))
			}
			a.posted(w, list...)
			assert.EqualValues(t, i, a.one().WRID)
			if !c.recv {
				require.Eventually(t, func() bool { return string(b.read(8192, 10)) == "unreliable" }, time.Minute, time.Millisecond)
				continue
			}
			got := b.one()
			assert.Equal(t, c.want.Opcode, got.Opcode, "%+v", c)
			assert.Equal(t, c.want.ByteLen, got.ByteLen, "%+v", c)
			assert.Equal(t, c.want.WCFlags, got.WCFlags, "%+v", c)
			if got.WCFlags != 0 {
				assert.Equal(t, w.Ex, got.Ex, "%+v", c)
			}
		}
	}
}

// TestUCDrops: what has no place is dropped, silently to the sender, and the next message is not.
func TestUCDrops(t *testing.T) {
	a, b, said := ucPair(t, true)
	talk(t, a, b)
	a.fill(0, make([]byte, sideBytes))
	bad := func(w uabi.SendWR) uabi.SendWR { w.CompareAdd++; return w }
	n := 0
	for _, c := range []struct {
		name   string
		post   uabi.SendWR
		octets int
		reason string
	}{
		{"too long", signaled(uabi.WRSend, 1), 65, "room for 64"},
		{"too long, in many segments", signaled(uabi.WRSend, 1), sideBytes, "room for 64"},
		{"rkey", bad(rdma(signaled(uabi.WRRDMAWrite, 1), b, 0)), 8, "rkey"},
		{"rkey, with immediate data", bad(rdma(signaled(uabi.WRRDMAWriteWithImm, 1), b, 0)), 8, "rkey"},
		{"bounds", rdma(signaled(uabi.WRRDMAWrite, 1), b, sideBytes-4), 8, "rkey"},
		{"invalidation", signaled(uabi.WRSendWithInv, 1), 8, "rkey"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := b.recv(7, b.sge(1024, 64))
			require.NoError(t, err)
			a.posted(c.post, a.sge(0, c.octets))
			a.one()
			n++
			require.Eventually(t, func() bool { return said.with(&said.strace, "dropped(") == n }, time.Minute, time.Millisecond)
			assert.Positive(t, said.with(&said.strace, c.reason), said.strace)
			assert.EqualValues(t, n, b.verbs().Verbs().Stats().Dropped)
			assert.Empty(t, b.poll(1))
			a.posted(signaled(uabi.WRSend, 2), a.sge(0, 3))
			a.one()
			assert.EqualValues(t, 3, b.one().ByteLen)
		})
	}
	a.posted(signaled(uabi.WRSend, 3), a.sge(0, 8))
	a.one()
	require.Eventually(t, func() bool { return said.with(&said.strace, "no receive is posted for it") == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, 1, said.with(&said.report, "has dropped a message"), "one line, whatever follows")
	talk(t, a, b)
	assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
	assert.EqualValues(t, uabi.QPSRTS, b.query().QPState)
}

// TestUCWithoutRight: the rights of the queue pair count too.
func TestUCWithoutRight(t *testing.T) {
	a, b, said := ucPair(t, false)
	talk(t, a, b)
	require.NoError(t, b.modify(uabi.ModifyQP{AttrMask: uabi.QPAccessFlags, QPAccessFlags: uabi.AccessRemoteRead}))
	a.posted(rdma(signaled(uabi.WRRDMAWrite, 1), b, 0), a.sge(0, 8))
	a.one()
	require.Eventually(t, func() bool { return said.with(&said.strace, "IBV_ACCESS_REMOTE_WRITE") >= 1 }, time.Minute, time.Millisecond)
	talk(t, a, b)
}

// TestUCShared: a receive of a shared queue that was taken for a message that did not fit says so.
func TestUCShared(t *testing.T) {
	a, b := ucSide(t, Config{Addr: addr1}), newSide(started(t, Config{Addr: addr2}), allRights)
	b.shared = must[uabi.CreateSRQResp](b.program, uabi.CmdCreateSRQ, &uabi.CreateSRQ{PDHandle: b.pd, MaxWR: 8, MaxSGE: 1}).SRQHandle
	b.toUC(b.shared)
	a.raise(b)
	b.raise(a)
	post := func(id uint64) {
		w, g := uabi.RecvWR{WRID: id, NumSGE: 1}, b.sge(0, 4)
		_, err := write[uabi.PostResp](b.program, uabi.CmdPostSRQRecv, &uabi.PostSRQRecv{
			SRQHandle: b.shared, WRCount: 1, SGECount: 1, WQESize: uint32(size[uabi.RecvWR]()),
		}, umem.Bytes(&w), umem.Bytes(&g))
		require.NoError(t, err)
	}
	post(1)
	post(2)
	for _, n := range []int{8, 4} {
		a.posted(signaled(uabi.WRSend, 1), a.sge(0, n))
		a.one()
	}
	got := b.wait(2)
	assert.EqualValues(t, uabi.WCLocLenErr, got[0].Status, "%+v", got)
	assert.EqualValues(t, uabi.WCSuccess, got[1].Status)
	assert.EqualValues(t, uabi.QPSRTS, b.query().QPState)
}

// TestUCPeerGone: nobody tells a sender that its peer is gone, and its receives stay.
func TestUCPeerGone(t *testing.T) {
	for _, roce := range []bool{false, true} {
		a, b, _ := ucPair(t, roce)
		talk(t, a, b)
		_, err := a.recv(9, a.sge(0, 8))
		require.NoError(t, err)
		must[uabi.DestroyQPResp](b.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: b.qp.QPHandle})
		for i := range 500 {
			a.posted(rdma(signaled(uabi.WRRDMAWrite, i), b, 0), a.sge(0, 4096))
			assert.EqualValues(t, i, a.one().WRID)
		}
		assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
		assert.Empty(t, a.poll(1))
		w := a.sge(0, 8)
		w.Lkey++
		bad, behind := signaled(uabi.WRSend, 5), signaled(uabi.WRSend, 6)
		bad.NumSGE = 1
		_, err = a.together([]uabi.SendWR{bad, behind}, w)
		require.NoError(t, err)
		status := map[uint64]uint32{}
		for _, w := range a.wait(3) {
			status[w.WRID] = w.Status
		}
		want := map[uint64]uint32{5: uabi.WCLocProtErr, 6: uabi.WCWRFlushErr, 9: uabi.WCWRFlushErr}
		assert.Equal(t, want, status, "an error of the program's own ends it")
		assert.EqualValues(t, uabi.QPSErr, a.query().QPState)
	}
}

// TestUCNobody: where nobody answers, requests complete all the same, and the queue pair can be reset and used.
func TestUCNobody(t *testing.T) {
	said := &sayings{}
	a, b := ucSide(t, said.config(addr1, false)), ucSide(t, Config{Addr: addr2, CRC: true})
	a.dev.hand.least.Store(int64(50 * time.Millisecond))
	a.raise(b)
	for i := range 3 {
		a.posted(signaled(uabi.WRSend, i), a.sge(0, 8))
	}
	for i := range 3 {
		assert.EqualValues(t, i, a.one().WRID)
	}
	assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
	assert.Equal(t, 1, said.with(&said.report, "does not reach"))
	require.NoError(t, a.to(uabi.QPSReset))
	a.dev.hand.least.Store(0)
	c := ucSide(t, Config{Addr: addr2, CRC: true}) // at b what a has given up still waits
	a.raise(c)
	c.raise(a)
	talk(t, a, c)
}

// TestUCAndRC: a queue pair of one type does not connect with one of the other.
func TestUCAndRC(t *testing.T) {
	for _, dialer := range []netip.Addr{addr1, netip.MustParseAddr("127.0.0.3")} {
		a, b := ucSide(t, Config{Addr: dialer, CRC: true}), at(t, addr2)
		a.dev.hand.least.Store(int64(100 * time.Millisecond))
		b.dev.hand.least.Store(int64(100 * time.Millisecond))
		a.raise(b)
		b.raise(a)
		a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
		a.one()
		require.NoError(t, b.modify(uabi.ModifyQP{AttrMask: uabi.QPTimeout | uabi.QPRetryCnt, Timeout: 1}))
		b.posted(signaled(uabi.WRSend, 1), b.sge(0, 8))
		assert.EqualValues(t, uabi.WCRetryExcErr, b.wait(1)[0].Status)
	}
}

// TestUCRefuses what has an answer, and with the RoCE presentation the attributes that are for answers.
func TestUCRefuses(t *testing.T) {
	a, b, _ := ucPair(t, true)
	talk(t, a, b)
	for _, w := range []uabi.SendWR{
		rdma(signaled(uabi.WRRDMARead, 1), b, 0), rdma(signaled(uabi.WRAtomicFetchAndAdd, 1), b, 0), rdma(signaled(uabi.WRAtomicCmpAndSwp, 1), b, 0),
	} {
		r, err := a.send(w, a.sge(0, 8))
		assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
		assert.EqualValues(t, 1, r.BadWR)
	}
	talk(t, a, b)
	assert.Equal(t, syscall.EINVAL, errnoOf(t, a.modify(uabi.ModifyQP{AttrMask: uabi.QPMinRNRTimer})))
	a.toUC(0)
	m := a.whole(uabi.QPSInit)
	require.NoError(t, a.modify(m))
	m = a.whole(uabi.QPSRTR)
	m.DestQPNum, m.Dest.DGID = b.qp.QPN, b.gid()
	m.AttrMask |= uabi.QPMaxDestRdAtomic
	assert.Equal(t, syscall.EINVAL, errnoOf(t, a.modify(m)))
	m.AttrMask &^= uabi.QPMaxDestRdAtomic
	require.NoError(t, a.modify(m))
	m = a.whole(uabi.QPSRTS)
	m.AttrMask |= uabi.QPTimeout | uabi.QPRetryCnt
	assert.Equal(t, syscall.EINVAL, errnoOf(t, a.modify(m)))
	for _, c := range []struct {
		ops  uint64
		want syscall.Errno
	}{{uabi.QPExKnown &^ uabi.QPExReadAndAtomics, 0}, {1 << 4, syscall.EOPNOTSUPP}, {1 << 5, syscall.EOPNOTSUPP}} {
		q := uabi.CreateQPDriver{}
		q.QPType, q.AttrMask, q.SendOps = uabi.QPTUC, uabi.QPAttrPD|uabi.QPAttrSendOps, c.ops
		assert.Equal(t, c.want, errnoOf(t, extendedQP(&q)))
	}
}

// TestUCGarbage: a peer that breaks the protocol ends what it says, and nothing else.
func TestUCGarbage(t *testing.T) {
	a, b := ucSide(t, Config{Addr: addr2, CRC: true}), ucSide(t, Config{Addr: addr1, CRC: true})
	a.raise(b)
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr1, 0))}
	nc, err := d.Dial("tcp", netip.AddrPortFrom(addr2, uint16(a.qp.QPN>>8)).String())
	require.NoError(t, err)
	defer nc.Close()
	private := append([]byte("RFC7306\x7f"), handData(a.qp.QPN, b.qp.QPN, true)...)
	p, _, err := rawpeer.Initiate(nc, mpa.Startup{Rev: 2, CRC: true, Enhanced: true, PrivateData: private})
	require.NoError(t, err)
	require.NoError(t, p.Raw(make([]byte, 4096)))
	require.Eventually(t, func() bool { return a.verbs().Verbs().State().String() == "RTS" }, time.Minute, time.Millisecond)
	for i := range 50 {
		a.posted(signaled(uabi.WRSend, i), a.sge(0, 4096))
		a.one()
	}
	assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
}
