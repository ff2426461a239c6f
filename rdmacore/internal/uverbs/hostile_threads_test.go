//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// atOnce calls f in so many threads that begin together, each with a program of its own memory.
func atOnce(p *program, threads int, f func(n int, p *program)) {
	begin := make(chan struct{})
	var all sync.WaitGroup
	for n := range threads {
		p := p.thread()
		all.Go(func() {
			<-begin
			f(n, p)
		})
	}
	close(begin)
	all.Wait()
}

// TestDestroyedAtOnce: of eight threads that destroy the same object at once, one does. The others, and those that use it
// meanwhile, are refused or are done before.
func TestDestroyedAtOnce(t *testing.T) {
	const threads = 8
	p := started(t, Config{})
	pd, cq := p.pd(), p.cq(16, -1)
	made := func() (qp uabi.CreateQPResp) { return p.qp(pd, cq, cq) }
	none := func(p *program, number uint32, handle uint32) error {
		_, err := write[uabi.None](p, number, &uabi.DeregMR{MRHandle: handle}) // each is a handle
		return err
	}
	for name, kind := range map[string]struct {
		make    func() uint32
		destroy func(p *program, handle uint32) error
		use     func(p *program, handle uint32)
	}{
		"PD": {p.pd, func(p *program, h uint32) error { return none(p, uabi.CmdDeallocPD, h) }, func(p *program, h uint32) {
			r, err := write[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{PDHandle: h, MaxWR: 8, MaxSGE: 1})
			if err == nil {
				_, err = write[uabi.DestroySRQResp](p, uabi.CmdDestroySRQ, &uabi.DestroySRQ{SRQHandle: r.SRQHandle})
				assert.NoError(t, err)
			}
		}},
		"region": {
			func() uint32 { _, mr := p.region(pd, 4096, allRights); return mr.MRHandle },
			func(p *program, h uint32) error { return none(p, uabi.CmdDeregMR, h) },
			func(p *program, h uint32) {
				_, _ = write[uabi.ReregMRResp](p, uabi.CmdReregMR, &uabi.ReregMR{MRHandle: h, Flags: 4, AccessFlags: uabi.AccessLocalWrite})
			},
		},
		"CQ": {func() uint32 { return p.cq(16, -1) }, func(p *program, h uint32) error {
			_, err := write[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: h})
			return err
		}, func(p *program, h uint32) {
			_, _ = write[uabi.None](p, uabi.CmdReqNotifyCQ, &uabi.ReqNotifyCQ{CQHandle: h})
			_, _ = write[uabi.ResizeCQResp](p, uabi.CmdResizeCQ, &uabi.ResizeCQ{CQHandle: h, CQE: 32})
		}},
		"QP": {func() uint32 { return made().QPHandle }, func(p *program, h uint32) error {
			_, err := write[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: h})
			return err
		}, func(p *program, h uint32) {
			_, _ = write[uabi.None](p, uabi.CmdModifyQP, &uabi.ModifyQP{QPHandle: h, AttrMask: uabi.QPState, QPState: uabi.QPSInit})
			_, _ = write[uabi.None](p, uabi.CmdModifyQP, &uabi.ModifyQP{QPHandle: h, AttrMask: uabi.QPState, QPState: uabi.QPSErr})
		}},
		"S-RQ": {func() uint32 {
			return must[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{PDHandle: pd, MaxWR: 8, MaxSGE: 1}).SRQHandle
		}, func(p *program, h uint32) error {
			_, err := write[uabi.DestroySRQResp](p, uabi.CmdDestroySRQ, &uabi.DestroySRQ{SRQHandle: h})
			return err
		}, func(p *program, h uint32) {
			_, _ = write[uabi.None](p, uabi.CmdModifySRQ, &uabi.ModifySRQ{SRQHandle: h, AttrMask: 2, SRQLimit: 1})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				handle := kind.make()
				var destroyed atomic.Int32
				atOnce(p, threads+2, func(n int, p *program) {
					if n >= threads {
						kind.use(p, handle)
						return
					}
					switch no := errnoOf(t, kind.destroy(p, handle)); no {
					case 0:
						destroyed.Add(1)
					default:
						assert.Contains(t, []syscall.Errno{syscall.ENOENT, syscall.EBUSY, syscall.EINVAL}, no)
					}
				})
				if destroyed.Load() == 0 { // who used it was in the way
					require.NoError(t, kind.destroy(p, handle))
					destroyed.Add(1)
				}
				require.EqualValues(t, 1, destroyed.Load())
				require.Error(t, kind.destroy(p, handle))
			}
		})
	}
	must[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: cq})
	must[uabi.None](p, uabi.CmdDeallocPD, &uabi.DeallocPD{PDHandle: pd})
}

// TestDestroyedUnderTraffic: a connected queue pair, its region and its CQ are destroyed by several threads while others
// post to it and poll.
func TestDestroyedUnderTraffic(t *testing.T) {
	for range 10 {
		a, b := pair(t, Config{}, allRights)
		b.receives(0, 16)
		var destroyed atomic.Int32
		atOnce(a.program, 6, func(n int, p *program) {
			s := *a
			s.program = p
			switch n {
			case 0, 1:
				for i := range 50 {
					_, _ = s.send(signaled(uabi.WRSend, i), s.sge(0, 8))
				}
			case 2:
				for range 50 {
					_, _ = write[uabi.PollCQResp](p, uabi.CmdPollCQ, &uabi.PollCQ{CQHandle: s.cq, NE: 1})
				}
			case 3:
				_, _ = write[uabi.None](p, uabi.CmdDeregMR, &uabi.DeregMR{MRHandle: s.mr.MRHandle})
			default:
				if _, err := write[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: s.qp.QPHandle}); err == nil {
					destroyed.Add(1)
				}
			}
		})
		require.EqualValues(t, 1, destroyed.Load())
		a.file.Close()
		b.file.Close()
	}
}

// TestEveryLength: every command, of every length up to more than the longest has, of zeros, of ones, and of handles and
// addresses that are there. Nothing panics, and what is refused has a reason.
func TestEveryLength(t *testing.T) {
	for number := range uint32(64) {
		for _, extended := range []uint32{0, uabi.FlagExtended} {
			a, _ := pair(t, Config{}, allRights)
			for words := range 60 {
				for _, fill := range []func(i int) uint32{
					func(int) uint32 { return 0 },
					func(int) uint32 { return ^uint32(0) },
					func(i int) uint32 { return uint32(a.mem >> (32 * (i & 1))) },
					func(i int) uint32 { return []uint32{uint32(a.mem), uint32(a.mem >> 32), 1}[min(i, 2)] },
				} {
					body := make([]byte, 0, 4*words)
					for i := range words {
						body = binary.NativeEndian.AppendUint32(body, fill(i))
					}
					head := header(number, (8+len(body))/4, 1024)
					if extended != 0 {
						if len(body)%8 != 0 {
							continue
						}
						x := uabi.ExCmdHdr{Response: a.alloc(4096)}
						head = join(header(number|extended, len(body)/8, 256/8), umem.Bytes(&x))
					}
					_ = errnoOf(t, a.raw(join(head, body)))
					if len(body) > 0 {
						_ = errnoOf(t, a.raw(join(head, body)[:len(head)+len(body)-1])) // less than the header says
					}
				}
			}
			a.file.Close()
		}
	}
}
