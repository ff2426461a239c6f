//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// TestExtendedCQ: what a completion here has is given, and nothing else is promised.
func TestExtendedCQ(t *testing.T) {
	p := started(t, Config{})
	pd := p.pd()
	parent := must[uabi.AllocPDResp](p, uabi.CmdAllocPD, &uabi.AllocPDDriver{ParentHandle: pd}).PDHandle
	for name, c := range map[string]struct {
		q    uabi.CreateCQDriver
		want syscall.Errno
	}{
		"nothing more":     {uabi.CreateCQDriver{}, 0},
		"all there is":     {uabi.CreateCQDriver{WCFlags: uabi.WCExStandard, AttrMask: uabi.CQFlags, Flags: uabi.CQSingleThreaded}, 0},
		"a time stamp":     {uabi.CreateCQDriver{WCFlags: 1 << 7}, syscall.EOPNOTSUPP},
		"wall-clock time":  {uabi.CreateCQDriver{WCFlags: 1<<11 | 1}, syscall.EOPNOTSUPP},
		"an unknown field": {uabi.CreateCQDriver{WCFlags: 1 << 63}, syscall.EOPNOTSUPP},
		"silent overruns":  {uabi.CreateCQDriver{AttrMask: uabi.CQFlags, Flags: 2}, syscall.EOPNOTSUPP},
		"an unknown mask":  {uabi.CreateCQDriver{AttrMask: 4}, syscall.EOPNOTSUPP},
		"a parent domain":  {uabi.CreateCQDriver{AttrMask: uabi.CQParent, ParentHandle: parent}, 0},
		"no parent domain": {uabi.CreateCQDriver{AttrMask: uabi.CQParent, ParentHandle: pd}, syscall.EINVAL},
		"of nothing":       {uabi.CreateCQDriver{AttrMask: uabi.CQParent}, syscall.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.CreateCQ = uabi.CreateCQ{UserHandle: 1, CQE: 16, CompChannel: -1}
			r, err := write[uabi.CreateCQResp](p, uabi.CmdCreateCQ, &c.q)
			assert.Equal(t, c.want, errnoOf(t, err))
			if err == nil {
				must[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: r.CQHandle})
			}
		})
	}
}

// TestExtendedQP: the same of a queue pair.
func TestExtendedQP(t *testing.T) {
	p := started(t, Config{})
	pd := p.pd()
	cq := p.cq(16, -1)
	const mask = uabi.QPAttrPD | uabi.QPAttrSendOps
	for name, c := range map[string]struct {
		kind uint8
		q    uabi.CreateQPDriver
		want syscall.Errno
	}{
		"nothing more":        {uabi.QPTRC, uabi.CreateQPDriver{}, 0},
		"all of RC":           {uabi.QPTRC, uabi.CreateQPDriver{AttrMask: mask, SendOps: uabi.QPExKnown}, 0},
		"all of UD":           {uabi.QPTUD, uabi.CreateQPDriver{AttrMask: mask, SendOps: uabi.QPExSend | uabi.QPExSendWithImm}, 0},
		"UD and Write":        {uabi.QPTUD, uabi.CreateQPDriver{AttrMask: mask, SendOps: 1}, syscall.EOPNOTSUPP},
		"segmentation":        {uabi.QPTRC, uabi.CreateQPDriver{AttrMask: mask, SendOps: 1 << 10}, syscall.EOPNOTSUPP},
		"Atomic Write":        {uabi.QPTRC, uabi.CreateQPDriver{AttrMask: mask, SendOps: 1 << 12}, syscall.EOPNOTSUPP},
		"an unknown one":      {uabi.QPTRC, uabi.CreateQPDriver{AttrMask: mask, SendOps: 1 << 63}, syscall.EOPNOTSUPP},
		"XRC":                 {uabi.QPTRC, uabi.CreateQPDriver{AttrMask: mask | 2}, syscall.EOPNOTSUPP},
		"no domain":           {uabi.QPTRC, uabi.CreateQPDriver{AttrMask: uabi.QPAttrSendOps}, syscall.EINVAL},
		"flags":               {uabi.QPTRC, uabi.CreateQPDriver{AttrMask: mask | uabi.QPAttrCreateFlags, CreateFlags: 2}, syscall.EOPNOTSUPP},
		"no flags, but asked": {uabi.QPTRC, uabi.CreateQPDriver{AttrMask: mask | uabi.QPAttrCreateFlags}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.QPConfig = config(pd, cq, cq)
			c.q.QPType = c.kind
			r, err := write[uabi.CreateQPResp](p, uabi.CmdCreateQP, &c.q)
			assert.Equal(t, c.want, errnoOf(t, err))
			if err == nil {
				must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: r.QPHandle})
			}
		})
	}
}

// together posts requests all together or not at all.
func (s *side) together(wrs []uabi.SendWR, sges ...uabi.SGE) (uabi.PostResp, error) {
	wrs[0].SendFlags |= uabi.SendWhole
	return write[uabi.PostResp](s.program, uabi.CmdPostSend, &uabi.PostSend{
		QPHandle: s.qp.QPHandle, WRCount: uint32(len(wrs)), SGECount: uint32(len(sges)), WQESize: uint32(size[uabi.SendWR]()),
	}, umem.Octets(wrs), umem.Octets(sges))
}

// TestWhole: of a list in which one is wrong, or for which there is no room, nothing is posted.
func TestWhole(t *testing.T) {
	a, b := pair(t, Config{RoCE: true}, allRights)
	a.fill(0, []byte("whole"))
	write := func(id int) uabi.SendWR {
		w := rdma(signaled(uabi.WRRDMAWrite, id), b, 64*id)
		w.NumSGE = 1
		return w
	}
	inline := write(1)
	inline.SendFlags |= uabi.SendInline
	for name, bad := range map[string]struct {
		w    uabi.SendWR
		n    int
		want syscall.Errno
	}{
		"an operation":     {signaled(uabi.WRTSO, 3), 0, syscall.EOPNOTSUPP},
		"a Send with both": {signaled(uabi.WRSendWithImm, 3), 5, syscall.EOPNOTSUPP},
		"an atomic's sink": {signaled(uabi.WRAtomicFetchAndAdd, 3), 4, syscall.EINVAL},
		"too much inline":  {uabi.SendWR{Opcode: uabi.WRSend, SendFlags: uabi.SendInline}, 257, syscall.ENOMEM},
	} {
		t.Run(name, func(t *testing.T) {
			sges := []uabi.SGE{a.sge(0, 5), a.sge(0, 5)}
			if bad.n > 0 {
				sges, bad.w.NumSGE = append(sges, a.sge(0, bad.n)), 1
			}
			_, err := a.together([]uabi.SendWR{inline, write(2), bad.w}, sges...)
			assert.Equal(t, bad.want, errnoOf(t, err))
			assert.Empty(t, a.poll(4))
		})
	}
	depth := int(a.qp.MaxSendWR)
	var list []uabi.SendWR
	var sges []uabi.SGE
	for i := range depth + 1 {
		list, sges = append(list, write(i%8)), append(sges, a.sge(0, 5))
	}
	_, err := a.together(list, sges...)
	assert.Equal(t, syscall.ENOMEM, errnoOf(t, err))
	assert.Empty(t, a.poll(4))
	assert.Equal(t, make([]byte, 512), b.read(0, 512), "nothing has been written")

	_, err = a.together(list[:depth], sges[:depth]...)
	require.NoError(t, err)
	a.wait(depth)
	assert.Equal(t, "whole", string(b.read(64*7, 5)))
	b.file.Close()
	require.NoError(t, a.modify(uabi.ModifyQP{AttrMask: uabi.QPState, QPState: uabi.QPSErr}))
	<-a.verbs().Verbs().Done()
	_, err = a.together(list[:3], sges[:3]...)
	require.NoError(t, err, "of a queue pair that has ended all flush")
	for _, c := range a.wait(3) {
		assert.EqualValues(t, uabi.WCWRFlushErr, c.Status)
	}
}

// TestParentDomain: what is made in it is of the domain that it is of, which stays until it goes.
func TestParentDomain(t *testing.T) {
	p := started(t, Config{})
	o := openOf(t, p.dev)
	o.context()
	a, b := newSide(p, allRights), newSide(o, allRights)
	parentOf := func(pd uint32) uint32 {
		return must[uabi.AllocPDResp](a.program, uabi.CmdAllocPD, &uabi.AllocPDDriver{ParentHandle: pd, AttrMask: uabi.ParentKnown}).PDHandle
	}
	parent := parentOf(a.pd)
	heir := parentOf(parent)
	assert.Len(t, map[uint32]bool{a.pd: true, parent: true, heir: true}, 3)
	_, err := write[uabi.AllocPDResp](a.program, uabi.CmdAllocPD, &uabi.AllocPDDriver{ParentHandle: a.pd, AttrMask: 4})
	assert.Equal(t, syscall.EOPNOTSUPP, errnoOf(t, err))
	_, err = write[uabi.AllocPDResp](a.program, uabi.CmdAllocPD, &uabi.AllocPDDriver{ParentHandle: 99})
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))

	a.qp = a.program.qp(heir, a.cq, a.cq)
	connect(t, a, b)
	b.fill(64, make([]byte, 8))
	w := signaled(uabi.WRAtomicFetchAndAdd, 1) // whose sink the device itself looks up
	w.RemoteAddr, w.CompareAdd, w.KeyOf = b.mem+64, 1, uint64(b.mr.Rkey)
	a.posted(w, a.sge(0, 8))
	a.one()

	drop := func(pd uint32) error {
		_, err := write[uabi.None](a.program, uabi.CmdDeallocPD, &uabi.DeallocPD{PDHandle: pd})
		return err
	}
	must[uabi.DestroyQPResp](a.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: a.qp.QPHandle})
	assert.Equal(t, syscall.EBUSY, errnoOf(t, drop(a.pd)))
	require.NoError(t, drop(parent))
	assert.Equal(t, syscall.ENOENT, errnoOf(t, drop(parent)))
	assert.Equal(t, syscall.EBUSY, errnoOf(t, drop(a.pd)), "the other is there")
	require.NoError(t, drop(heir))
	assert.Equal(t, syscall.EBUSY, errnoOf(t, drop(a.pd)), "the region and a queue pair are")
	parentOf(a.pd) // and a program that ends with one
}

// TestReceiveInReset: InfiniBand has nothing posted in RESET; an iWARP queue pair begins in INIT.
func TestReceiveInReset(t *testing.T) {
	for name, c := range map[string]struct {
		roce bool
		kind uint8
		want syscall.Errno
	}{
		"iwarp": {false, uabi.QPTRC, 0}, "roce": {true, uabi.QPTRC, syscall.EINVAL}, "datagrams": {false, uabi.QPTUD, syscall.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSide(started(t, Config{RoCE: c.roce}), allRights)
			q := config(s.pd, s.cq, s.cq)
			q.QPType = c.kind
			s.qp = must[uabi.CreateQPResp](s.program, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: q})
			r, err := s.recv(1, s.sge(0, 8))
			assert.Equal(t, c.want, errnoOf(t, err))
			if err != nil {
				assert.EqualValues(t, 1, r.BadWR)
			}
		})
	}
}
