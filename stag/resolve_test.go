package stag

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// figure21 is the STag side of verbs draft figure 21: what an access needs,
// whatever other rights there are.
var figure21 = map[string]wr.Access{
	"RDMA Read source":              wr.RemoteRead,
	"RDMA Write or Read Type sink":  wr.RemoteWrite,
	"Send or RDMA Write source":     wr.LocalRead,
	"Receive sink":                  wr.LocalWrite,
	"several rights at once (ours)": wr.LocalRead | wr.RemoteRead,
}

func TestResolveFigure21(t *testing.T) {
	tb := NewTable(Config{})
	for _, row := range figure18 {
		if !row.valid {
			continue
		}
		r := register(t, tb, RegionConfig{Access: row.access})
		for name, need := range figure21 {
			want := OK
			if row.access&need != need {
				want = FaultAccess
			}
			_, f := tb.Resolve(r.STag, r.Base, 1, alice, need)
			assert.Equal(t, want, f, "%v with %v", name, row.access)
		}
	}
}

func TestResolveBounds(t *testing.T) {
	const n = 100
	top := uint64(math.MaxUint64)
	for _, c := range []struct {
		name   string
		config RegionConfig
		base   uint64
	}{
		{"zero-based", RegionConfig{Addressing: wr.ZeroBased}, 0},
		{"VA", RegionConfig{VA: 0x7f0000000123}, 0x7f0000000123},
		{"VA 1", RegionConfig{VA: 1}, 1},
		{"VA above 1<<63", RegionConfig{VA: 1<<63 - 50}, 1<<63 - 50},
		{"VA at the top", RegionConfig{VA: top - n}, top - n},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := NewTable(Config{})
			mem := make([]byte, n+2)
			c.config.Memory = mem[1 : n+1 : n+1]
			r := register(t, tb, c.config)
			require.Equal(t, c.base, r.Base)

			for _, a := range []struct {
				name string
				off  uint64 // from the base, modulo 1<<64
				n    uint64
				want AccessFault
			}{
				{"first octet", 0, 1, OK},
				{"last octet", n - 1, 1, OK},
				{"everything", 0, n, OK},
				{"second half", 50, 50, OK},
				{"one past the end", n, 1, FaultBounds},
				{"one too long", 0, n + 1, FaultBounds},
				{"one too long at the end", n - 1, 2, FaultBounds},
				{"one before", top, 1, FaultBounds},
				{"from before to the end", top, n + 1, FaultBounds},
				{"round to the last octet", n, top, FaultBounds},
				{"round to itself", 1, top, FaultBounds},
				{"longest", 0, top, FaultBounds},
			} {
				to := c.base + a.off
				want := a.want
				if to+(a.n-1) < to {
					want = FaultWrap
				}
				ref, f := tb.Resolve(r.STag, to, a.n, alice, wr.LocalWrite)
				require.Equal(t, want, f, a.name)
				if f == OK {
					require.Equal(t, a.n, ref.Len())
					require.True(t, ref.CopyIn(a.n-1, []byte{0xEE}))
					require.Equal(t, byte(0xEE), mem[1+a.off+a.n-1], a.name)
				} else {
					require.Zero(t, ref)
				}
			}
			assert.Zero(t, mem[0], "octet before the region")
			assert.Zero(t, mem[n+1], "octet after the region")
		})
	}
}

func TestResolveWrap(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{Addressing: wr.ZeroBased})
	for _, c := range []struct {
		to, n uint64
		want  AccessFault
	}{
		{math.MaxUint64, 1, FaultBounds}, // ends at the last TO
		{math.MaxUint64, 2, FaultWrap},
		{math.MaxUint64 - 9, 10, FaultBounds},
		{math.MaxUint64 - 9, 11, FaultWrap},
		{math.MaxUint64 - 9, 20, FaultWrap}, // would end within the region
		{0, math.MaxUint64, FaultBounds},
		{1, math.MaxUint64, FaultBounds},
		{2, math.MaxUint64, FaultWrap},
		{math.MaxUint64, math.MaxUint64, FaultWrap},
	} {
		_, f := tb.Resolve(r.STag, c.to, c.n, alice, wr.RemoteWrite)
		assert.Equal(t, c.want, f, "TO %#x, %d octets", c.to, c.n)
	}
}

func TestResolveSTag(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{Addressing: wr.ZeroBased, Key: 0x5A})
	s := r.STag
	for bit := range 32 { // RV-7.4-M7
		_, f := tb.Resolve(s^1<<bit, 0, 1, alice, wr.LocalRead)
		assert.Equal(t, FaultSTag, f, "bit %d", bit)
	}
	for _, zero := range []wr.STag{0, wr.MakeSTag(0, 0x5A)} {
		_, f := tb.Resolve(zero, 0, 1, alice, wr.LocalRead)
		assert.Equal(t, FaultSTag, f, "index zero names nothing")
	}
	require.NoError(t, tb.Deallocate(s))
	_, f := tb.Resolve(s, 0, 1, alice, wr.LocalRead)
	assert.Equal(t, FaultSTag, f)
}

func TestResolveUser(t *testing.T) {
	tb := NewTable(Config{})
	open := register(t, tb, RegionConfig{Addressing: wr.ZeroBased}).STag
	scoped := register(t, tb, RegionConfig{Addressing: wr.ZeroBased, QP: alice.QP}).STag
	otherQP := User{PD: alice.PD, QP: 4}
	otherPD := User{PD: 8, QP: alice.QP}
	srq := User{PD: alice.PD}
	for _, c := range []struct {
		name string
		s    wr.STag
		u    User
		need wr.Access
		want AccessFault
	}{
		{"own PD", open, alice, wr.RemoteWrite, OK},
		{"own PD, any QP", open, otherQP, wr.RemoteWrite, OK},
		{"other PD, remote", open, otherPD, wr.RemoteWrite, FaultPD},
		{"other PD, local", open, otherPD, wr.LocalRead, FaultPD},
		{"no user", open, User{}, wr.LocalRead, FaultPD},
		{"scoped, its QP", scoped, alice, wr.RemoteRead, OK},
		{"scoped, other QP, remote read", scoped, otherQP, wr.RemoteRead, FaultPD},
		{"scoped, other QP, remote write", scoped, otherQP, wr.RemoteWrite, FaultPD},
		{"scoped, other QP, local", scoped, otherQP, wr.LocalRead, OK},
		{"scoped, S-RQ", scoped, srq, wr.LocalWrite, OK},
		{"scoped, QP right, PD wrong", scoped, otherPD, wr.RemoteRead, FaultPD},
	} {
		_, f := tb.Resolve(c.s, 0, 1, c.u, c.need)
		assert.Equal(t, c.want, f, c.name)
	}
}

// Each check is tried with everything after it wrong too.
func TestResolveOrderOfChecks(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{Addressing: wr.ZeroBased, Access: wr.LocalRead})
	const top = math.MaxUint64
	stranger := User{PD: 99}
	for _, c := range []struct {
		s    wr.STag
		u    User
		need wr.Access
		to   uint64
		want AccessFault
	}{
		{r.STag ^ 1, stranger, wr.RemoteWrite, top, FaultSTag},
		{r.STag, stranger, wr.RemoteWrite, top, FaultPD},
		{r.STag, alice, wr.RemoteWrite, top, FaultAccess},
		{r.STag, alice, wr.LocalRead, top, FaultWrap},
		{r.STag, alice, wr.LocalRead, 64, FaultBounds},
		{r.STag, alice, wr.LocalRead, 62, OK},
	} {
		_, f := tb.Resolve(c.s, c.to, 2, c.u, c.need)
		assert.Equal(t, c.want, f)
	}
}

// RV-7.6.3-M3: an access of length zero is not checked.
func TestResolveNothing(t *testing.T) {
	ref, f := NewTable(Config{}).Resolve(0, math.MaxUint64, 0, User{}, allRights)
	assert.Equal(t, OK, f)
	assert.Zero(t, ref.Len())
}

func TestFaultString(t *testing.T) {
	seen := map[string]bool{}
	for f := OK; f < numFaults; f++ {
		assert.NotEmpty(t, f.String())
		assert.False(t, seen[f.String()], "%v twice", f)
		seen[f.String()] = true
	}
	assert.Equal(t, "TO wrap", FaultWrap.String())
	assert.Equal(t, fmt.Sprintf("Fault(%d)", uint8(numFaults)), numFaults.String())
	assert.Equal(t, "Fault(200)", AccessFault(200).String())
}

// The range check against one in unbounded arithmetic.
func FuzzResolveRange(f *testing.F) {
	f.Add(uint64(0), uint16(1), uint64(0), uint64(1))
	f.Add(uint64(0x1000), uint16(64), uint64(0x103f), uint64(1))
	f.Add(uint64(0x1000), uint16(64), uint64(0x1040), uint64(1))
	f.Add(uint64(math.MaxUint64-64), uint16(64), uint64(math.MaxUint64-1), uint64(1))
	f.Add(uint64(math.MaxUint64-64), uint16(64), uint64(math.MaxUint64-1), uint64(3))
	f.Add(uint64(1), uint16(9), uint64(5), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, va uint64, length uint16, to, n uint64) {
		tb := NewTable(Config{Regions: 1})
		c := RegionConfig{PD: 7, Memory: make([]byte, length), Access: wr.LocalRead, VA: va}
		if va == 0 {
			c.Addressing = wr.ZeroBased
		}
		num := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
		end := new(big.Int).Add(num(va), num(uint64(length)))
		r, err := tb.Register(c)
		if length == 0 || !end.IsUint64() {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		last := new(big.Int).Sub(new(big.Int).Add(num(to), num(n)), big.NewInt(1))
		want := OK
		switch {
		case n == 0:
		case !last.IsUint64():
			want = FaultWrap
		case num(to).Cmp(num(va)) < 0 || last.Cmp(end) >= 0:
			want = FaultBounds
		}
		ref, got := tb.Resolve(r.STag, to, n, alice, wr.LocalRead)
		require.Equal(t, want, got)
		if got == OK && n > 0 {
			require.True(t, ref.CopyOut(make([]byte, n), 0))
		}
	})
}
