package stag

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

func TestFastRegister(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	p := pages(t, tb, 4, page)
	pattern(p.Bytes())
	s := allocate(t, tb, true)
	before := query(t, tb, s).(Info)
	var old []Ref
	for round, addresses := range [][]uint64{
		{p.Address(3), p.Address(0), p.Address(1)}, p.Addresses(), {p.Address(2)}, {p.Address(1), p.Address(1)},
	} {
		key := uint8(round + 1)
		b := wr.PhysicalBuffers{Size: page, Addresses: addresses, FBO: 17, Length: uint64(len(addresses))*page - 20}
		r := wr.FastRegisterRequest{STag: wr.MakeSTag(s.Index(), key), Buffers: b, VA: 40*page + 17, Access: allRights}
		if round%2 == 1 {
			r.Addressing, r.Access = wr.ZeroBased, wr.LocalRead // a VA is ignored then (9.3.1.1)
		}
		require.Equal(t, OK, tb.FastRegister(&r, u))
		want := before // the PD, the flag and the room stay
		want.STag, want.Valid, want.Access, want.Addressing = r.STag, true, r.Access, r.Addressing
		want.Length = b.Length
		if round%2 == 0 {
			want.Base = r.VA
		}
		require.Equal(t, want, query(t, tb, s))

		ref := resolve(t, tb, r.STag, want.Base, b.Length)
		got := make([]byte, b.Length)
		require.True(t, ref.CopyOut(got, 0))
		require.Equal(t, content(t, tb, b), got)
		for _, o := range old {
			require.False(t, o.Hold(), "of an earlier generation")
			require.False(t, o.SameHold(ref))
			require.Empty(t, o.Append(nil, 0, 1))
		}
		_, f := tb.Resolve(wr.MakeSTag(s.Index(), key-1), want.Base, 1, alice, wr.LocalRead)
		require.Equal(t, FaultSTag, f, "another key")
		old = append(old, ref)
		require.Equal(t, FaultNotInvalid, tb.FastRegister(&r, u), "RV-7.3.2.5-M9")
		require.Equal(t, OK, tb.InvalidateLocal(r.STag, alice))
		require.Zero(t, tb.index.get(s.Index()).mem)
		store := tb.index.get(s.Index()).pieces
		require.GreaterOrEqual(t, cap(store), 2, "kept for the next time")
		for _, piece := range store[:cap(store)] {
			require.Zero(t, piece, "no memory is kept alive")
		}
	}
}

// RV-7.3.2.5-M1: STags from each way to make them.
func TestFastRegisterAfter(t *testing.T) {
	p := func(tb *Table) wr.PhysicalBuffers {
		return wr.PhysicalBuffers{Size: page, Addresses: pages(t, tb, 1, page).Addresses(), Length: 9}
	}
	for name, make_ := range map[string]func(*Table) wr.STag{
		"Allocate": func(tb *Table) wr.STag { return allocate(t, tb, true) },
		"Register": func(tb *Table) wr.STag {
			s := register(t, tb, RegionConfig{RemoteInvalidate: true}).STag
			require.Equal(t, OK, tb.InvalidateRemote(s, alice))
			return s
		},
		"Register of buffers": func(tb *Table) wr.STag {
			s := register(t, tb, RegionConfig{Buffers: p(tb), Addressing: wr.ZeroBased}).STag
			require.Equal(t, OK, tb.InvalidateLocal(s, alice))
			return s
		},
		"Reregister": func(tb *Table) wr.STag {
			s := second1(tb.Reregister(allocate(t, tb, false), RegionConfig{PD: 7, Access: allRights, Memory: make([]byte, 1)})).STag
			require.Equal(t, OK, tb.InvalidateLocal(s, alice))
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			tb := NewTable(Config{})
			s := make_(tb)
			require.Equal(t, OK, tb.FastRegister(&wr.FastRegisterRequest{
				STag: s, Buffers: p(tb), Addressing: wr.ZeroBased, Access: allRights,
			}, consumer(alice)))
			resolve(t, tb, s, 0, 9)
		})
	}
}

func TestFastRegisterBuffers(t *testing.T) {
	tb := NewTable(Config{PBL: 100})
	u := consumer(alice)
	p := pages(t, tb, 4, page)
	pattern(p.Bytes())
	i, err := tb.Allocate(AllocateConfig{PD: 7, PBL: 6})
	require.NoError(t, err)
	for name, c := range bufferCases(p) {
		t.Run(name, func(t *testing.T) {
			r := wr.FastRegisterRequest{STag: i.STag, Buffers: c.buffers, Addressing: c.addressing, VA: c.va, Access: wr.LocalRead}
			if c.want != OK {
				unchanged(t, tb, func() { require.Equal(t, c.want, tb.FastRegister(&r, u)) }, i.STag)
				require.Empty(t, tb.index.get(i.STag.Index()).pieces)
				return
			}
			require.Equal(t, OK, tb.FastRegister(&r, u))
			got := make([]byte, c.buffers.Length)
			require.True(t, resolve(t, tb, i.STag, c.va, c.buffers.Length).CopyOut(got, 0))
			require.Equal(t, content(t, tb, c.buffers), got)
			require.Equal(t, OK, tb.InvalidateLocal(i.STag, alice))
		})
	}
}

// Each check is tried with everything after it wrong too.
func TestFastRegisterOrder(t *testing.T) {
	tb := NewTable(Config{})
	u, stranger := consumer(alice), consumer(bob)
	a, remote, w := allocate(t, tb, false), allocate(t, tb, true), window(t, tb)
	valid := register(t, tb, RegionConfig{})
	shared := register(t, tb, RegionConfig{})
	second1(tb.RegisterShared(shared.STag, SharedConfig{PD: 7, Access: wr.LocalRead}))
	buffers := wr.PhysicalBuffers{Size: page, Addresses: pages(t, tb, 1, page).Addresses(), Length: 1}
	for _, c := range []struct {
		name   string
		s      wr.STag
		u      User
		access wr.Access
		want   AccessFault
	}{
		{"not privileged", 0, alice, 0, FaultPrivilege},
		{"zero", 0, stranger, 0, FaultSTag},
		{"nothing", a ^ 1<<8, stranger, 0, FaultSTag},
		{"a window", w, stranger, 0, FaultSTag},
		{"shared", shared.STag, stranger, 0, FaultSTag},
		{"other PD, Valid", valid.STag, stranger, 0, FaultPD},
		{"other PD", a, stranger, 0, FaultPD},
		{"Valid", valid.STag, u, 0, FaultNotInvalid},
		{"Valid, other key", valid.STag ^ 1, u, 0, FaultNotInvalid},
		{"no right", a, u, 0, FaultRights},
		{"figure 18", remote, u, wr.RemoteRead, FaultRights},
		{"no flag, read", a, u, wr.LocalRead | wr.RemoteRead, FaultRights},
		{"no flag, write", a, u, wr.LocalWrite | wr.RemoteWrite, FaultRights},
		{"then the buffers", a, u, wr.LocalRead, FaultBufferSize},
	} {
		unchanged(t, tb, func() {
			assert.Equal(t, c.want, tb.FastRegister(&wr.FastRegisterRequest{STag: c.s, Access: c.access}, c.u), c.name)
		}, a, remote, w, valid.STag, shared.STag)
	}
	for _, access := range []wr.Access{wr.LocalRead, wr.LocalRead | wr.RemoteRead, allRights} {
		require.Equal(t, OK, tb.FastRegister(&wr.FastRegisterRequest{STag: remote, Buffers: buffers, Addressing: wr.ZeroBased, Access: access}, u), "RV-7.3.2.5-M12")
		require.Equal(t, OK, tb.InvalidateLocal(remote, alice))
	}
}

// FastRegister after an invalidation that still waits for a hold: the memory of
// before is not touched through the new STag, nor the other way round.
func TestFastRegisterWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := NewTable(Config{})
		u := consumer(alice)
		p := pages(t, tb, 2, page)
		s := allocate(t, tb, false)
		reg := func(i int) AccessFault {
			return tb.FastRegister(&wr.FastRegisterRequest{
				STag: s, Addressing: wr.ZeroBased, Access: localRights,
				Buffers: wr.PhysicalBuffers{Size: page, Addresses: p.Addresses()[i : i+1], Length: page},
			}, u)
		}
		require.Equal(t, OK, reg(0))
		ref := resolve(t, tb, s, 0, 4)
		require.True(t, ref.Hold())
		invalidated, registered := make(chan AccessFault, 1), make(chan AccessFault, 2)
		go func() { invalidated <- tb.InvalidateLocal(s, alice) }()
		synctest.Wait()
		go func() { registered <- reg(1) }()
		go func() { registered <- reg(1) }()
		synctest.Wait()
		require.Empty(t, registered)
		require.Len(t, ref.Append(nil, 0, 4), 1, "the holder goes on")
		ref.Release()
		require.Equal(t, OK, <-invalidated)
		require.ElementsMatch(t, []AccessFault{OK, FaultNotInvalid}, []AccessFault{<-registered, <-registered})
		require.False(t, ref.CopyIn(0, []byte{1}))
		require.True(t, resolve(t, tb, s, 0, 4).CopyIn(0, []byte{2}))
		require.Equal(t, byte(0), p.Bytes()[0])
		require.Equal(t, byte(2), p.Bytes()[page])
	})
}
