//go:build linux && (amd64 || arm64)

package uverbs

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

func (p *program) channel() int {
	p.t.Helper()
	fd := int(must[uabi.CreateCompChannelResp](p, uabi.CmdCreateCompChannel, &uabi.CreateCompChannel{}).FD)
	p.t.Cleanup(func() { _ = syscall.Close(fd) })
	return fd
}

// event reads a record of a completion channel: the user handle of the queue.
func event(t testing.TB, fd int) (e uabi.CompEventDesc) {
	t.Helper()
	n, err := syscall.Read(fd, umem.Bytes(&e))
	require.NoError(t, err)
	require.Equal(t, 8, n)
	return e
}

func pending(fd int) int {
	n, _ := unix.IoctlGetInt(fd, unix.TIOCINQ)
	return n
}

// onChannel is a side whose queue reports to a channel.
func onChannel(t testing.TB, fd int, p *program) *side {
	s := &side{program: p, pd: p.pd(), cq: p.cq(64, int32(fd))}
	s.qp = p.qp(s.pd, s.cq, s.cq)
	s.mem, s.mr = p.region(s.pd, sideBytes, allRights)
	return s
}

func (s *side) arm(solicited uint32) {
	s.t.Helper()
	must[uabi.None](s.program, uabi.CmdReqNotifyCQ, &uabi.ReqNotifyCQ{CQHandle: s.cq, SolicitedOnly: solicited})
}

// await waits until n octets can be read.
func await(t testing.TB, fd, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); pending(fd) < n; {
		require.True(t, time.Now().Before(end))
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10)
	}
}

// TestCompletionEvents: one for each time that the queue is armed, solicited ones only if that is asked for; and those
// which were read are what DESTROY_CQ counts.
func TestCompletionEvents(t *testing.T) {
	p := started(t, Config{})
	fd := p.channel()
	dup, err := syscall.Dup(fd)
	require.NoError(t, err)
	defer syscall.Close(dup)
	a, b := newSide(p, allRights), onChannel(t, dup, p)
	connect(t, a, b)
	for i := range uint64(4) {
		_, err := b.recv(i, b.sge(0, 64))
		require.NoError(t, err)
	}
	b.arm(0)
	a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
	assert.EqualValues(t, 0xc0ffee, event(t, fd).CQHandle)
	b.one()
	b.arm(1)
	a.posted(signaled(uabi.WRSend, 2), a.sge(0, 8))
	b.one()
	w := signaled(uabi.WRSend, 3)
	w.SendFlags |= uabi.SendSolicited
	a.posted(w, a.sge(0, 8))
	b.one()
	assert.EqualValues(t, 0xc0ffee, event(t, dup).CQHandle, "for the solicited one")
	b.arm(0)
	a.posted(signaled(uabi.WRSend, 4), a.sge(0, 8))
	b.one()
	await(t, fd, 8)

	must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: b.qp.QPHandle})
	r := must[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: b.cq})
	assert.EqualValues(t, 2, r.CompEventsReported, "the third was not read")
	assert.Zero(t, pending(fd), "and is not there any more")
}

// TestEventsOfOthersStay: what is taken out of a channel are the events of the dead queue alone, and the order of the
// others stays.
func TestEventsOfOthersStay(t *testing.T) {
	p := started(t, Config{})
	fd := p.channel()
	var ends []*source
	for range 3 {
		f := p.file
		f.mu.Lock()
		c, err := f.channel(int32(fd))
		f.mu.Unlock()
		require.NoError(t, err)
		ends = append(ends, &source{ch: c})
	}
	for i := range uint64(12) {
		require.True(t, ends[i%3].completion(i))
	}
	for i := range uint64(4) {
		assert.Equal(t, i, event(t, fd).CQHandle)
	}
	assert.EqualValues(t, 1, ends[1].end(), "1 was read, of 1 4 7 10")
	for _, want := range []uint64{5, 6, 8, 9, 11} {
		assert.Equal(t, want, event(t, fd).CQHandle)
	}
	assert.EqualValues(t, 4, ends[0].end())
	require.True(t, ends[1].completion(99), "it is dead: nothing comes")
	assert.Zero(t, pending(fd))
}

// TestChannelOfProgram: a descriptor that is none is EBADF, and the ends of one that the program has
// closed are closed when the next is made.
func TestChannelOfProgram(t *testing.T) {
	p := started(t, Config{})
	o := openOf(t, p.dev)
	o.context()
	fd := p.channel()
	for _, bad := range []int32{0, 1000, int32(p.asyncFD)} {
		_, err := write[uabi.CreateCQResp](p, uabi.CmdCreateCQ, &uabi.CreateCQ{CQE: 1, CompChannel: bad})
		assert.Equal(t, syscall.EBADF, errnoOf(t, err), "%d", bad)
	}
	_, err := write[uabi.CreateCQResp](o, uabi.CmdCreateCQ, &uabi.CreateCQ{CQE: 1, CompChannel: int32(fd)})
	assert.Equal(t, syscall.EBADF, errnoOf(t, err), "another context's")
	for range 100 {
		fd := must[uabi.CreateCompChannelResp](p, uabi.CmdCreateCompChannel, &uabi.CreateCompChannel{}).FD
		require.NoError(t, syscall.Close(int(fd)))
	}
	assert.LessOrEqual(t, len(p.file.channels), 2)
}

// TestAsyncEvents: each cause has its event, with the user handle of the object.
func TestAsyncEvents(t *testing.T) {
	p := started(t, Config{})
	s := newSide(p, allRights)
	fault.Provoke(s.verbs().Verbs())
	assert.Equal(t, uabi.AsyncEventDesc{Element: 0xabcd, EventType: uabi.EventQPFatal}, p.async())
	fault.Provoke(p.file.cqs.Get(s.cq).cq)
	assert.Equal(t, uabi.AsyncEventDesc{Element: 0xc0ffee, EventType: uabi.EventCQErr}, p.async())

	q := must[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{UserHandle: 77, PDHandle: s.pd, MaxWR: 8, MaxSGE: 1})
	fault.Provoke(p.file.srqs.Get(q.SRQHandle).srq)
	assert.Equal(t, uabi.AsyncEventDesc{Element: 77, EventType: uabi.EventSRQErr}, p.async())
	r := must[uabi.DestroySRQResp](p, uabi.CmdDestroySRQ, &uabi.DestroySRQ{SRQHandle: q.SRQHandle})
	assert.EqualValues(t, 1, r.EventsReported)
	assert.EqualValues(t, 1, must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: s.qp.QPHandle}).EventsReported)
	assert.EqualValues(t, 1, must[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: s.cq}).AsyncEventsReported)
	fault.Provoke(p.dev.rnic)
	assert.EqualValues(t, uabi.EventDeviceFatal, p.async().EventType)
}

// TestLimitEvent: SRQ_LIMIT comes once a limit is armed and reached, and LAST_WQE when a queue pair of the queue fails.
func TestLimitEvent(t *testing.T) {
	p := started(t, Config{})
	a := newSide(p, allRights)
	b := &side{program: p, pd: p.pd(), cq: p.cq(64, -1)}
	b.mem, b.mr = p.region(b.pd, sideBytes, allRights)
	q := must[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{UserHandle: 77, PDHandle: b.pd, MaxWR: 8, MaxSGE: 1})
	c := config(b.pd, b.cq, b.cq)
	c.IsSRQ, c.SRQHandle = 1, q.SRQHandle
	b.qp = must[uabi.CreateQPResp](p, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: c})
	connect(t, a, b)
	for i := range uint64(3) {
		w, g := uabi.RecvWR{WRID: i, NumSGE: 1}, b.sge(0, 64)
		r := must[uabi.PostResp](p, uabi.CmdPostSRQRecv, &uabi.PostSRQRecv{SRQHandle: q.SRQHandle, WRCount: 1, SGECount: 1, WQESize: 16}, umem.Bytes(&w), umem.Bytes(&g))
		require.Zero(t, r.BadWR)
	}
	must[uabi.None](p, uabi.CmdModifySRQ, &uabi.ModifySRQ{SRQHandle: q.SRQHandle, AttrMask: uabi.SRQLimit, SRQLimit: 2})
	assert.EqualValues(t, 2, must[uabi.QuerySRQResp](p, uabi.CmdQuerySRQ, &uabi.QuerySRQ{SRQHandle: q.SRQHandle}).SRQLimit)
	for i := range 2 {
		a.posted(signaled(uabi.WRSend, i), a.sge(0, 8))
		assert.EqualValues(t, i, b.one().WRID)
	}
	assert.Equal(t, uabi.AsyncEventDesc{Element: 77, EventType: uabi.EventSRQLimitReached}, p.async())
	assert.Zero(t, must[uabi.QuerySRQResp](p, uabi.CmdQuerySRQ, &uabi.QuerySRQ{SRQHandle: q.SRQHandle}).SRQLimit)

	must[uabi.None](p, uabi.CmdModifySRQ, &uabi.ModifySRQ{SRQHandle: q.SRQHandle, AttrMask: uabi.SRQMaxWR, MaxWR: 16})
	assert.EqualValues(t, 16, must[uabi.QuerySRQResp](p, uabi.CmdQuerySRQ, &uabi.QuerySRQ{SRQHandle: q.SRQHandle}).MaxWR)
	require.NoError(t, a.verbs().Verbs().Modify(verbs.ModifyQP{Next: verbs.StateError}))
	var kinds []string
	for len(kinds) < 3 {
		kinds = append(kinds, fmt.Sprint(p.async().EventType))
		if kinds[len(kinds)-1] == fmt.Sprint(uabi.EventQPLastWQEReached) {
			return
		}
	}
	t.Fatal("no LAST_WQE_REACHED among ", kinds)
}
