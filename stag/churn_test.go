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

// target is what writers write to at the moment.
type target struct {
	s    wr.STag
	to   uint64
	need wr.Access
}

// churn is a way to have memory reachable, and to end it. open and revoke are
// called in turn, with the number of the round.
type churn struct {
	open   func(round int) (target, []byte)
	revoke func(round int)
}

// churns makes each kind of churn over a table, with n octets.
var churns = map[string]func(t *testing.T, tb *Table, n int) churn{
	"regions":   churnRegions,
	"windows":   churnWindows,
	"fast":      churnFast,
	"physical":  churnPhysical,
	"rereg":     churnReregister,
	"allocated": churnAllocated,
}

// Register, and each way to end a region.
func churnRegions(t *testing.T, tb *Table, n int) churn {
	mem := make([]byte, n)
	var r Info
	return churn{
		open: func(round int) (target, []byte) {
			r = register(t, tb, RegionConfig{RemoteInvalidate: true, Memory: mem, Addressing: wr.ZeroBased, Key: uint8(round)})
			return target{r.STag, 0, wr.RemoteWrite}, mem
		},
		revoke: func(round int) {
			switch round % 3 {
			case 0:
				assert.Equal(t, OK, tb.InvalidateRemote(r.STag, alice))
			case 1:
				assert.Equal(t, OK, tb.InvalidateLocal(r.STag, alice))
			}
			assert.NoError(t, tb.Deallocate(r.STag))
		},
	}
}

// Bind and unbind, one window over one region, which has to be free to go after
// each.
func churnWindows(t *testing.T, tb *Table, n int) churn {
	mem := make([]byte, n)
	u := consumer(alice)
	r, w := register(t, tb, RegionConfig{RemoteInvalidate: true, Memory: mem}), window(t, tb)
	return churn{
		open: func(round int) (target, []byte) {
			w = bind(t, tb, w, uint8(round), r, 0, uint64(n), u)
			return target{w, r.Base, wr.RemoteWrite}, mem
		},
		revoke: func(round int) {
			switch round % 4 {
			case 0:
				assert.Equal(t, OK, tb.InvalidateRemote(w, u))
			case 1:
				assert.Equal(t, OK, tb.InvalidateLocal(w, u))
			case 2:
				assert.NoError(t, tb.Deallocate(w))
				w = window(t, tb)
			case 3: // and the region as well
				assert.Equal(t, OK, tb.InvalidateLocal(w, u))
				assert.Equal(t, OK, tb.InvalidateRemote(r.STag, u))
				assert.NoError(t, tb.Deallocate(r.STag))
				r = register(t, tb, RegionConfig{RemoteInvalidate: true, Memory: mem})
			}
		},
	}
}

// Fast-Register over changing lists of pieces, and invalidation. Every other
// octet of what writers get is another block.
func churnFast(t *testing.T, tb *Table, n int) churn {
	u := consumer(alice)
	p := pages(t, tb, n, 1)
	s := second1(tb.Allocate(AllocateConfig{PD: alice.PD, PBL: n, RemoteAccess: true, RemoteInvalidate: true})).STag
	r := wr.FastRegisterRequest{STag: s, Access: allRights, Addressing: wr.ZeroBased}
	r.Buffers = wr.PhysicalBuffers{Size: 1, Addresses: p.Addresses(), Length: uint64(n)}
	return churn{
		open: func(round int) (target, []byte) {
			a := r.Buffers.Addresses
			for i := range a[:n/2] { // neighbours no more, or again
				a[i], a[n-1-i] = a[n-1-i], a[i]
			}
			r.STag = wr.MakeSTag(s.Index(), uint8(round))
			assert.Equal(t, OK, tb.FastRegister(&r, u))
			return target{r.STag, 0, wr.RemoteWrite}, p.Bytes()
		},
		revoke: func(round int) {
			if round%2 == 0 {
				assert.Equal(t, OK, tb.InvalidateRemote(r.STag, u))
			} else {
				assert.Equal(t, OK, tb.InvalidateLocal(r.STag, u))
			}
		},
	}
}

// A new allocation each time, reached by the STag of zero.
func churnPhysical(t *testing.T, tb *Table, n int) churn {
	var p *Pages
	return churn{
		open: func(int) (target, []byte) {
			p = pages(t, tb, n, 1)
			return target{0, p.Address(0), wr.LocalWrite}, p.Bytes()
		},
		revoke: func(int) { assert.NoError(t, p.Deallocate()) },
	}
}

// Reregister to other memory takes away the old, or to an error everything.
func churnReregister(t *testing.T, tb *Table, n int) churn {
	mem, other := make([]byte, n), make([]byte, n)
	r := register(t, tb, RegionConfig{RemoteInvalidate: true})
	reregister := func(c RegionConfig) error {
		c.PD, c.Addressing = alice.PD, wr.ZeroBased
		i, err := tb.Reregister(r.STag, c)
		if err == nil {
			r = i
		}
		return err
	}
	return churn{
		open: func(round int) (target, []byte) {
			assert.NoError(t, reregister(RegionConfig{RemoteInvalidate: true, Memory: mem, Access: allRights, Key: uint8(round)}))
			return target{r.STag, 0, wr.RemoteWrite}, mem
		},
		revoke: func(round int) {
			if round%2 == 0 {
				assert.NoError(t, reregister(RegionConfig{RemoteInvalidate: true, Memory: other, Access: allRights}))
				return
			}
			assert.ErrorIs(t, reregister(RegionConfig{}), wr.ErrInvalidAccess)
			r = register(t, tb, RegionConfig{RemoteInvalidate: true})
		},
	}
}

// An allocated STag that is registered over, and shared regions of it.
func churnAllocated(t *testing.T, tb *Table, n int) churn {
	mem := make([]byte, n)
	var first, second Info
	return churn{
		open: func(round int) (target, []byte) {
			first = second1(tb.Reregister(allocate(t, tb, true), RegionConfig{
				PD: alice.PD, Memory: mem, Access: allRights, Addressing: wr.ZeroBased, Key: uint8(round),
			}))
			second = second1(tb.RegisterShared(first.STag, SharedConfig{PD: alice.PD, Access: allRights, Addressing: wr.ZeroBased}))
			if round%2 == 0 {
				return target{first.STag, 0, wr.RemoteWrite}, mem
			}
			return target{second.STag, 0, wr.RemoteWrite}, mem
		},
		revoke: func(int) {
			assert.NoError(t, tb.Deallocate(first.STag))
			assert.NoError(t, tb.Deallocate(second.STag))
		},
	}
}

// Writers go at memory as fast as they can, with fresh and with old Refs, while
// its owner revokes and grants it again. After each revocation the owner uses
// the memory without any synchronisation of its own: a write that came too late
// shows in the canary, and to the race detector. All owners share a table.
func TestChurn(t *testing.T) {
	const (
		writers = 2 // for each owner
		lane    = 32
		rounds  = 100
	)
	tb := NewTable(Config{BlockMode: true})
	var all sync.WaitGroup
	for name, kind := range churns {
		var (
			c        = kind(t, tb, writers*lane)
			canary   = bytes.Repeat([]byte{0xC5}, writers*lane)
			current  atomic.Pointer[target]
			stop     atomic.Bool
			progress = make(chan struct{})
			mine     sync.WaitGroup
		)
		current.Store(&target{})
		for w := range writers {
			mine.Go(func() { churnWriter(tb, &current, &stop, progress, uint64(w*lane), lane) })
		}
		all.Go(func() {
			defer mine.Wait()
			defer stop.Store(true)
			for round := range rounds {
				now, mem := c.open(round)
				current.Store(&now)
				<-progress // somebody wrote in this round or the one before
				<-progress
				c.revoke(round)
				copy(mem, canary)
				runtime.Gosched()
				if !assert.Equal(t, canary, mem, "%s: written after the revocation", name) {
					return
				}
			}
		})
	}
	all.Wait()
}

// churnWriter writes to its lane of the current target until told to stop.
func churnWriter(tb *Table, current *atomic.Pointer[target], stop *atomic.Bool, progress chan<- struct{}, to, n uint64) {
	var old [4]Ref
	u := consumer(alice)
	src, iov := bytes.Repeat([]byte{0x11}, int(n)), make([][]byte, 0, n)
	var resolver Resolver
	for i := 0; !stop.Load(); i++ {
		now := current.Load()
		if i%3 == 0 { // the same rights in every round
			resolver = tb.Resolver(u, now.need)
		}
		ref, f := resolver.Resolve(now.s, now.to+to, n)
		if f != OK {
			ref = old[i%len(old)]
		}
		wrote := false
		if i%2 == 0 {
			wrote = ref.CopyIn(0, src)
		} else if ref.Hold() {
			for _, piece := range ref.Append(iov, 0, n) {
				wrote = copy(piece, src) == len(piece)
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
	tb := NewTable(Config{})
	var stay []wr.STag
	for range 20 {
		stay = append(stay, register(t, tb, RegionConfig{RemoteInvalidate: true, Addressing: wr.ZeroBased}).STag)
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
			come = append(come, register(t, tb, RegionConfig{RemoteInvalidate: true}).STag)
		}
		for _, s := range come {
			require.NoError(t, tb.Deallocate(s))
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
		tb := NewTable(Config{})
		mem := make([]byte, 16)
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for w := range 4 {
			own := mem[4*w : 4*w+4]
			wg.Go(func() {
				for n := 0; ; n++ {
					r, err := tb.Register(RegionConfig{PD: alice.PD, Memory: own, Access: allRights, Addressing: wr.ZeroBased})
					if err != nil {
						assert.ErrorIs(t, err, wr.ErrInvalidRNIC)
						return
					}
					if ref, f := tb.Resolve(r.STag, 0, 4, alice, wr.LocalWrite); f == OK {
						ref.CopyIn(0, []byte{1, 2, 3, 4})
					}
					if n == 10 {
						started <- struct{}{}
					}
					if err := tb.Deallocate(r.STag); err != nil {
						assert.ErrorIs(t, err, wr.ErrInvalidRNIC)
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
