package stag

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

func TestInvalidateChecks(t *testing.T) {
	otherQP := User{PD: alice.PD, QP: 4}
	otherPD := User{PD: 8, QP: alice.QP}
	for _, c := range []struct {
		name          string
		config        RegionConfig
		user          User
		keyOff        wr.STag
		local, remote AccessFault
	}{
		{"all rights", RegionConfig{RemoteInvalidate: true}, alice, 0, OK, OK},
		{"remote read", RegionConfig{RemoteInvalidate: true, Access: wr.LocalRead | wr.RemoteRead}, alice, 0, OK, OK},
		{"remote write", RegionConfig{RemoteInvalidate: true, Access: wr.LocalWrite | wr.RemoteWrite}, alice, 0, OK, OK},
		{"local only", RegionConfig{RemoteInvalidate: true, Access: localRights}, alice, 0, OK, FaultAccess},
		{"local and bind", RegionConfig{RemoteInvalidate: true, Access: localRights | wr.BindWindow}, alice, 0, OK, FaultAccess},
		{"not by a peer", RegionConfig{}, alice, 0, OK, FaultAccess},
		{"not by a peer, not by another", RegionConfig{}, otherQP, 0, OK, FaultAccess},
		{"other QP", RegionConfig{RemoteInvalidate: true}, otherQP, 0, OK, OK},
		{"scoped", RegionConfig{QP: alice.QP}, alice, 0, OK, OK},
		{"scoped to another QP", RegionConfig{QP: alice.QP}, otherQP, 0, OK, FaultPD},
		{"other PD", RegionConfig{}, otherPD, 0, FaultPD, FaultPD},
		{"other PD, local only", RegionConfig{Access: wr.LocalRead}, otherPD, 0, FaultPD, FaultPD},
		{"other key", RegionConfig{}, alice, 1, FaultSTag, FaultSTag},
		{"other key and PD", RegionConfig{}, otherPD, 1, FaultSTag, FaultSTag},
		{"other index", RegionConfig{}, alice, 1 << 8, FaultSTag, FaultGone},
	} {
		for _, way := range []struct {
			name string
			do   func(*Table, wr.STag, User) AccessFault
			want AccessFault
		}{
			{"local", (*Table).InvalidateLocal, c.local},
			{"remote", (*Table).InvalidateRemote, c.remote},
		} {
			t.Run(c.name+"/"+way.name, func(t *testing.T) {
				tb := NewTable(Config{})
				c.config.Addressing = wr.ZeroBased
				r := register(t, tb, c.config)
				var ref Ref
				need := r.Access & localRights
				ref, f := tb.Resolve(r.STag, 0, 1, alice, need)
				require.Equal(t, OK, f)

				require.Equal(t, way.want, way.do(tb, r.STag^c.keyOff, c.user))

				_, f = tb.Resolve(r.STag, 0, 1, alice, need)
				if way.want == OK {
					assert.Equal(t, FaultSTag, f, "RV-7.8-M6")
					assert.False(t, ref.Hold())
				} else {
					assert.Equal(t, OK, f, "a refused invalidation changes nothing")
					assert.True(t, ref.CopyOut(make([]byte, 1), 0))
				}
				assert.Equal(t, 1, tb.Len())
			})
		}
	}
}

func TestInvalidateZeroAndUnknown(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{})
	require.NoError(t, tb.Deallocate(r.STag))
	for _, s := range []wr.STag{0, 1, r.STag, r.STag ^ 1} { // RV-7.8-M12
		assert.Equal(t, FaultSTag, tb.InvalidateLocal(s, alice))
		want := FaultGone // RV-7.8-M17
		if s.Index() == 0 {
			want = FaultSTag // zero, with whatever key, is never deallocated
		}
		assert.Equal(t, want, tb.InvalidateRemote(s, alice))
	}
}

// The Invalid state keeps index, PD and rights; the key has no meaning in it.
func TestInvalidState(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{Key: 1, QP: alice.QP})
	shut := register(t, tb, RegionConfig{Access: wr.LocalRead})
	require.Equal(t, OK, tb.InvalidateLocal(r.STag, alice))
	require.Equal(t, OK, tb.InvalidateLocal(shut.STag, alice))
	assert.Equal(t, 2, tb.Len())

	assert.Equal(t, OK, tb.InvalidateLocal(r.STag, alice), "already Invalid is allowed")
	assert.Equal(t, OK, tb.InvalidateRemote(r.STag^0xFF, alice), "with any key")
	assert.Equal(t, FaultPD, tb.InvalidateRemote(r.STag, User{PD: 8, QP: alice.QP}), "the PD is retained")
	assert.Equal(t, FaultPD, tb.InvalidateRemote(r.STag, User{PD: alice.PD, QP: 4}), "so is the stream")
	assert.Equal(t, FaultAccess, tb.InvalidateRemote(shut.STag, alice), "and the lack of remote access")

	require.NoError(t, tb.Deallocate(r.STag), "7.9: in either state")
	assert.Equal(t, 1, tb.Len())
}

// RV-7.8-M1: other regions over the same memory are not affected.
func TestInvalidateLeavesOthers(t *testing.T) {
	tb := NewTable(Config{})
	mem := make([]byte, 64)
	a := register(t, tb, RegionConfig{RemoteInvalidate: true, Memory: mem, Addressing: wr.ZeroBased})
	b := register(t, tb, RegionConfig{Memory: mem[8:24], Addressing: wr.ZeroBased})
	ref := resolve(t, tb, b.STag, 0, 16)
	require.Equal(t, OK, tb.InvalidateRemote(a.STag, alice))
	assert.True(t, ref.CopyIn(0, []byte{9}))
	assert.Equal(t, byte(9), mem[8])
	resolve(t, tb, b.STag, 0, 16)
}
