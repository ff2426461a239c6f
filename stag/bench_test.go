package stag

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// The data path allocates nothing.
func TestNoAllocation(t *testing.T) {
	tb := NewTable(0)
	s := register(t, tb, RegionConfig{ZeroBased: true}).STag()
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

func benchTable(b *testing.B) (*Table, []wr.STag) {
	tb := NewTable(0)
	stags := make([]wr.STag, 1024)
	for i := range stags {
		stags[i] = register(b, tb, RegionConfig{ZeroBased: true, Memory: make([]byte, 4096)}).STag()
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
		r, err := tb.Register(RegionConfig{PD: alice.PD, Memory: make([]byte, 4096), Access: allRights, ZeroBased: true})
		if err != nil {
			b.Error(err)
			return
		}
		src := make([]byte, 64)
		for pb.Next() {
			ref, _ := tb.Resolve(r.STag(), 64, 64, alice, wr.RemoteWrite)
			ref.CopyIn(0, src)
		}
	})
}

func BenchmarkRegisterDeregister(b *testing.B) {
	tb, _ := benchTable(b)
	mem := make([]byte, 4096)
	for b.Loop() {
		r, err := tb.Register(RegionConfig{PD: alice.PD, Memory: mem, Access: allRights})
		if err != nil {
			b.Fatal(err)
		}
		if err := tb.Deregister(r.STag()); err != nil {
			b.Fatal(err)
		}
	}
}
