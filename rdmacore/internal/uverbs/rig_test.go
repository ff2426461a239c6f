//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A program is what libibverbs and a C program are to an open of the device: it has memory, and writes
// commands that lie there.
type program struct {
	t    testing.TB
	dev  *Device
	file *File
	mem  []byte // mapped, zero
	base uint64
	used atomic.Uint64
	// waited counts the posts that did not come to the device by themselves.
	waited atomic.Int64
	// asyncFD is where asynchronous events come.
	asyncFD int
}

// async reads an asynchronous event; it waits for one.
func (p *program) async() (e uabi.AsyncEventDesc) {
	p.t.Helper()
	n, err := syscall.Read(p.asyncFD, umem.Bytes(&e))
	require.NoError(p.t, err)
	require.Equal(p.t, size[uabi.AsyncEventDesc](), n)
	return e
}

// rings are those of all programs, and opens how many there were.
var (
	rings     Rings
	postRings PostRings
	opens     atomic.Uint32
)

const programMemory = 1 << 20

func open(t testing.TB, c Config) *program {
	t.Helper()
	if !c.Addr.IsValid() {
		c.Addr = netip.MustParseAddr("127.0.0.1")
	}
	d, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return openOf(t, d)
}

func openOf(t testing.TB, d *Device) *program {
	t.Helper()
	p := &program{t: t, dev: d, file: d.Open()}
	p.file.Share(&rings, &postRings, int(opens.Add(1)))
	p.mem = mapped(t, programMemory)
	p.base = umem.Address(p.mem)
	return p
}

// started is open with a context.
func started(t testing.TB, c Config) *program {
	t.Helper()
	p := open(t, c)
	p.context()
	return p
}

// guard is what is around a program's memory: nothing is mapped there, so that what goes beyond it is noticed.
const guard = 1 << 16

func mapped(t testing.TB, n int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n+2*guard, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(m) })
	require.NoError(t, unix.Mprotect(m[guard:guard+n], unix.PROT_READ|unix.PROT_WRITE))
	return m[guard : guard+n : guard+n]
}

func (p *program) context() uabi.GetContextResp {
	p.t.Helper()
	r := must[uabi.GetContextResp](p, uabi.CmdGetContext, &uabi.GetContext{})
	fd := int(r.AsyncFD)
	p.asyncFD = fd
	p.t.Cleanup(func() { _ = syscall.Close(fd) })
	return r
}

// alloc is n octets of the program's memory, aligned to 64.
func (p *program) alloc(n int) uint64 {
	k := uint64(n+63) &^ 63
	at := p.used.Add(k) - k
	if at+k > programMemory {
		p.used.Store(0)
		return p.alloc(n)
	}
	return p.base + at
}

// enter writes the command of n octets at addr, as the preload library does: a post that may wait does not come to the device.
func (p *program) enter(addr uint64, n int) (int, error) {
	c, err := umem.Slice(addr, uint64(n))
	if err != nil || n < hdrSize+size[uabi.PostSend]() {
		return p.file.Write(addr, n)
	}
	command, h := view[uabi.CmdHdr](c).Command, *view[uabi.PostSend](c[hdrSize:])
	queue, stride := sendQueue, postSize
	switch command {
	case uabi.CmdPostSend:
	case uabi.CmdPostRecv:
		queue, stride = recvQueue, size[uabi.RecvWR]()
	default:
		return p.file.Write(addr, n)
	}
	body := c[hdrSize+size[uabi.PostSend]():]
	if h.WRCount != 1 || h.SGECount != 1 || int(h.WQESize) != stride || len(body) != stride+sgeSize {
		return p.file.Write(addr, n)
	}
	if w := view[uabi.RecvWR](body); queue == sendQueue && !mayWait(view[uabi.SendWR](body[:stride])) || w.NumSGE != 1 || p.file.posts == nil {
		return p.file.Write(addr, n)
	}
	r := &p.file.posts[(h.QPHandle*2+uint32(queue)+p.file.ringID*37)%uint32(len(p.file.posts))]
	if !r.busy.CompareAndSwap(0, 1) {
		return p.file.Write(addr, n)
	}
	limit, at := r.limit.Load(), r.put.Load()
	in := at < limit && r.key.Load() == uint64(p.file.ringID)<<32|uint64(h.QPHandle)
	if in {
		_ = umem.Store(h.Response, new(uint32))
		copy(r.wrs[at*postSize:], body[:stride])
		copy(r.sges[at*sgeSize:], body[stride:])
		r.put.Store(at + 1)
		p.waited.Add(1)
	}
	r.busy.Store(0)
	if in {
		return n, nil
	}
	return p.file.Write(addr, n)
}

func mayWait(w *uabi.SendWR) bool {
	return w.SendFlags&uabi.SendInline == 0 && (w.Opcode == uabi.WRRDMAWrite || w.Opcode == uabi.WRSend || w.Opcode == uabi.WRRDMARead)
}

// write writes a command of its header, struct and tail, and reads its response, for which there is room behind it.
func write[R, Q any](p *program, number uint32, q *Q, tail ...[]byte) (r R, err error) {
	body := umem.Bytes(q)
	for _, b := range tail {
		body = append(body[:len(body):len(body)], b...)
	}
	resp := p.alloc(size[R]() + 8)
	if size[R]() > 0 && len(body) >= 8 {
		body = append([]byte(nil), body...)
		*view[uint64](body) = resp
	}
	n := hdrSize + len(body)
	at := p.alloc(n)
	h := uabi.CmdHdr{Command: number, InWords: uint16(n / 4), OutWords: uint16(size[R]() / 4)}
	_ = umem.Store(at, &h)
	_ = umem.Write(at+uint64(hdrSize), body)
	k, err := p.enter(at, n)
	if err == nil {
		assert.Equal(p.t, n, k)
	}
	_ = umem.Read(umem.Bytes(&r), resp)
	return r, err
}

// must is write of a command that succeeds.
func must[R, Q any](p *program, number uint32, q *Q, tail ...[]byte) R {
	p.t.Helper()
	r, err := write[R](p, number, q, tail...)
	require.NoError(p.t, err)
	return r
}

// errnoOf is the errno of a command that is refused; 0 if it is not.
func errnoOf(t testing.TB, err error) syscall.Errno {
	t.Helper()
	if err == nil {
		return 0
	}
	var r *Refusal
	require.True(t, errors.As(err, &r), "%v", err)
	assert.NotEmpty(t, r.Why)
	return r.Errno
}

func (p *program) pd() uint32 {
	p.t.Helper()
	return must[uabi.AllocPDResp](p, uabi.CmdAllocPD, &uabi.AllocPD{}).PDHandle
}

func (p *program) cq(cqe int, channel int32) uint32 {
	p.t.Helper()
	return must[uabi.CreateCQResp](p, uabi.CmdCreateCQ, &uabi.CreateCQ{UserHandle: 0xc0ffee, CQE: uint32(cqe), CompChannel: channel}).CQHandle
}

func (p *program) region(pd uint32, n int, access uint32) (uint64, uabi.RegMRResp) {
	p.t.Helper()
	b := mapped(p.t, (n+os.Getpagesize()-1)&^(os.Getpagesize()-1))
	at := umem.Address(b)
	return at, must[uabi.RegMRResp](p, uabi.CmdRegMR, &uabi.RegMR{Start: at, Length: uint64(n), HCAVA: at, PDHandle: pd, AccessFlags: access})
}

func (p *program) qp(pd, send, recv uint32) uabi.CreateQPResp {
	p.t.Helper()
	return must[uabi.CreateQPResp](p, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: config(pd, send, recv)})
}

func config(pd, send, recv uint32) uabi.QPConfig {
	return uabi.QPConfig{
		UserHandle: 0xabcd, PDHandle: pd, SendCQHandle: send, RecvCQHandle: recv, MaxSendWR: 32, MaxRecvWR: 32, MaxSendSGE: 4, MaxRecvSGE: 4,
		MaxInlineData: 256, QPType: uabi.QPTRC,
	}
}
