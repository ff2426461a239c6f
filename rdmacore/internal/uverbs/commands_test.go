//go:build linux && (amd64 || arm64)

package uverbs

import (
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// raw writes a command as it stands.
func (p *program) raw(b []byte) error {
	at := p.alloc(len(b))
	require.NoError(p.t, umem.Write(at, b))
	_, err := p.file.Write(at, len(b))
	return err
}

func header(command uint32, in, out int) []byte {
	h := uabi.CmdHdr{Command: command, InWords: uint16(in), OutWords: uint16(out)}
	return append([]byte(nil), umem.Bytes(&h)...)
}

func join(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// TestHeaders are refused as verify_hdr of Linux does.
func TestHeaders(t *testing.T) {
	p := started(t, Config{})
	room := p.alloc(1024)
	r := uabi.Response{Response: room}
	x := uabi.ExCmdHdr{Response: room}
	reserved := uabi.ExCmdHdr{Response: room, CmdHdrReserved: 1}
	nowhere := uabi.ExCmdHdr{}
	wrong := uabi.Response{Response: 4096}
	const ex = uabi.FlagExtended
	for name, c := range map[string]struct {
		b    []byte
		want syscall.Errno
	}{
		"shorter than a header":      {make([]byte, 7), syscall.EINVAL},
		"an unknown command":         {header(41, 2, 0), syscall.EOPNOTSUPP},
		"an unknown extended":        {join(header(ex|0xff, 0, 0), make([]byte, 16)), syscall.EOPNOTSUPP},
		"an unknown flag":            {header(0x40000000, 2, 0), syscall.EINVAL},
		"fewer words than octets":    {join(header(uabi.CmdAllocPD, 3, 1), umem.Bytes(&r)), syscall.EINVAL},
		"more words than octets":     {join(header(uabi.CmdAllocPD, 5, 1), umem.Bytes(&r)), syscall.EINVAL},
		"no struct":                  {header(uabi.CmdAllocPD, 2, 1), syscall.ENOSPC},
		"no room for the response":   {join(header(uabi.CmdAllocPD, 4, 0), umem.Bytes(&r)), syscall.ENOSPC},
		"a response that is nowhere": {join(header(uabi.CmdAllocPD, 4, 1), umem.Bytes(&wrong)), syscall.EFAULT},
		"a second context":           {join(header(uabi.CmdGetContext, 4, 2), umem.Bytes(&r)), syscall.EINVAL},
		"extended: no header":        {header(ex|uabi.CmdQueryDevice, 0, 0), syscall.EINVAL},
		"extended: no struct":        {join(header(ex|uabi.CmdQueryDevice, 0, 40), umem.Bytes(&x)), syscall.ENOSPC},
		"extended: reserved":         {join(header(ex|uabi.CmdQueryDevice, 1, 40), umem.Bytes(&reserved), make([]byte, 8)), syscall.EINVAL},
		"extended: no address":       {join(header(ex|uabi.CmdQueryDevice, 1, 40), umem.Bytes(&nowhere), make([]byte, 8)), syscall.EINVAL},
		"extended: no room":          {join(header(ex|uabi.CmdQueryDevice, 1, 2), umem.Bytes(&x), make([]byte, 8)), syscall.ENOSPC},
		"extended: no length":        {join(header(ex|uabi.CmdQueryDevice, 1, 0), umem.Bytes(&x), make([]byte, 8)), syscall.EINVAL},
		"extended: unknown fields":   {join(header(ex|uabi.CmdQueryDevice, 2, 40), umem.Bytes(&x), make([]byte, 8), []byte{0, 0, 0, 0, 0, 0, 0, 1}), syscall.EOPNOTSUPP},
		"extended: comp_mask":        {join(header(ex|uabi.CmdQueryDevice, 1, 40), umem.Bytes(&x), []byte{1, 0, 0, 0, 0, 0, 0, 0}), syscall.EINVAL},
		"extended":                   {join(header(ex|uabi.CmdQueryDevice, 2, 40), umem.Bytes(&x), make([]byte, 16)), 0},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, errnoOf(t, p.raw(c.b))) })
	}
	for _, at := range []uint64{0, 8, 1 << 47, math.MaxUint64 - 3} {
		_, err := p.file.Write(at, 16)
		assert.Equal(t, syscall.EFAULT, errnoOf(t, err), "%#x", at)
	}
	_, err := p.file.Write(p.base, maxCommand+1)
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
	_, err = p.file.Write(p.base, -1)
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
}

// TestNoContext: every command but the first needs one.
func TestNoContext(t *testing.T) {
	p := open(t, Config{})
	_, err := write[uabi.AllocPDResp](p, uabi.CmdAllocPD, &uabi.AllocPD{})
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
	p.context()
	p.pd()
}

// TestAbsent: what an iWARP device has not is EOPNOTSUPP, whatever the command says.
func TestAbsent(t *testing.T) {
	p := started(t, Config{})
	n := 0
	for _, table := range []struct {
		flag     uint32
		commands *[uabi.CommandMask + 1]*command
	}{{0, &legacy}, {uabi.FlagExtended, &extended}} {
		for number, c := range table.commands {
			if c != nil && c.run == nil {
				n++
				assert.Equal(t, syscall.EOPNOTSUPP, errnoOf(t, p.raw(join(header(table.flag|uint32(number), 2, 0), make([]byte, 64)))), c.name)
			}
		}
	}
	assert.Equal(t, 20, n)
	for number := range uabi.CmdOpenQP + 1 {
		assert.NotNil(t, legacy[number], "command %d is neither done nor refused", number)
	}
	for number := uint32(uabi.ExCmdCreateFlow); number <= uabi.ExCmdModifyCQ; number++ {
		assert.NotNil(t, extended[number])
	}
}

// TestWrongHandles: each command that names an object, with handles of nothing, of another context, and beyond all.
func TestWrongHandles(t *testing.T) {
	p := started(t, Config{})
	o := openOf(t, p.dev)
	o.context()
	for range 4 { // so that its handles are not those of p
		o.pd()
	}
	other := newSide(o, allRights)
	for _, h := range []uint32{0, 5, other.pd, other.qp.QPHandle, maxObjects - 1, maxObjects, math.MaxUint32} {
		try := func(want syscall.Errno, err error) {
			t.Helper()
			assert.Equal(t, want, errnoOf(t, err), "handle %d", h)
		}
		_, err := write[uabi.None](p, uabi.CmdDeallocPD, &uabi.DeallocPD{PDHandle: h})
		try(syscall.ENOENT, err)
		_, err = write[uabi.None](p, uabi.CmdDeregMR, &uabi.DeregMR{MRHandle: h})
		try(syscall.ENOENT, err)
		_, err = write[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: h})
		try(syscall.ENOENT, err)
		_, err = write[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: h})
		try(syscall.ENOENT, err)
		_, err = write[uabi.DestroySRQResp](p, uabi.CmdDestroySRQ, &uabi.DestroySRQ{SRQHandle: h})
		try(syscall.ENOENT, err)
		_, err = write[uabi.None](p, uabi.CmdDeallocMW, &uabi.DeallocMW{MWHandle: h})
		try(syscall.ENOENT, err)
		_, err = write[uabi.AllocMWResp](p, uabi.CmdAllocMW, &uabi.AllocMW{PDHandle: h, MWType: 1})
		try(syscall.EINVAL, err)
		_, err = write[uabi.RegMRResp](p, uabi.CmdRegMR, &uabi.RegMR{PDHandle: h, Start: p.base, HCAVA: p.base, Length: 8})
		try(syscall.EINVAL, err)
		_, err = write[uabi.ReregMRResp](p, uabi.CmdReregMR, &uabi.ReregMR{MRHandle: h, Flags: uabi.ReregAccess})
		try(syscall.EINVAL, err)
		_, err = write[uabi.ResizeCQResp](p, uabi.CmdResizeCQ, &uabi.ResizeCQ{CQHandle: h, CQE: 8})
		try(syscall.EINVAL, err)
		_, err = write[uabi.PollCQResp](p, uabi.CmdPollCQ, &uabi.PollCQ{CQHandle: h, NE: 1})
		try(syscall.EINVAL, err)
		_, err = write[uabi.None](p, uabi.CmdReqNotifyCQ, &uabi.ReqNotifyCQ{CQHandle: h})
		try(syscall.EINVAL, err)
		_, err = write[uabi.CreateQPResp](p, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: config(h, h, h)})
		try(syscall.EINVAL, err)
		_, err = write[uabi.QueryQPResp](p, uabi.CmdQueryQP, &uabi.QueryQP{QPHandle: h})
		try(syscall.EINVAL, err)
		_, err = write[uabi.None](p, uabi.CmdModifyQP, &uabi.ModifyQP{QPHandle: h})
		try(syscall.EINVAL, err)
		_, err = write[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{PDHandle: h, MaxWR: 1})
		try(syscall.EINVAL, err)
		_, err = write[uabi.None](p, uabi.CmdModifySRQ, &uabi.ModifySRQ{SRQHandle: h})
		try(syscall.EINVAL, err)
		_, err = write[uabi.QuerySRQResp](p, uabi.CmdQuerySRQ, &uabi.QuerySRQ{SRQHandle: h})
		try(syscall.EINVAL, err)
		for _, post := range []uint32{uabi.CmdPostSend, uabi.CmdPostRecv, uabi.CmdPostSRQRecv} {
			r, err := write[uabi.PostResp](p, post, &uabi.PostSend{QPHandle: h, WQESize: wqe})
			try(syscall.EINVAL, err)
			assert.EqualValues(t, 1, r.BadWR)
		}
	}
}

// wqe is the size of a send request.
const wqe = 56

// TestPostLengths: counts that do not fit into the command, in any way, touch nothing behind it.
func TestPostLengths(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	_ = b
	wrs := make([]byte, 2*wqe)
	for name, c := range map[string]struct {
		h    uabi.PostSend
		want syscall.Errno
	}{
		"none":                    {uabi.PostSend{WQESize: wqe}, syscall.EOPNOTSUPP}, // something is behind
		"short requests":          {uabi.PostSend{WRCount: 1, WQESize: wqe - 1}, syscall.EINVAL},
		"no size":                 {uabi.PostSend{WRCount: 1}, syscall.EINVAL},
		"a huge size":             {uabi.PostSend{WRCount: 1, WQESize: math.MaxUint32}, syscall.ENOSPC},
		"too many":                {uabi.PostSend{WRCount: 3, WQESize: wqe}, syscall.ENOSPC},
		"a product that wraps":    {uabi.PostSend{WRCount: 1 << 31, WQESize: 1 << 31}, syscall.ENOSPC},
		"a product that wraps 32": {uabi.PostSend{WRCount: 1 << 26, WQESize: 128}, syscall.ENOSPC},
		"too many elements":       {uabi.PostSend{WRCount: 2, WQESize: wqe, SGECount: 1}, syscall.ENOSPC},
		"elements that wrap":      {uabi.PostSend{WRCount: 2, WQESize: wqe, SGECount: 1 << 28}, syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			w := view[uabi.SendWR](wrs)
			*w = signaled(uabi.WRSend, 1)
			c.h.QPHandle = a.qp.QPHandle
			r, err := write[uabi.PostResp](a.program, uabi.CmdPostSend, &c.h, wrs)
			assert.Equal(t, c.want, errnoOf(t, err))
			assert.EqualValues(t, 1, r.BadWR)
		})
	}
	w := view[uabi.SendWR](wrs[wqe:])
	*w = signaled(uabi.WRSend, 2)
	w.NumSGE = math.MaxUint32
	r, err := write[uabi.PostResp](a.program, uabi.CmdPostSend, &uabi.PostSend{QPHandle: a.qp.QPHandle, WRCount: 2, WQESize: wqe}, wrs)
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err), "elements that there are not")
	assert.EqualValues(t, 2, r.BadWR, "the first was posted")
	assert.EqualValues(t, 1, a.one().WRID)
	_, err = a.send(signaled(99, 3))
	assert.Equal(t, syscall.EOPNOTSUPP, errnoOf(t, err))
}

// TestQueueFull: what there is no room for is ENOMEM, with the first that was not posted.
func TestQueueFull(t *testing.T) {
	p := started(t, Config{})
	s := newSide(p, allRights)
	n := int(s.qp.MaxSendWR)
	wrs := make([]uabi.SendWR, n+5)
	for i := range wrs {
		wrs[i] = signaled(uabi.WRSend, i)
	}
	r, err := write[uabi.PostResp](p, uabi.CmdPostSend, &uabi.PostSend{QPHandle: s.qp.QPHandle, WRCount: uint32(n + 5), WQESize: wqe}, umem.Octets(wrs))
	assert.Equal(t, syscall.ENOMEM, errnoOf(t, err))
	assert.EqualValues(t, n+1, r.BadWR)
	for i := range s.qp.MaxRecvWR {
		_, err := s.recv(uint64(i))
		require.NoError(t, err)
	}
	r, err = s.recv(0)
	assert.Equal(t, syscall.ENOMEM, errnoOf(t, err))
	assert.EqualValues(t, 1, r.BadWR)
}

// TestCreationRefused: what the device has not.
func TestCreationRefused(t *testing.T) {
	p := started(t, Config{})
	pd, cq := p.pd(), p.cq(8, -1)
	qp := func(change func(*uabi.QPConfig)) syscall.Errno {
		c := config(pd, cq, cq)
		change(&c)
		_, err := write[uabi.CreateQPResp](p, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: c})
		return errnoOf(t, err)
	}
	assert.Equal(t, syscall.EOPNOTSUPP, qp(func(c *uabi.QPConfig) { c.QPType = uabi.QPTXRCIni }))
	assert.Equal(t, syscall.EINVAL, qp(func(c *uabi.QPConfig) { c.MaxSendWR = maxWR + 1 }))
	assert.Equal(t, syscall.EINVAL, qp(func(c *uabi.QPConfig) { c.MaxRecvSGE = maxSGE + 1 }))
	assert.Equal(t, syscall.EINVAL, qp(func(c *uabi.QPConfig) { c.MaxInlineData = maxInline + 1 }))
	assert.Equal(t, syscall.EINVAL, qp(func(c *uabi.QPConfig) { c.IsSRQ, c.SRQHandle = 1, 9 }))
	assert.Equal(t, syscall.EINVAL, qp(func(c *uabi.QPConfig) { c.RecvCQHandle = 99 }))
	assert.Zero(t, qp(func(c *uabi.QPConfig) { c.MaxSendWR, c.MaxRecvWR, c.MaxSendSGE, c.MaxRecvSGE = 0, 0, 0, 0 }))
	cqOf := func(q uabi.CreateCQ) syscall.Errno {
		_, err := write[uabi.CreateCQResp](p, uabi.CmdCreateCQ, &q)
		return errnoOf(t, err)
	}
	assert.Equal(t, syscall.EINVAL, cqOf(uabi.CreateCQ{CQE: 0, CompChannel: -1}))
	assert.Equal(t, syscall.EINVAL, cqOf(uabi.CreateCQ{CQE: maxCQE + 1, CompChannel: -1}))
	assert.Equal(t, syscall.EINVAL, cqOf(uabi.CreateCQ{CQE: 1, CompChannel: -1, CompVector: 1}))
	_, err := write[uabi.QueryPortResp](p, uabi.CmdQueryPort, &uabi.QueryPort{PortNum: 2})
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
	assert.EqualValues(t, 4, must[uabi.QueryPortResp](p, uabi.CmdQueryPort, &uabi.QueryPort{PortNum: 1}).State)
	assert.EqualValues(t, 100, must[uabi.ResizeCQResp](p, uabi.CmdResizeCQ, &uabi.ResizeCQ{CQHandle: cq, CQE: 100}).CQE)
}

// TestRegions: what may be registered, and what is refused how.
func TestRegions(t *testing.T) {
	p := started(t, Config{})
	pd := p.pd()
	m := mapped(t, 3*4096)
	at := umem.Address(m)
	require.NoError(t, unix.Mprotect(m[4096:8192], unix.PROT_READ))
	require.NoError(t, unix.Mprotect(m[8192:], unix.PROT_NONE))
	for name, c := range map[string]struct {
		q    uabi.RegMR
		want syscall.Errno
	}{
		"plain":                        {uabi.RegMR{Start: at, Length: 4096, HCAVA: at}, 0},
		"another virtual address":      {uabi.RegMR{Start: at + 8, Length: 64, HCAVA: 0x10008}, 0},
		"one that differs in the page": {uabi.RegMR{Start: at, Length: 64, HCAVA: 8}, syscall.EINVAL},
		"zero based":                   {uabi.RegMR{Start: at, Length: 64, HCAVA: at, AccessFlags: uabi.AccessZeroBased}, 0},
		"nothing":                      {uabi.RegMR{Start: at, HCAVA: at}, syscall.EINVAL},
		"around the end":               {uabi.RegMR{Start: at, Length: math.MaxUint64 - 4095, HCAVA: at}, syscall.EINVAL},
		"the virtual one around":       {uabi.RegMR{Start: at, Length: 4096, HCAVA: math.MaxUint64 - 4095}, syscall.EINVAL},
		"low memory":                   {uabi.RegMR{Start: 8, Length: 8, HCAVA: 8}, syscall.EFAULT},
		"memory that is not there":     {uabi.RegMR{Start: at, Length: 1 << 40, HCAVA: at}, syscall.EFAULT},
		"read-only":                    {uabi.RegMR{Start: at, Length: 8192, HCAVA: at, AccessFlags: uabi.AccessRemoteRead}, 0},
		"read-only, to be written":     {uabi.RegMR{Start: at, Length: 8192, HCAVA: at, AccessFlags: uabi.AccessLocalWrite}, syscall.EFAULT},
		"no access at all":             {uabi.RegMR{Start: at, Length: 3 * 4096, HCAVA: at}, syscall.EFAULT},
		"remote write without local":   {uabi.RegMR{Start: at, Length: 64, HCAVA: at, AccessFlags: uabi.AccessRemoteWrite}, syscall.EINVAL},
		"atomics without local write":  {uabi.RegMR{Start: at, Length: 64, HCAVA: at, AccessFlags: uabi.AccessRemoteAtomic}, syscall.EINVAL},
		"on demand":                    {uabi.RegMR{Start: at, Length: 64, HCAVA: at, AccessFlags: uabi.AccessOnDemand}, syscall.EOPNOTSUPP},
		"an optional right of the bus": {uabi.RegMR{Start: at, Length: 64, HCAVA: at, AccessFlags: 1 << 20}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.PDHandle = pd
			_, err := write[uabi.RegMRResp](p, uabi.CmdRegMR, &c.q)
			assert.Equal(t, c.want, errnoOf(t, err))
		})
	}
}

// TestRereg changes memory, rights and domain; the old memory's key is good for nothing.
func TestRereg(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	old := b.mr
	other := mapped(t, 8192)
	at := umem.Address(other)
	r := must[uabi.ReregMRResp](b.program, uabi.CmdReregMR, &uabi.ReregMR{MRHandle: b.mr.MRHandle, Flags: uabi.ReregTrans, Start: at, Length: 8192, HCAVA: at})
	assert.NotEqual(t, old.Rkey, r.Rkey)
	b.mem, b.mr.Lkey, b.mr.Rkey = at, r.Lkey, r.Rkey
	a.fill(0, []byte("elsewhere"))
	a.posted(rdma(signaled(uabi.WRRDMAWrite, 1), b, 16), a.sge(0, 9))
	a.posted(rdma(signaled(uabi.WRRDMARead, 2), b, 16), a.sge(100, 9))
	a.wait(2)
	assert.Equal(t, "elsewhere", string(other[16:25]))
	for _, q := range []uabi.ReregMR{
		{Flags: 0}, {Flags: 8}, {Flags: uabi.ReregTrans}, {Flags: uabi.ReregPD, PDHandle: 99}, {Flags: uabi.ReregAccess, AccessFlags: uabi.AccessRemoteWrite},
	} {
		q.MRHandle = b.mr.MRHandle
		_, err := write[uabi.ReregMRResp](b.program, uabi.CmdReregMR, &q)
		assert.Equal(t, syscall.EINVAL, errnoOf(t, err), "%+v", q)
	}
	r = must[uabi.ReregMRResp](b.program, uabi.CmdReregMR, &uabi.ReregMR{MRHandle: b.mr.MRHandle, Flags: uabi.ReregAccess, AccessFlags: uabi.AccessLocalWrite})
	assert.Equal(t, uabi.ReregMRResp{Lkey: b.mr.Lkey, Rkey: b.mr.Rkey}, r, "the memory is the same")
	a.posted(rdma(signaled(uabi.WRRDMAWrite, 3), b, 16), a.sge(0, 9))
	assert.EqualValues(t, uabi.EventQPAccessErr, b.async().EventType, "remote write is taken away")
	must[uabi.None](b.program, uabi.CmdDeregMR, &uabi.DeregMR{MRHandle: b.mr.MRHandle})
}

// TestClosedFile: an open that is closed does nothing, and what it had is gone.
func TestClosedFile(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	v := a.verbs()
	a.file.Close()
	a.file.Close()
	assert.Nil(t, a.dev.QP(v.QPN()))
	_, err := write[uabi.AllocPDResp](a.program, uabi.CmdAllocPD, &uabi.AllocPD{})
	assert.Equal(t, syscall.EIO, errnoOf(t, err))
	<-b.verbs().Verbs().Done()
	n, err := syscall.Read(a.asyncFD, make([]byte, 16))
	assert.Equal(t, [2]any{0, nil}, [2]any{n, err}, "its asynchronous events end")
}

// TestInlineUnasked: a queue pair takes some inline data of who asked for none, and says so.
func TestInlineUnasked(t *testing.T) {
	p := newSide(started(t, Config{}), allRights)
	for asked, got := range map[uint32]uint32{0: minInline, minInline: minInline, minInline + 1: minInline + 1} {
		c := config(p.pd, p.cq, p.cq)
		c.MaxInlineData = asked
		assert.Equal(t, got, must[uabi.CreateQPResp](p.program, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: c}).MaxInlineData)
	}
}
