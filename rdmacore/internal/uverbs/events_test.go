//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// sharing is a side whose queue pair takes its receives from a shared queue.
func sharing(p *program) *side {
	s := &side{program: p, pd: p.pd(), cq: p.cq(64, -1)}
	s.mem, s.mr = p.region(s.pd, sideBytes, allRights)
	q := must[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{UserHandle: 77, PDHandle: s.pd, MaxWR: 8, MaxSGE: 1})
	c := config(s.pd, s.cq, s.cq)
	c.IsSRQ, c.SRQHandle, s.shared = 1, q.SRQHandle, q.SRQHandle
	s.qp = must[uabi.CreateQPResp](p, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: c})
	return s
}

// last requires that the next event says that nothing more is taken from the shared queue, and that none follows.
func (s *side) last() {
	s.t.Helper()
	assert.Equal(s.t, uabi.AsyncEventDesc{Element: 0xabcd, EventType: uabi.EventQPLastWQEReached}, s.async())
	require.NoError(s.t, s.to(uabi.QPSErr))
	assert.True(s.t, s.quiet())
}

// TestLastWQE: once for each time that the queue pair comes to ERR for the program, by whatever way.
func TestLastWQE(t *testing.T) {
	ends := map[string]func(a, b *side){
		"the program's change": func(a, _ *side) { require.NoError(t, a.to(uabi.QPSErr)) },
		"the peer's close, and a change": func(a, b *side) {
			b.destroy()
			a.over()
			assert.True(t, a.quiet(), "the program does not know")
			require.NoError(t, a.to(uabi.QPSErr))
		},
		"the peer's reset, and a change": func(a, b *side) {
			require.NoError(t, b.to(uabi.QPSErr))
			a.over()
			<-a.verbs().taken.(*link).over
			assert.True(t, a.quiet(), "the program does not know")
			require.NoError(t, a.to(uabi.QPSErr))
		},
		"the peer's close, and a Send": func(a, b *side) {
			a.patient(1)
			b.destroy()
			a.over()
			a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
			a.wait(1)
		},
	}
	for _, roce := range []bool{false, true} {
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				a, b := sharing(started(t, Config{Addr: addr1, RoCE: roce})), at(t, addr2)
				for range 2 {
					a.raise(b)
					b.raise(a)
					a.speak(b)
					end(a, b)
					a.last()
					require.NoError(t, a.to(uabi.QPSReset))
					b = at(t, addr2)
				}
			})
		}
	}
	t.Run("nobody there", func(t *testing.T) {
		p := open(t, Config{Addr: addr1})
		p.dev.hand.least.Store(int64(time.Nanosecond))
		p.context()
		a := sharing(p)
		a.raiseTo(addr2.As16(), 17<<8, 1, 0)
		a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
		a.wait(1)
		a.last()
	})
	t.Run("destroyed", func(t *testing.T) {
		a := sharing(started(t, Config{Addr: addr1}))
		a.destroy()
		assert.True(t, a.quiet())
	})
}

// TestEventBehindReset: an event that RESET has overtaken is of the stream before, and tells the program nothing.
func TestEventBehindReset(t *testing.T) {
	a, b := sharing(started(t, Config{Addr: addr1})), at(t, addr2)
	a.raise(b)
	b.raise(a)
	a.speak(b)
	require.NoError(t, a.to(uabi.QPSErr))
	a.last()
	require.NoError(t, a.to(uabi.QPSReset))
	a.dev.event(verbs.Event{ID: verbs.EventLLPReset, QP: a.verbs().Verbs().ID()})
	assert.True(t, a.quiet())
}

// speak has a Send arrive each way, twice, after which no nudge can cross a close (decision 0014).
func (s *side) speak(b *side) {
	s.t.Helper()
	for range 2 {
		for _, c := range [][2]*side{{s, b}, {b, s}} {
			from, to := c[0], c[1]
			to.receive(1)
			from.posted(signaled(uabi.WRSend, 1), from.sge(0, 8))
			from.one()
			to.one()
		}
	}
}

// receive posts a receive, to the shared queue if there is one.
func (s *side) receive(id uint64) {
	s.t.Helper()
	if s.verbs().srq == nil {
		_, err := s.recv(id, s.sge(0, 8))
		require.NoError(s.t, err)
		return
	}
	w, g := uabi.RecvWR{WRID: id, NumSGE: 1}, s.sge(0, 64)
	must[uabi.PostResp](s.program, uabi.CmdPostSRQRecv, &uabi.PostSRQRecv{SRQHandle: s.shared, WRCount: 1, SGECount: 1, WQESize: 16}, umem.Bytes(&w), umem.Octets([]uabi.SGE{g}))
}

// TestCommEst: a message that comes before the program has changed to RTS is told, once, and none that comes later.
func TestCommEst(t *testing.T) {
	for _, c := range [][2]uint8{{uabi.QPSRTR, 1}, {uabi.QPSRTS, 0}} {
		a, b := at(t, addr1), at(t, addr2)
		a.raise(b)
		require.NoError(t, b.to(uabi.QPSInit))
		require.NoError(t, b.rtr(a.gid(), a.qp.QPN))
		if c[0] == uabi.QPSRTS {
			require.NoError(t, b.to(uabi.QPSRTS))
		}
		for range 2 {
			b.receive(1)
			a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
			a.one()
			b.one()
		}
		for range c[1] {
			assert.Equal(t, uabi.AsyncEventDesc{Element: 0xabcd, EventType: uabi.EventCommEst}, b.async())
		}
		assert.EqualValues(t, c[0], b.query().QPState)
		require.NoError(t, b.to(uabi.QPSRTS))
		a.speak(b)
		assert.Zero(t, b.pending(50*time.Millisecond), "a goroutine would have told by then")
	}
}

// pending is how many events there are, or come soon: 0 or 1.
func (p *program) pending(soon time.Duration) int {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.asyncFD), Events: unix.POLLIN}}, int(soon.Milliseconds()))
	require.NoError(p.t, err)
	return n
}
