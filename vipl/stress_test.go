package vipl

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDeregisterInUse: after DeregisterMem nothing is written any more, whatever the peer
// does (3.2.1). The race detector watches too.
func TestDeregisterInUse(t *testing.T) {
	for _, level := range levels {
		p := newPair(t, level, Config{})
		fill(p.a.mem, 1)
		target := make([]byte, hostMemory)
		h, err := p.b.nic.RegisterMem(target, &MemAttributes{Ptag: p.b.ptag, EnableRdmaWrite: true})
		require.NoError(t, err)
		to := AddressSegment{Data: AddressOf(target), Handle: h}
		var wg sync.WaitGroup
		var once sync.Once
		begun, stop := make(chan struct{}), make(chan struct{})
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				d := p.a.desc()
				d.SetRdmaWrite(to, p.a.data(0, hostMemory))
				if !assert.NoError(t, p.va.PostSend(d, p.a.dh)) {
					return
				}
				if got, err := p.va.SendWait(within(t)); !assert.NoError(t, err) || got.Control.Status.Errors() != 0 {
					return
				}
				once.Do(func() { close(begun) })
			}
		})
		<-begun
		require.NoError(t, p.b.nic.DeregisterMem(AddressOf(target), h))
		after := bytes.Clone(target)
		for i := range target {
			target[i]++ // ours again
			after[i]++
		}
		close(stop)
		wg.Wait()
		require.NoError(t, p.va.Disconnect())
		require.NoError(t, p.vb.Disconnect())
		require.True(t, bytes.Equal(after, target))
	}
}

// TestStress: many VIs with traffic both ways on two CQs, some of which are disconnected
// under it. What is posted is dequeued, once.
func TestStress(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{CRC: true})
	const pairs, messages = 9, 300
	var wg sync.WaitGroup
	for i := range pairs {
		level := levels[i%3]
		va, vb := a.vi(level, nil, nil), b.vi(level, nil, nil)
		connect(t, a, va, b, vb)
		at := i * 2000 // each VI has memory of its own
		type side struct {
			h     *host
			v     *Vi
			descs []Descriptor
			dh    MemHandle
		}
		ends := []side{{h: a, v: va}, {h: b, v: vb}}
		for n := range ends { // before anyone sends: an Unreliable VI drops what finds no Receive
			end := &ends[n]
			end.descs = make([]Descriptor, 2*messages)
			var err error
			end.dh, err = end.h.nic.RegisterDescriptors(end.descs, end.h.ptag)
			require.NoError(t, err)
			for k := range messages {
				end.descs[k].SetRecv(end.h.data(at, 1000))
				require.NoError(t, end.v.PostRecv(&end.descs[k], end.dh))
			}
		}
		for _, end := range ends {
			descs, dh := end.descs, end.dh
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				for k := range messages {
					d := &descs[messages+k]
					d.SetSend(end.h.data(at+1000, rng.IntN(1000)))
					assert.NoError(t, end.v.PostSend(d, dh))
					got, err := end.v.SendWait(within(t))
					assert.NoError(t, err)
					assert.Same(t, d, got)
					if i >= pairs/2 && k == messages/2 && end.h == a {
						assert.NoError(t, end.v.Disconnect())
					}
				}
			})
			wg.Go(func() {
				for k := range messages {
					got, err := end.v.RecvWait(within(t))
					assert.NoError(t, err)
					assert.Same(t, &descs[k], got)
				}
				_, err := end.v.RecvDone()
				assert.ErrorIs(t, err, ErrNotDone)
			})
		}
	}
	wg.Wait()
	require.NoError(t, a.nic.CloseNic())
	require.NoError(t, b.nic.CloseNic())
}

// TestRightsChange: the handle stays as the attributes change (9.8.4).
func TestRightsChange(t *testing.T) {
	p := newPair(t, ServiceReliableReception, Config{})
	fill(p.a.mem, 1)
	write := func() Status {
		d := p.a.desc()
		d.SetRdmaWrite(p.b.at(0), p.a.data(0, 100))
		p.a.postSend(p.va, d)
		return wait(t, p.va.SendWait, d).Control.Status
	}
	require.Equal(t, StatusDone|opWrite, write())
	at := AddressOf(p.b.mem)
	require.NoError(t, p.b.nic.SetMemAttributes(at, p.b.handle, &MemAttributes{Ptag: p.b.ptag}))
	require.NoError(t, p.b.nic.SetMemAttributes(at, p.b.handle, &MemAttributes{Ptag: p.b.ptag, EnableRdmaWrite: true}))
	require.Equal(t, StatusDone|opWrite, write())
	require.NoError(t, p.b.nic.SetMemAttributes(at, p.b.handle, &MemAttributes{Ptag: p.b.ptag, EnableRdmaRead: true}))
	require.Equal(t, StatusDone|opWrite|rdmaProt, write())
}
