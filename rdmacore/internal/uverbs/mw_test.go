//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

const windowed = allRights | uabi.AccessMWBind

// window allocates one on b.
func (s *side) window(kind uint8) uabi.AllocMWResp {
	s.t.Helper()
	return must[uabi.AllocMWResp](s.program, uabi.CmdAllocMW, &uabi.AllocMW{PDHandle: s.pd, MWType: kind})
}

// bound is a request to bind n octets of s from off on, under the key of that number.
func (s *side) bound(w uabi.AllocMWResp, how uint32, key uint8, off, n int, access uint32) uabi.SendWR {
	r := signaled(uabi.WRBindMW, int(key))
	binary.NativeEndian.PutUint32(r.Ex[:], w.Rkey&^0xff|uint32(key))
	r.SetBind(uabi.Bind{Addr: s.mem + uint64(off), Length: uint64(n), Window: w.MWHandle, Access: access, Lkey: s.mr.Lkey, How: how})
	return r
}

// through is a Write or Read of s through a window of its peer.
func (s *side) through(peer *side, w uabi.AllocMWResp, op int, key uint8, off int) uint32 {
	s.t.Helper()
	r := signaled(op, 99)
	r.RemoteAddr, r.CompareAdd = peer.mem+uint64(off), uint64(w.Rkey&^0xff|uint32(key))
	s.posted(r, s.sge(0, 8))
	return s.wait(1)[0].Status
}

func (s *side) binds(r uabi.SendWR) uabi.WC {
	s.t.Helper()
	s.posted(r)
	c := s.one()
	assert.EqualValues(s.t, uabi.WCBindMW, c.Opcode)
	assert.Equal(s.t, r.WRID, c.WRID)
	return c
}

// TestWindows: what each type does from its allocation on. Both ends are RoCE's, where a Write tells how it went.
func TestWindows(t *testing.T) {
	t.Run("type 1", func(t *testing.T) {
		a, b := pair(t, Config{RoCE: true}, windowed)
		w := b.window(1)
		b.binds(b.bound(w, uabi.BindByVerb, 1, 64, 128, uabi.AccessRemoteWrite))
		a.fill(0, []byte("to there"))
		assert.EqualValues(t, uabi.WCSuccess, a.through(b, w, uabi.WRRDMAWrite, 1, 64))
		assert.Equal(t, "to there", string(b.read(64, 8)))
		// Bound anew without an invalidation, elsewhere and for Reads.
		b.binds(b.bound(w, uabi.BindByVerb, 2, 512, 8, uabi.AccessRemoteRead))
		b.fill(512, []byte("from her"))
		assert.EqualValues(t, uabi.WCSuccess, a.through(b, w, uabi.WRRDMARead, 2, 512))
		assert.Equal(t, "from her", string(a.read(0, 8)))
		// No octet: nobody gets in.
		b.binds(b.bound(w, uabi.BindByVerb, 3, 0, 0, 0))
		assert.EqualValues(t, uabi.WCRemAccessErr, a.through(b, w, uabi.WRRDMARead, 3, 512))
	})
	t.Run("an old key", func(t *testing.T) {
		a, b := pair(t, Config{RoCE: true}, windowed)
		w := b.window(1)
		b.binds(b.bound(w, uabi.BindByVerb, 1, 64, 128, uabi.AccessRemoteWrite))
		b.binds(b.bound(w, uabi.BindByVerb, 2, 64, 128, uabi.AccessRemoteWrite))
		assert.EqualValues(t, uabi.WCRemAccessErr, a.through(b, w, uabi.WRRDMAWrite, 1, 64))
	})
	t.Run("type 2", func(t *testing.T) {
		a, b := pair(t, Config{RoCE: true}, windowed)
		w := b.window(2)
		b.binds(b.bound(w, uabi.BindByRequest, 7, 64, 128, uabi.AccessRemoteWrite))
		assert.EqualValues(t, uabi.WCSuccess, a.through(b, w, uabi.WRRDMAWrite, 7, 64))
		inv := signaled(uabi.WRLocalInv, 5)
		binary.NativeEndian.PutUint32(inv.Ex[:], w.Rkey|7)
		b.posted(inv)
		assert.EqualValues(t, uabi.WCLocalInv, b.one().Opcode)
		// By the peer, and then the key means nothing.
		b.binds(b.bound(w, uabi.BindByRequest, 8, 64, 128, uabi.AccessRemoteWrite))
		_, err := b.recv(1)
		require.NoError(t, err)
		inv = signaled(uabi.WRSendWithInv, 6)
		binary.NativeEndian.PutUint32(inv.Ex[:], w.Rkey|8)
		a.posted(inv)
		a.one()
		c := b.one()
		assert.Equal(t, w.Rkey|8, binary.NativeEndian.Uint32(c.Ex[:]))
		assert.NotZero(t, c.WCFlags&uabi.WCWithInvalidate)
		assert.EqualValues(t, uabi.WCRemAccessErr, a.through(b, w, uabi.WRRDMAWrite, 8, 64))
	})
	t.Run("type 2 is bound once", func(t *testing.T) {
		_, b := pair(t, Config{RoCE: true}, windowed)
		w := b.window(2)
		b.binds(b.bound(w, uabi.BindByRequest, 7, 64, 128, uabi.AccessRemoteWrite))
		b.posted(b.bound(w, uabi.BindByRequest, 8, 64, 128, uabi.AccessRemoteWrite))
		assert.EqualValues(t, uabi.WCMWBindErr, b.wait(1)[0].Status)
	})
	t.Run("no right", func(t *testing.T) {
		a, b := pair(t, Config{RoCE: true}, windowed)
		w := b.window(2)
		b.binds(b.bound(w, uabi.BindByRequest, 7, 64, 128, uabi.AccessLocalWrite))
		assert.EqualValues(t, uabi.WCRemAccessErr, a.through(b, w, uabi.WRRDMAWrite, 7, 64))
	})
	t.Run("zero-based", func(t *testing.T) {
		a, b := pair(t, Config{RoCE: true}, windowed)
		w := b.window(2)
		b.binds(b.bound(w, uabi.BindByRequest, 7, 64, 128, uabi.AccessRemoteWrite|uabi.AccessZeroBased))
		a.fill(0, []byte("at zero!"))
		r := signaled(uabi.WRRDMAWrite, 1)
		r.RemoteAddr, r.CompareAdd = 8, uint64(w.Rkey|7)
		a.posted(r, a.sge(0, 8))
		a.one()
		assert.Equal(t, "at zero!", string(b.read(72, 8)))
	})
	t.Run("a region without the right", func(t *testing.T) {
		_, b := pair(t, Config{RoCE: true}, allRights)
		w := b.window(2)
		b.posted(b.bound(w, uabi.BindByRequest, 7, 64, 128, uabi.AccessRemoteWrite))
		assert.EqualValues(t, uabi.WCMWBindErr, b.wait(1)[0].Status)
	})
	t.Run("deallocated", func(t *testing.T) {
		a, b := pair(t, Config{RoCE: true}, windowed)
		w := b.window(2)
		b.binds(b.bound(w, uabi.BindByRequest, 7, 64, 128, uabi.AccessRemoteWrite))
		must[uabi.None](b.program, uabi.CmdDeallocMW, &uabi.DeallocMW{MWHandle: w.MWHandle})
		assert.EqualValues(t, uabi.WCRemAccessErr, a.through(b, w, uabi.WRRDMAWrite, 7, 64))
	})
}

// TestWindowsRefused: what is wrong with an allocation or a bind is said at once, and takes no place in the queue.
func TestWindowsRefused(t *testing.T) {
	_, b := pair(t, Config{}, windowed)
	_, err := write[uabi.AllocMWResp](b.program, uabi.CmdAllocMW, &uabi.AllocMW{PDHandle: b.pd, MWType: 3})
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
	_, err = write[uabi.AllocMWResp](b.program, uabi.CmdAllocMW, &uabi.AllocMW{PDHandle: 99, MWType: 1})
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
	_, err = write[uabi.None](b.program, uabi.CmdDeallocMW, &uabi.DeallocMW{MWHandle: 99})
	assert.Equal(t, syscall.ENOENT, errnoOf(t, err))
	one, two := b.window(1), b.window(2)
	good := b.bound(two, uabi.BindByRequest, 1, 0, 8, uabi.AccessRemoteRead)
	for name, change := range map[string]func(w *uabi.SendWR, d *uabi.Bind){
		"no window":        func(_ *uabi.SendWR, d *uabi.Bind) { d.Window = 99 },
		"type 1":           func(_ *uabi.SendWR, d *uabi.Bind) { d.Window = one.MWHandle },
		"by the verb":      func(_ *uabi.SendWR, d *uabi.Bind) { d.How = uabi.BindByVerb },
		"by nothing":       func(_ *uabi.SendWR, d *uabi.Bind) { d.How = 0 },
		"another's index":  func(w *uabi.SendWR, _ *uabi.Bind) { binary.NativeEndian.PutUint32(w.Ex[:], one.Rkey) },
		"a right to bind":  func(_ *uabi.SendWR, d *uabi.Bind) { d.Access |= uabi.AccessMWBind },
		"an unknown right": func(_ *uabi.SendWR, d *uabi.Bind) { d.Access |= 1 << 30 },
	} {
		t.Run(name, func(t *testing.T) {
			w, d := good, good.Bind()
			change(&w, &d)
			w.SetBind(d)
			r, err := b.send(w)
			assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
			assert.EqualValues(t, 1, r.BadWR)
		})
	}
	b.binds(good)
	must[uabi.None](b.program, uabi.CmdDeallocMW, &uabi.DeallocMW{MWHandle: one.MWHandle})
}

// TestWindowsAndTheRest: a region with a window stays, a queue pair goes, and takes the window's use with it. Nothing is
// left of a program that ends with windows.
func TestWindowsAndTheRest(t *testing.T) {
	leakcheck.Inventory(t)
	a, b := pair(t, Config{RoCE: true}, windowed)
	for i := range 3 {
		w := b.window(uint8(1 + i%2))
		b.binds(b.bound(w, uint32(1+i%2), 1, 0, 64, uabi.AccessRemoteRead))
	}
	a.binds(a.bound(a.window(2), uabi.BindByRequest, 1, 0, 64, uabi.AccessRemoteRead))
	_, err := write[uabi.None](b.program, uabi.CmdDeregMR, &uabi.DeregMR{MRHandle: b.mr.MRHandle})
	assert.Equal(t, syscall.EBUSY, errnoOf(t, err))
	of := b.file.tags[b.mr.Lkey]
	_, err = write[uabi.ReregMRResp](b.program, uabi.CmdReregMR, &uabi.ReregMR{MRHandle: b.mr.MRHandle, Flags: uabi.ReregAccess, AccessFlags: windowed})
	assert.Equal(t, syscall.EBUSY, errnoOf(t, err))
	assert.Same(t, of, b.file.tags[b.mr.Lkey], "it is as it was")
	must[uabi.DestroyQPResp](b.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: b.qp.QPHandle})
	must[uabi.None](b.program, uabi.CmdDeregMR, &uabi.DeregMR{MRHandle: b.mr.MRHandle})
	_, err = write[uabi.None](b.program, uabi.CmdDeallocPD, &uabi.DeallocPD{PDHandle: b.pd})
	assert.Equal(t, syscall.EBUSY, errnoOf(t, err), "the windows are in it")
	b.file.Close()
	a.file.Close()
}

// TestInvalidations: of an STag without a completion there is none, unless it fails; and many have room.
func TestInvalidations(t *testing.T) {
	_, b := pair(t, Config{}, windowed)
	w := b.window(2)
	for i := range 300 {
		key := uint8(i)
		bind := b.bound(w, uabi.BindByRequest, key, 0, 8, uabi.AccessRemoteRead)
		bind.SendFlags = 0
		b.posted(bind)
		inv := signaled(uabi.WRLocalInv, i)
		binary.NativeEndian.PutUint32(inv.Ex[:], w.Rkey|uint32(key))
		if i%8 != 7 {
			inv.SendFlags = 0
		}
		b.posted(inv)
		if i%8 == 7 {
			c := b.one()
			assert.Equal(t, [2]uint64{uint64(i), uabi.WCLocalInv}, [2]uint64{c.WRID, uint64(c.Opcode)})
		}
	}
	bad := signaled(uabi.WRLocalInv, 1000)
	bad.SendFlags = 0
	binary.NativeEndian.PutUint32(bad.Ex[:], ^uint32(0))
	b.posted(bad)
	c := b.wait(1)[0]
	assert.Equal(t, [3]uint64{1000, uabi.WCLocalInv, uabi.WCLocProtErr}, [3]uint64{c.WRID, uint64(c.Opcode), uint64(c.Status)})
}
