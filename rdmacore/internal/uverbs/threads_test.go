//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// TestThreads: sixteen threads post to one queue pair and poll one queue; every request completes once, and every
// message arrives once.
func TestThreads(t *testing.T) {
	const threads, each = 16, 200
	a, b := pair(t, Config{}, allRights)
	var sent, received [threads * each]int
	var mu sync.Mutex
	left := threads * each
	receive := func(b *side, i int) {
		_, err := b.recv(uint64(i), b.sge(64*(i%32), 8))
		assert.NoError(t, err)
	}
	for i := range 32 {
		receive(b, i)
	}
	credits := make(chan struct{}, 24) // how many Sends may be outstanding
	for range cap(credits) {
		credits <- struct{}{}
	}
	done := make(chan struct{})
	var posters, pollers sync.WaitGroup
	for n := range threads {
		posters.Add(1)
		go func() {
			defer posters.Done()
			a := a.thread()
			own := umem.Address(mapped(t, 4096))
			for i := range each {
				<-credits
				id := uint64(n*each + i)
				_ = umem.Store(own, &id)
				w := signaled(uabi.WRSend, int(id))
				w.SendFlags |= uabi.SendInline
				r, err := a.send(w, uabi.SGE{Addr: own, Length: 8})
				assert.NoError(t, err, "%+v", r)
			}
		}()
	}
	for range threads {
		pollers.Add(1)
		go func() {
			defer pollers.Done()
			a, b := a.thread(), b.thread()
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, w := range a.poll(4) {
					mu.Lock()
					sent[w.WRID]++
					mu.Unlock()
					credits <- struct{}{}
				}
				for _, w := range b.poll(4) {
					var id uint64
					_ = umem.Read(umem.Bytes(&id), b.mem+64*(w.WRID%32))
					receive(b, int(w.WRID))
					mu.Lock()
					received[id]++
					left--
					if left == 0 {
						close(done)
					}
					mu.Unlock()
				}
			}
		}()
	}
	posters.Wait()
	<-done
	pollers.Wait()
	for len(credits) < cap(credits) {
		for _, w := range a.poll(4) {
			sent[w.WRID]++
			credits <- struct{}{}
		}
	}
	for i := range sent {
		require.Equal(t, [2]int{1, 1}, [2]int{sent[i], received[i]}, "message %d", i)
	}
}

// TestThreadsOfObjects: sixteen threads make and destroy objects of one context, and another is closed meanwhile.
func TestThreadsOfObjects(t *testing.T) {
	p := started(t, Config{})
	o := openOf(t, p.dev)
	o.context()
	shared := p.pd()
	var wg sync.WaitGroup
	for range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p, o := p.thread(), o.thread()
			for range 20 {
				fd := p.channel()
				cq := p.cq(16, int32(fd))
				qp := p.qp(shared, cq, cq)
				_, mr := p.region(shared, 4096, allRights)
				must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: qp.QPHandle})
				must[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: cq})
				must[uabi.None](p, uabi.CmdDeregMR, &uabi.DeregMR{MRHandle: mr.MRHandle})
				_, _ = write[uabi.AllocPDResp](o, uabi.CmdAllocPD, &uabi.AllocPD{})
			}
			o.file.Close()
		}()
	}
	wg.Wait()
	must[uabi.None](p, uabi.CmdDeallocPD, &uabi.DeallocPD{PDHandle: shared})
}

// thread is the program with memory of its own to write commands to, and the same objects.
func (p *program) thread() *program {
	o := &program{t: p.t, dev: p.dev, file: p.file, asyncFD: p.asyncFD, mem: mapped(p.t, programMemory)}
	o.base = umem.Address(o.mem)
	return o
}

func (s *side) thread() *side {
	o := *s
	o.program = s.program.thread()
	return &o
}
