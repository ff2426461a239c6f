package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func TestPagesRefusals(t *testing.T) {
	alloc := func(n int, size uint64) func(*world) error {
		return func(w *world) error { return second(w.nic.AllocatePages(n, size)) }
	}
	refuse(t, verbs.Config{}, []refusal{
		{"none", verbs.ErrInvalidLength, nil, alloc(0, 4096)},
		{"size", verbs.ErrInvalidPhysBufferSize, nil, alloc(1, 4097)},
		{"too many", verbs.ErrInsufficientResources, nil, alloc(253, 4096)},
		{
			"freed", verbs.ErrInvalidModifier,
			func(w *world) { require.NoError(w.t, w.pages.Deallocate()) },
			func(w *world) error { return w.pages.Deallocate() },
		},
		{
			"register: freed", verbs.ErrInvalidPhysBufferEntry,
			func(w *world) { require.NoError(w.t, w.pages.Deallocate()) },
			func(w *world) error {
				return second(w.pd.RegisterRegion(verbs.RegionConfig{Buffers: w.pages.List(0, 1), Access: localRights, VA: 4096}))
			},
		},
	})
	w := newWorld(t, verbs.Config{})
	require.NoError(t, w.pages.Deallocate())
	require.NoError(t, second(w.nic.AllocatePages(256, 4096)), "freed memory can be had again")
}

// TestPageAndBlockLists: any part of the pages as a list, in both modes (7.6.2).
func TestPageAndBlockLists(t *testing.T) {
	for _, c := range []struct {
		mode verbs.Mode
		size uint64
	}{{verbs.PageMode, 4096}, {verbs.BlockMode, 1000}, {verbs.BlockMode, 1}} {
		w := newWorld(t, verbs.Config{Mode: c.mode})
		p, err := w.nic.AllocatePages(60, c.size)
		require.NoError(t, err)
		assert.Equal(t, c.size, p.Size())
		assert.Len(t, p.Bytes(), 60*int(c.size))
		size := int(c.size)
		for _, r := range []struct{ off, n, entries int }{
			{0, 1, 1}, {0, size, 1}, {0, size + 1, 2}, {size - 1, 2, 2}, {size, size, 1}, {size / 2, 60*size - size/2, 60},
		} {
			if size == 1 {
				r.entries = r.n
			}
			list := p.List(r.off, r.n)
			assert.Equal(t, verbs.PhysicalBuffers{
				Size: c.size, FBO: uint64(r.off % size), Length: uint64(r.n),
				Addresses: p.Addresses()[r.off/size : r.off/size+r.entries],
			}, list)
			assert.Equal(t, p.Address(r.off/size), list.Addresses[0])
			mr, err := w.pd.RegisterRegion(verbs.RegionConfig{Buffers: list, Access: localRights, VA: c.size*99 + list.FBO})
			require.NoError(t, err)
			assert.Equal(t, r.n, mr.Len())
			require.NoError(t, mr.Deregister())
		}
	}
}

// TestSTagZero: local use of physical memory by a privileged queue pair (7.2.1).
func TestSTagZero(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	require.NoError(t, w.qp.Destroy())
	var err error
	w.qp, err = w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, Privileged: true})
	require.NoError(t, err)
	w.connect()
	copy(w.pages.Bytes()[5:], "physical")
	physical := verbs.TaggedBuffer{Base: w.pages.Address(0)}
	c := w.run(verbs.Request{Op: verbs.OpWrite, SGL: physical.SGL(5, 8), Remote: w.peer.mr.Remote(0)})
	require.Equal(t, verbs.StatusSuccess, c.Status)
	require.NoError(t, second(w.peer.qp.PostRecv(verbs.Recv{})))
	c = w.run(verbs.Request{}) // the write has been placed before this arrives
	require.Equal(t, verbs.StatusSuccess, c.Status)
	w.peer.wait(t, 1)
	assert.Equal(t, "physical", string(w.peer.mr.Bytes()[:8]))

	unprivileged := w.sharing
	peer := newNode(t, verbs.QPConfig{})
	join(t, unprivileged, peer.qp, false)
	require.NoError(t, second(unprivileged.PostSend(verbs.Request{SGL: physical.SGL(5, 8)})))
	assert.Equal(t, verbs.StatusInvalidSTag, waitOne(t, w.cq).Status)
	<-unprivileged.Done()
}

// TestFastRegister: memory under an allocated STag by work request, and again
// after an invalidation (7.3.2.5).
func TestFastRegister(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	require.NoError(t, w.qp.Destroy())
	var err error
	w.qp, err = w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, Privileged: true})
	require.NoError(t, err)
	w.connect()
	mr, err := w.pd.AllocateRegion(verbs.AllocateConfig{PBL: 4, RemoteAccess: true})
	require.NoError(t, err)
	for round := range 3 {
		f := verbs.FastRegisterRequest{
			STag: mr.WithKey(uint8(round)), Buffers: w.pages.List(round, 5000),
			Addressing: verbs.ZeroBased, Access: allRights,
		}
		if round == 1 {
			f.Addressing, f.VA = verbs.VABased, 1<<20+1
		}
		buffer := verbs.FastRegisterBuffer(&f)
		assert.Equal(t, verbs.TaggedBuffer{STag: f.STag, Base: f.VA}, buffer)
		require.Equal(t, verbs.StatusSuccess, w.run(verbs.Request{Op: verbs.OpFastRegister, FastRegister: &f}).Status)
		a, err := mr.Query()
		require.NoError(t, err)
		assert.Equal(t, []any{f.STag, true, uint64(5000)}, []any{a.STag, a.Valid, a.Length})
		w.peer.mr.Bytes()[0] = byte(round + 1)
		require.NoError(t, second(w.peer.qp.PostSend(
			verbs.Request{Op: verbs.OpWrite, SGL: w.peer.mr.SGL(0, 1), Remote: buffer.Remote(4999)},
			verbs.Request{Op: verbs.OpRead, Local: w.peer.mr.SGE(9, 1), Remote: buffer.Remote(4999)})))
		w.peer.wait(t, 2)
		assert.Equal(t, byte(round+1), w.pages.Bytes()[round+4999])
		assert.Equal(t, byte(round+1), w.peer.mr.Bytes()[9])
		if round < 2 {
			require.Equal(t, verbs.StatusSuccess, w.run(verbs.Request{Op: verbs.OpInvalidate, Invalidate: f.STag}).Status)
		}
	}
	// The key of the Fast-Register is the one that counts (RV-7.3.2.4-M3).
	require.NoError(t, w.mr.Deregister())
	shared := verbs.SharedConfig{Access: localRights, ZeroBased: true}
	require.ErrorIs(t, second(mr.RegisterShared(nil, shared)), verbs.ErrInvalidSTag)
	shared.Existing = mr.WithKey(2)
	require.NoError(t, second(mr.RegisterShared(nil, shared)))
}

// TestFastRegisterSizes: a buffer size that is not supported has a status of its
// own in each mode (figure 36), which ends the stream.
func TestFastRegisterSizes(t *testing.T) {
	for mode, want := range map[verbs.Mode]verbs.Status{
		verbs.PageMode: verbs.StatusInvalidPageSize, verbs.BlockMode: verbs.StatusInvalidPhysBufferSize,
	} {
		w := newWorld(t, verbs.Config{Mode: mode})
		require.NoError(t, w.qp.Destroy())
		var err error
		w.qp, err = w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, Privileged: true})
		require.NoError(t, err)
		w.connect()
		mr, err := w.pd.AllocateRegion(verbs.AllocateConfig{})
		require.NoError(t, err)
		f := verbs.FastRegisterRequest{STag: mr.STag(), Buffers: w.pages.List(0, 8), Addressing: verbs.ZeroBased, Access: localRights}
		f.Buffers.Size = 1<<30 + 1
		assert.Equal(t, want, w.run(verbs.Request{Op: verbs.OpFastRegister, FastRegister: &f}).Status)
		<-w.qp.Done()
	}
}
