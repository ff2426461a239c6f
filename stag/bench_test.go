package stag

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// The data path allocates nothing.
func TestNoAllocation(t *testing.T) {
	tb := NewTable(Config{})
	s := register(t, tb, RegionConfig{Addressing: wr.ZeroBased}).STag
	buf, iov := make([]byte, 64), make([][]byte, 0, 4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		ref, f := tb.Resolve(s, 0, 64, alice, wr.RemoteWrite)
		ok := f == OK && ref.CopyIn(0, buf) && ref.CopyOut(buf, 0) && ref.Hold()
		if ok {
			ref.Append(iov, 8, 16)
			ref.Release()
		}
		if _, f := tb.Resolve(s, 60, 8, alice, wr.RemoteWrite); f != FaultBounds || !ok {
			panic("unexpected result")
		}
	}))
	require.Zero(t, testing.AllocsPerRun(100, func() { tb.InvalidateRemote(s, alice) }))
}

// Nor do Bind, Fast-Register and invalidation, once an STag has been through
// them.
func TestNoAllocationMemoryOps(t *testing.T) {
	for name, cycle := range memoryOps(t, NewTable(Config{})) {
		cycle()
		require.Zero(t, testing.AllocsPerRun(100, cycle), name)
	}
}

// memoryOps are cycles of memory operations over a table, each through to an
// access and back.
func memoryOps(t testing.TB, tb *Table) map[string]func() {
	u := consumer(alice)
	p := pages(t, tb, 8, page)
	r := register(t, tb, RegionConfig{})
	b := wr.BindRequest{Window: window(t, tb), Region: r.STag, VA: r.Base + 8, Length: 16, Access: remoteRights}
	fast := func(addresses ...uint64) *wr.FastRegisterRequest {
		return &wr.FastRegisterRequest{
			STag: allocate(t, tb, true), Access: allRights, Addressing: wr.ZeroBased,
			Buffers: wr.PhysicalBuffers{Size: page, Addresses: addresses, Length: page},
		}
	}
	whole, pieces := fast(p.Addresses()...), fast(p.Address(6), p.Address(1), p.Address(3), p.Address(0))
	pieces.Buffers.Length = 4 * page
	buf := make([]byte, 8)
	access := func(s wr.STag, to uint64) {
		ref, f := tb.Resolve(s, to, 8, u, wr.RemoteWrite)
		if f != OK || !ref.CopyIn(0, buf) || tb.InvalidateLocal(s, u) != OK {
			panic(f)
		}
	}
	register := func(f *wr.FastRegisterRequest) func() {
		return func() {
			if f := tb.FastRegister(f, u); f != OK {
				panic(f)
			}
			access(f.STag, f.Buffers.Length-8)
		}
	}
	return map[string]func(){
		"Bind": func() {
			if f := tb.Bind(&b, u); f != OK {
				panic(f)
			}
			access(b.Window, b.VA)
		},
		"FastRegister":       register(whole),
		"FastRegisterPieces": register(pieces),
	}
}

// Bind or Fast-Register, one access, and invalidation.
func BenchmarkMemoryOps(b *testing.B) {
	tb, _ := benchTable(b)
	for name, cycle := range memoryOps(b, tb) {
		b.Run(name, func(b *testing.B) {
			cycle()
			b.ReportAllocs()
			for b.Loop() {
				cycle()
			}
		})
	}
}

func BenchmarkResolveWindow(b *testing.B) {
	tb, _ := benchTable(b)
	u := consumer(alice)
	r := register(b, tb, RegionConfig{Memory: make([]byte, 4096)})
	s := bind(b, tb, window(b, tb), 1, r, 1000, 3000, u)
	for b.Loop() {
		if _, f := tb.Resolve(s, r.Base+1064, 64, u, wr.RemoteWrite); f != OK {
			b.Fatal(f)
		}
	}
}

func BenchmarkResolvePhysical(b *testing.B) {
	tb, _ := benchTable(b)
	var p *Pages
	for range 100 {
		p = pages(b, tb, 1, page)
	}
	for b.Loop() {
		if _, f := tb.Resolve(0, p.Address(0), 64, root, wr.LocalWrite); f != OK {
			b.Fatal(f)
		}
	}
}

// Many users of one region: a lookup writes nothing.
func BenchmarkResolveSharedParallel(b *testing.B) {
	tb, stags := benchTable(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, f := tb.Resolve(stags[0], 64, 64, alice, wr.RemoteWrite); f != OK {
				b.Error(f)
			}
		}
	})
}

func benchTable(b *testing.B) (*Table, []wr.STag) {
	tb := NewTable(Config{})
	stags := make([]wr.STag, 1024)
	for i := range stags {
		stags[i] = register(b, tb, RegionConfig{Addressing: wr.ZeroBased, Memory: make([]byte, 4096)}).STag
	}
	b.ReportAllocs()
	b.ResetTimer()
	return tb, stags
}

func BenchmarkResolve(b *testing.B) {
	tb, stags := benchTable(b)
	for i := 0; b.Loop(); i++ {
		if _, f := tb.Resolve(stags[i%len(stags)], 64, 64, alice, wr.RemoteWrite); f != OK {
			b.Fatal(f)
		}
	}
}

func BenchmarkHold(b *testing.B) {
	tb, stags := benchTable(b)
	ref := resolve(b, tb, stags[0], 0, 64)
	for b.Loop() {
		if ref.Hold() {
			ref.Release()
		}
	}
}

func BenchmarkResolveCopyIn64(b *testing.B) {
	tb, stags := benchTable(b)
	src := make([]byte, 64)
	b.SetBytes(64)
	for i := 0; b.Loop(); i++ {
		ref, _ := tb.Resolve(stags[i%len(stags)], 64, 64, alice, wr.RemoteWrite)
		if !ref.CopyIn(0, src) {
			b.Fatal("revoked")
		}
	}
}

// Every goroutine has a region of its own, as queue pairs mostly do.
func BenchmarkResolveCopyIn64Parallel(b *testing.B) {
	tb, _ := benchTable(b)
	b.SetBytes(64)
	b.RunParallel(func(pb *testing.PB) {
		r, err := tb.Register(RegionConfig{PD: alice.PD, Memory: make([]byte, 4096), Access: allRights, Addressing: wr.ZeroBased})
		if err != nil {
			b.Error(err)
			return
		}
		src := make([]byte, 64)
		for pb.Next() {
			ref, _ := tb.Resolve(r.STag, 64, 64, alice, wr.RemoteWrite)
			ref.CopyIn(0, src)
		}
	})
}

func BenchmarkRegisterDeallocate(b *testing.B) {
	tb, _ := benchTable(b)
	mem := make([]byte, 4096)
	for b.Loop() {
		r, err := tb.Register(RegionConfig{PD: alice.PD, Memory: mem, Access: allRights})
		if err != nil {
			b.Fatal(err)
		}
		if err := tb.Deallocate(r.STag); err != nil {
			b.Fatal(err)
		}
	}
}
