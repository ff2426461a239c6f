//go:build linux && (amd64 || arm64)

package uverbs

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// told is what a device has told its user.
type told struct {
	mu   sync.Mutex
	text []string
}

func (s *told) report(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, text)
}

func (s *told) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.text...)
}

// hasty is at, of a device that waits no longer than the attributes say.
func hasty(t testing.TB, a netip.Addr) (*side, *told) {
	t.Helper()
	said := &told{}
	p := open(t, Config{Addr: a, CRC: true, Report: said.report})
	p.dev.hand.least.Store(int64(time.Nanosecond))
	p.context()
	return newSide(p, allRights), said
}

// raiseTo is raise towards any GID and number, with a timeout and retries.
func (s *side) raiseTo(gid uabi.GID, dest uint32, timeout, retries uint8) {
	s.t.Helper()
	require.NoError(s.t, s.to(uabi.QPSInit))
	require.NoError(s.t, s.rtr(gid, dest))
	require.NoError(s.t, s.modify(uabi.ModifyQP{
		AttrMask: uabi.QPState | uabi.QPTimeout | uabi.QPRetryCnt, QPState: uabi.QPSRTS, Timeout: timeout, RetryCnt: retries,
	}))
}

// quiet reports that there is no asynchronous event.
func (p *program) quiet() bool {
	f := []unix.PollFd{{Fd: int32(p.asyncFD), Events: unix.POLLIN}}
	n, err := unix.Poll(f, 0)
	return n == 0 && err == nil
}

// unreachable posts a receive and two Sends, and sees them end as an adapter has it.
func (s *side) unreachable() {
	s.t.Helper()
	_, err := s.recv(1, s.sge(0, 8))
	require.NoError(s.t, err)
	s.posted(uabi.SendWR{WRID: 2, Opcode: uabi.WRSend}, s.sge(0, 8)) // unsignaled
	s.posted(signaled(uabi.WRSend, 3), s.sge(0, 8))
	got := map[uint64]uint32{}
	for _, w := range s.wait(3) {
		got[w.WRID] = w.Status
	}
	assert.Equal(s.t, map[uint64]uint32{1: uabi.WCWRFlushErr, 2: uabi.WCRetryExcErr, 3: uabi.WCWRFlushErr}, got)
	assert.EqualValues(s.t, uabi.QPSErr, s.query().QPState)
	assert.True(s.t, s.quiet(), "an adapter has no event for it")
}

const short = 14 // 67 ms

// TestByHandWrong: a program that was told a wrong GID or number hears of it, whichever of the two would dial, and
// the other end, which has the right ones, waits on.
func TestByHandWrong(t *testing.T) {
	other := netip.MustParseAddr("127.0.0.3")
	for name, c := range map[string]struct {
		mine, peers netip.Addr
		gid         netip.Addr
		off         int // from the peer's number
		want        string
	}{
		"the number of nobody, dialed":       {addr1, addr2, addr2, 7, "no queue pair there has this number"},
		"a port of nobody, dialed":           {addr1, addr2, addr2, -256, "nobody there has a queue pair of such a number"},
		"the number of nobody, waited for":   {addr2, addr1, addr1, 7, "instead 127.0.0.1, queue pair"},
		"another's address, that of nobody":  {addr1, addr2, other, 0, "nobody there has a queue pair of such a number"},
		"another's address, that waits":      {addr2, addr1, netip.MustParseAddr("127.0.0.0"), 0, "instead 127.0.0.1, queue pair"},
		"another's address, which it dials":  {addr2, addr1, other, 0, "instead 127.0.0.1, queue pair"},
		"the number of nobody, on one host+": {addr1, addr1, addr1, 7, ""},
		"the number of nobody, on one host-": {addr1, addr1, addr1, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, said := hasty(t, c.mine)
			b, innocent := hasty(t, c.peers)
			_, err := b.recv(1, b.sge(0, 8))
			require.NoError(t, err)
			b.raise(a)
			a.raiseTo(c.gid.As16(), uint32(int(b.qp.QPN)+c.off), short, 3)
			begun := time.Now()
			a.unreachable()
			assert.GreaterOrEqual(t, time.Since(begun), 4*67*time.Millisecond)
			require.Len(t, said.all(), 1)
			assert.Contains(t, said.all()[0], c.want)
			assert.Empty(t, b.poll(16))
			assert.Equal(t, verbs.StateIdle, b.verbs().Verbs().State())
			assert.Empty(t, innocent.all())
			require.NoError(t, a.to(uabi.QPSReset))
			a.raise(b)
			b.posted(signaled(uabi.WRSend, 4), b.sge(0, 8))
			_, err = a.recv(5, a.sge(0, 8))
			require.NoError(t, err)
			b.one()
			assert.EqualValues(t, 5, a.one().WRID, "with the right ones it connects, though much was rejected before")
		})
	}
}

// TestByHandNobodyComes: the peer's program does not change its own to RTR, whichever would dial.
func TestByHandNobodyComes(t *testing.T) {
	for _, c := range [][2]netip.Addr{{addr1, addr2}, {addr2, addr1}} {
		a, said := hasty(t, c[0])
		b := at(t, c[1])
		a.raiseTo(b.gid(), b.qp.QPN, short, 0)
		a.unreachable()
		require.Len(t, said.all(), 1)
		assert.Contains(t, said.all()[0], "has the peer's program changed its own to RTR?")
	}
}

// TestByHandTooLate: the peer's Request that comes when this side has given up is rejected, as any that nobody
// waits for.
func TestByHandTooLate(t *testing.T) {
	a, _ := hasty(t, addr2)
	b := at(t, addr1)
	a.raiseTo(b.gid(), b.qp.QPN, short, 0)
	a.unreachable()
	var rejected *cm.RejectedError
	require.ErrorAs(t, stranger(t, addr1, a, handData(a.qp.QPN, b.qp.QPN, false)), &rejected)
	assert.Equal(t, sayTaken, string(rejected.PrivateData))
}

// TestByHandSilence: what listens there takes connections, and says nothing.
func TestByHandSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	defer l.Close()
	a, said := hasty(t, addr1)
	a.raiseTo(addr2.As16(), uint32(l.Addr().(*net.TCPAddr).Port)<<8, short, 0)
	a.unreachable()
	require.Len(t, said.all(), 1)
}

// TestByHandWaits: a queue pair that sends nothing waits, and so does one whose timeout is 0. The user hears of what waits.
func TestByHandWaits(t *testing.T) {
	a, said := hasty(t, addr1)
	b := at(t, addr2)
	a.raiseTo(b.gid(), b.qp.QPN+1, 0, 0)
	a.posted(signaled(uabi.WRSend, 3), a.sge(0, 8))
	for end := time.Now().Add(time.Minute); len(said.all()) == 0; time.Sleep(time.Millisecond) { // there is no event to wait for
		require.True(t, time.Now().Before(end))
	}
	assert.Contains(t, said.all()[0], "no queue pair there has this number")
	assert.Empty(t, a.poll(16))
	assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
	require.NoError(t, a.to(uabi.QPSErr))
	assert.EqualValues(t, uabi.WCWRFlushErr, a.wait(1)[0].Status, "the program has ended it")
}

// TestByHandPostedBefore: what was posted before the change to RTR waits as well.
func TestByHandPostedBefore(t *testing.T) {
	a, _ := hasty(t, addr1)
	a.posted(signaled(uabi.WRSend, 3), a.sge(0, 8))
	require.NoError(t, a.modify(uabi.ModifyQP{AttrMask: uabi.QPState | uabi.QPTimeout, QPState: uabi.QPSInit, Timeout: short}))
	require.NoError(t, a.rtr(addr2.As16(), 17<<8))
	assert.EqualValues(t, uabi.WCRetryExcErr, a.wait(1)[0].Status)
}

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		set              bool
		timeout, retries uint8
		least, want      time.Duration
		ok               bool
	}{
		{false, 14, 7, 0, unsetPatience, true},
		{true, 14, 7, 0, 8 * 67108864 * time.Nanosecond, true},
		{true, 1, 0, 0, 8192 * time.Nanosecond, true},
		{true, 31, 7, 0, 8 * (4096 << 31), true},
		{true, 14, 7, leastPatience, leastPatience, true},
		{true, 20, 7, leastPatience, 8 * (4096 << 20), true},
	} {
		q := &QP{attr: uabi.ModifyQP{Timeout: c.timeout, RetryCnt: c.retries}}
		if c.set {
			q.attr.AttrMask = uabi.QPTimeout
		}
		got, ok := q.patience(c.least)
		assert.Equal(t, []any{c.want, c.ok}, []any{got, ok}, "%+v", c)
	}
	_, ok := (&QP{attr: uabi.ModifyQP{AttrMask: uabi.QPTimeout}}).patience(0)
	assert.False(t, ok, "a timeout of 0 is for ever")
}
