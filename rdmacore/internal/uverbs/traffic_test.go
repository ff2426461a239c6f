//go:build linux && (amd64 || arm64)

package uverbs

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

func signaled(op, id int) uabi.SendWR {
	return uabi.SendWR{WRID: uint64(id), Opcode: uint32(op), SendFlags: uabi.SendSignaled}
}

// rdma names the peer's memory.
func rdma(w uabi.SendWR, at *side, off int) uabi.SendWR {
	w.RemoteAddr, w.CompareAdd = at.mem+uint64(off), uint64(at.mr.Rkey)
	return w
}

func TestSendsAndReceives(t *testing.T) {
	a, b := pair(t, Config{}, uabi.AccessLocalWrite)
	a.fill(0, []byte("first second"))
	_, err := b.recv(7, b.sge(0, 4), b.sge(100, 60))
	require.NoError(t, err)
	a.posted(signaled(uabi.WRSend, 3), a.sge(0, 5), a.sge(6, 6))
	w := a.one()
	assert.Equal(t, [2]uint64{3, uabi.WCSend}, [2]uint64{w.WRID, uint64(w.Opcode)})
	w = b.one()
	assert.Equal(t, [3]uint64{7, uabi.WCRecv, 11}, [3]uint64{w.WRID, uint64(w.Opcode), uint64(w.ByteLen)})
	assert.Equal(t, "firs", string(b.read(0, 4)))
	assert.Equal(t, "tsecond", string(b.read(100, 7)))
}

func TestWritesAndReads(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	a.fill(0, []byte("there and back"))
	a.posted(rdma(signaled(uabi.WRRDMAWrite, 1), b, 256), a.sge(0, 14))
	a.posted(rdma(signaled(uabi.WRRDMARead, 2), b, 256), a.sge(512, 14))
	w := a.wait(2)
	assert.Equal(t, [2]uint32{uabi.WCRDMAWrite, uabi.WCRDMARead}, [2]uint32{w[0].Opcode, w[1].Opcode})
	assert.EqualValues(t, 14, w[1].ByteLen)
	assert.Equal(t, "there and back", string(b.read(256, 14)))
	assert.Equal(t, "there and back", string(a.read(512, 14)))
	a.posted(rdma(signaled(uabi.WRRDMARead, 3), b, 0))
	assert.EqualValues(t, 3, a.one().WRID, "a Read of nothing")
}

// TestReadsIntoSeveral: as an adapter for RoCE has it, and an RNIC not.
func TestReadsIntoSeveral(t *testing.T) {
	a, b := pair(t, Config{RoCE: true}, allRights)
	b.fill(64, []byte("one two three"))
	into := []uabi.SGE{a.sge(0, 4), a.sge(200, 0), a.sge(100, 4), a.sge(50, 5)}
	a.posted(rdma(signaled(uabi.WRRDMARead, 9), b, 64), into...)
	w := a.one()
	assert.Equal(t, [3]uint64{9, uabi.WCRDMARead, 13}, [3]uint64{w.WRID, uint64(w.Opcode), uint64(w.ByteLen)})
	assert.Equal(t, "one two three", string(a.read(0, 4))+string(a.read(100, 4))+string(a.read(50, 5)))
	assert.EqualValues(t, maxSGE, a.dev.maxReadSGE())

	_, err := a.together([]uabi.SendWR{{Opcode: uabi.WRRDMARead, NumSGE: 3, RemoteAddr: b.mem + 64, CompareAdd: uint64(b.mr.Rkey)}},
		a.sge(0, 4), uabi.SGE{Addr: a.mem, Length: 4, Lkey: 0x7777}, a.sge(8, 4))
	require.NoError(t, err)
	assert.EqualValues(t, uabi.WCLocProtErr, a.wait(1)[0].Status, "one for all of it")
	assert.Empty(t, a.poll(4))
	b.file.Close()

	a, b = pair(t, Config{}, allRights)
	assert.EqualValues(t, 1, a.dev.maxReadSGE())
	r, err := a.send(rdma(signaled(uabi.WRRDMARead, 9), b, 64), into...)
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
	assert.EqualValues(t, 1, r.BadWR)
}

// TestInline: the program changes its memory at once, which is not even registered.
func TestInline(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	own := a.alloc(64)
	for i := range 200 { // more than there are slots
		_, err := b.recv(uint64(i), b.sge(0, 64))
		require.NoError(t, err)
		require.NoError(t, umem.Write(own, bytes.Repeat([]byte{byte(i)}, 40)))
		w := signaled(uabi.WRSend, i)
		w.SendFlags |= uabi.SendInline
		a.posted(w, uabi.SGE{Addr: own, Length: 10}, uabi.SGE{Addr: own + 10, Length: 30})
		require.NoError(t, umem.Write(own, bytes.Repeat([]byte{0xff}, 40)))
		a.one()
		assert.EqualValues(t, 40, b.one().ByteLen)
		assert.Equal(t, bytes.Repeat([]byte{byte(i)}, 40), b.read(0, 40))
	}
	w := signaled(uabi.WRSend, 0)
	w.SendFlags |= uabi.SendInline
	r, err := a.send(w, uabi.SGE{Addr: own, Length: 257})
	assert.Equal(t, syscall.ENOMEM, errnoOf(t, err), "longer than max_inline_data")
	assert.EqualValues(t, 1, r.BadWR)
	_, err = a.send(w, uabi.SGE{Addr: 16, Length: 4})
	assert.Equal(t, syscall.EFAULT, errnoOf(t, err))
	a.posted(w, uabi.SGE{Addr: own, Length: 0})
}

// TestInlineFull: what is refused because the queue is full does not touch what waits in it.
func TestInlineFull(t *testing.T) {
	p := started(t, Config{})
	a, b := newSide(p, allRights), newSide(p, allRights)
	own := a.alloc(64)
	w := signaled(uabi.WRSend, 0)
	w.SendFlags |= uabi.SendInline
	n := int(a.qp.MaxSendWR)
	for i := range 3 * n {
		require.NoError(t, umem.Write(own, []byte{byte(i)}))
		_, err := a.send(w, uabi.SGE{Addr: own, Length: 1})
		if i < n {
			require.NoError(t, err)
			_, err = b.recv(uint64(i), b.sge(i, 1))
			require.NoError(t, err)
			continue
		}
		require.Equal(t, syscall.ENOMEM, errnoOf(t, err))
	}
	connect(t, a, b)
	b.wait(n)
	for i, got := range b.read(0, n) {
		assert.EqualValues(t, i, got)
	}
}

// TestImmediate: the four octets arrive as they were in memory, with how long the Write was.
func TestImmediate(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	for i := range uint64(2) {
		_, err := b.recv(i, b.sge(0, 64))
		require.NoError(t, err)
	}
	a.fill(0, []byte("with it"))
	w := rdma(signaled(uabi.WRRDMAWriteWithImm, 1), b, 128)
	w.Ex = [4]byte{0xde, 0xad, 0xbe, 0xef}
	a.posted(w, a.sge(0, 7))
	assert.EqualValues(t, uabi.WCRDMAWrite, a.one().Opcode)
	c := b.one()
	assert.Equal(t, [3]uint32{uabi.WCRecvRDMAWithImm, uabi.WCWithImm, 7}, [3]uint32{c.Opcode, c.WCFlags, c.ByteLen})
	assert.Equal(t, w.Ex, c.Ex)
	assert.Equal(t, "with it", string(b.read(128, 7)))

	w = signaled(uabi.WRSendWithImm, 2)
	w.Ex = [4]byte{1, 2, 3, 4}
	a.posted(w)
	assert.EqualValues(t, uabi.WCSend, a.one().Opcode)
	c = b.one()
	assert.Equal(t, [3]uint32{uabi.WCRecv, uabi.WCWithImm, 0}, [3]uint32{c.Opcode, c.WCFlags, c.ByteLen})
	assert.Equal(t, w.Ex, c.Ex)
	_, err := a.send(w, a.sge(0, 1))
	assert.Equal(t, syscall.EOPNOTSUPP, errnoOf(t, err), "RFC 7306 has no such message")
}

func TestAtomics(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	value := func(s *side, off int) uint64 { return binary.NativeEndian.Uint64(s.read(off, 8)) }
	b.fill(64, binary.NativeEndian.AppendUint64(nil, 40))
	atomic := func(op, id int, add, swap uint64) uabi.SendWR {
		w := signaled(op, id)
		w.RemoteAddr, w.CompareAdd, w.Swap, w.KeyOf = b.mem+64, add, swap, uint64(b.mr.Rkey)
		return w
	}
	a.posted(atomic(uabi.WRAtomicFetchAndAdd, 1, 2, 0), a.sge(0, 8))
	w := a.one()
	assert.Equal(t, [3]uint64{1, uabi.WCFetchAdd, 8}, [3]uint64{w.WRID, uint64(w.Opcode), uint64(w.ByteLen)})
	assert.EqualValues(t, 40, value(a, 0))
	assert.EqualValues(t, 42, value(b, 64))

	quiet := atomic(uabi.WRAtomicCmpAndSwp, 2, 42, 99)
	quiet.SendFlags = 0
	a.posted(quiet, a.sge(8, 8))
	a.posted(atomic(uabi.WRAtomicCmpAndSwp, 3, 42, 100), a.sge(16, 8))
	w = a.one()
	assert.Equal(t, [2]uint64{3, uabi.WCCompSwap}, [2]uint64{w.WRID, uint64(w.Opcode)}, "the program wants none of the one before")
	assert.Equal(t, [3]uint64{42, 99, 99}, [3]uint64{value(a, 8), value(a, 16), value(b, 64)})

	_, err := a.send(atomic(uabi.WRAtomicFetchAndAdd, 4, 1, 0), a.sge(0, 4))
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
	a.posted(atomic(uabi.WRAtomicFetchAndAdd, 5, 1, 0), uabi.SGE{Addr: a.mem + sideBytes - 4, Length: 8, Lkey: a.mr.Lkey})
	w = a.wait(1)[0]
	assert.Equal(t, [2]uint64{5, uabi.WCLocProtErr}, [2]uint64{w.WRID, uint64(w.Status)}, "the sink is not within its region")
}

// TestRights: what the program did not give the peer has not.
func TestRights(t *testing.T) {
	for name, c := range map[string]struct {
		rights uint32
		op     int
	}{
		"write": {uabi.AccessLocalWrite | uabi.AccessRemoteRead, uabi.WRRDMAWrite},
		"read":  {uabi.AccessLocalWrite | uabi.AccessRemoteWrite, uabi.WRRDMARead},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Config{}, c.rights)
			a.posted(rdma(signaled(c.op, 1), b, 0), a.sge(0, 8))
			e := b.async()
			assert.EqualValues(t, uabi.EventQPAccessErr, e.EventType)
			assert.EqualValues(t, 0xabcd, e.Element)
		})
	}
}
