package stag

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// Writers go at a region as fast as they can, with fresh and with old Refs,
// while its owner revokes and registers it again. After each revocation the
// owner uses the memory without any synchronisation of its own: a write that
// came too late shows in the canary, and to the race detector.
func TestChurn(t *testing.T) {
	const (
		owners  = 2
		writers = 3 // for each owner
		lane    = 32
		rounds  = 150
	)
	tb := NewTable(0)
	var all sync.WaitGroup
	for owner := range owners {
		var (
			mem      = make([]byte, writers*lane)
			canary   = bytes.Repeat([]byte{0xC5}, len(mem))
			current  atomic.Uint32
			stop     atomic.Bool
			progress = make(chan struct{})
			mine     sync.WaitGroup
		)
		for w := range writers {
			mine.Go(func() { churnWriter(tb, &current, &stop, progress, uint64(w*lane), lane) })
		}
		all.Go(func() {
			defer mine.Wait()
			defer stop.Store(true)
			for round := range rounds {
				copy(mem, canary)
				r, err := tb.Register(RegionConfig{
					PD: alice.PD, Memory: mem, Access: allRights, ZeroBased: true, Key: uint8(owner),
				})
				if !assert.NoError(t, err) {
					return
				}
				current.Store(uint32(r.STag()))
				<-progress // somebody wrote in this round or the one before
				<-progress
				switch round % 3 {
				case 0:
					assert.Equal(t, OK, tb.InvalidateRemote(r.STag(), alice))
				case 1:
					assert.Equal(t, OK, tb.InvalidateLocal(r.STag(), alice))
				case 2:
					assert.NoError(t, tb.Deregister(r.STag()))
				}
				copy(mem, canary)
				if round%3 != 2 {
					assert.NoError(t, tb.Deregister(r.STag()))
				}
				if !assert.Equal(t, canary, mem, "written after the revocation") {
					return
				}
			}
		})
	}
	all.Wait()
	assert.Zero(t, tb.Len())
}

// churnWriter writes to its lane of the current region until told to stop.
func churnWriter(tb *Table, current *atomic.Uint32, stop *atomic.Bool, progress chan<- struct{}, to, n uint64) {
	var old [4]Ref
	src, iov := bytes.Repeat([]byte{0x11}, int(n)), make([][]byte, 0, 1)
	for i := 0; !stop.Load(); i++ {
		ref, f := tb.Resolve(wr.STag(current.Load()), to, n, alice, wr.RemoteWrite)
		if f != OK {
			ref = old[i%len(old)]
		}
		wrote := false
		if i%2 == 0 {
			wrote = ref.CopyIn(0, src)
		} else if ref.Hold() {
			for _, piece := range ref.Append(iov, 0, n) {
				wrote = copy(piece, src) == len(src)
			}
			ref.Release()
		}
		if wrote {
			select {
			case progress <- struct{}{}:
			default:
			}
		}
		if i%32 == 0 {
			runtime.Gosched() // the owners have a turn, however few cores there are
		}
		old[i%len(old)] = ref
	}
}

// Lookups see every region that is present throughout, while others come and
// go and the index is rebuilt under them.
func TestLookupDuringRebuild(t *testing.T) {
	tb := NewTable(0)
	var stay []wr.STag
	for range 20 {
		stay = append(stay, register(t, tb, RegionConfig{ZeroBased: true}).STag())
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	var missed, found atomic.Int64
	ready := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				if n == 1 {
					ready <- struct{}{}
				}
				for _, s := range stay {
					if _, f := tb.Resolve(s, 0, 64, alice, wr.LocalRead); f == OK {
						found.Add(1)
					} else {
						missed.Add(1)
					}
				}
			}
		})
	}
	<-ready
	<-ready
	for range 10 {
		var come []wr.STag
		for range 500 {
			come = append(come, register(t, tb, RegionConfig{}).STag())
		}
		for _, s := range come {
			require.NoError(t, tb.Deregister(s))
		}
	}
	stop.Store(true)
	wg.Wait()
	assert.Zero(t, missed.Load())
	assert.NotZero(t, found.Load())
}

// Close against everything else at once: when it has returned, nothing is
// registered and nothing is written.
func TestCloseDuringChurn(t *testing.T) {
	for range 20 {
		tb := NewTable(0)
		mem := make([]byte, 16)
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for w := range 4 {
			own := mem[4*w : 4*w+4]
			wg.Go(func() {
				for n := 0; ; n++ {
					r, err := tb.Register(RegionConfig{PD: alice.PD, Memory: own, Access: allRights, ZeroBased: true})
					if err != nil {
						assert.ErrorIs(t, err, wr.ErrInvalidRNIC)
						return
					}
					if ref, f := tb.Resolve(r.STag(), 0, 4, alice, wr.LocalWrite); f == OK {
						ref.CopyIn(0, []byte{1, 2, 3, 4})
					}
					if n == 10 {
						started <- struct{}{}
					}
					if err := tb.Deregister(r.STag()); err != nil {
						assert.ErrorIs(t, err, wr.ErrInvalidSTag)
					}
				}
			})
		}
		for range 4 {
			<-started
		}
		tb.Close()
		clear(mem) // the race detector looks on
		wg.Wait()
		require.Zero(t, tb.Len())
		require.Equal(t, make([]byte, 16), mem)
	}
}
