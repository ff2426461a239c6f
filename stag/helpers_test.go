package stag

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

const (
	allRights = localRights | remoteRights | wr.BindWindow
	page      = MinPage
)

var (
	alice = User{PD: 7, QP: 3}
	bob   = User{PD: 8, QP: 4} // another domain
)

// consumer is a user with all that Bind and FastRegister need.
func consumer(u User) User {
	u.Windows, u.Privileged = new(Windows), true
	return u
}

// register makes a region that alice may use, or fails the test. Zero Access
// means every right; with neither Memory nor Buffers it has 64 octets.
func register(t testing.TB, tb *Table, c RegionConfig) Info {
	t.Helper()
	if c.PD == 0 {
		c.PD = alice.PD
	}
	if c.Access == 0 {
		c.Access = allRights
	}
	if c.Memory == nil && c.Buffers.Size == 0 {
		c.Memory = make([]byte, 64)
	}
	r, err := tb.Register(c)
	require.NoError(t, err)
	return r
}

// resolve is Resolve of a range that must be granted.
func resolve(t testing.TB, tb *Table, s wr.STag, to, n uint64) Ref {
	t.Helper()
	ref, f := tb.Resolve(s, to, n, alice, wr.LocalRead)
	require.Equal(t, OK, f)
	return ref
}

// allocate makes an Invalid STag of alice's, with room for 8 buffers.
func allocate(t testing.TB, tb *Table, remote bool) wr.STag {
	t.Helper()
	i, err := tb.Allocate(AllocateConfig{PD: alice.PD, PBL: 8, RemoteAccess: remote})
	require.NoError(t, err)
	return i.STag
}

// window makes a window of alice's.
func window(t testing.TB, tb *Table) wr.STag {
	t.Helper()
	s, err := tb.AllocateWindow(alice.PD)
	require.NoError(t, err)
	return s
}

// bind binds window w with key to octets [off, off+n) of region r, and returns
// its STag.
func bind(t testing.TB, tb *Table, w wr.STag, key uint8, r Info, off, n uint64, u User) wr.STag {
	t.Helper()
	s := wr.MakeSTag(w.Index(), key)
	require.Equal(t, OK, tb.Bind(&wr.BindRequest{
		Window: s, Region: r.STag, VA: r.Base + off, Length: n, Access: remoteRights,
	}, u))
	return s
}

// pages makes n physical buffers, or fails the test.
func pages(t testing.TB, tb *Table, n int, size uint64) *Pages {
	t.Helper()
	p, err := tb.AllocatePages(n, size)
	require.NoError(t, err)
	return p
}

// query is the whole of what the verbs tell about an STag.
func query(t testing.TB, tb *Table, s wr.STag) any {
	t.Helper()
	if i, err := tb.QueryRegion(s); err == nil {
		return i
	}
	i, err := tb.QueryWindow(s)
	if err != nil {
		require.ErrorIs(t, err, wr.ErrInvalidSTag)
		return nil
	}
	return i
}

// unchanged does what must leave the STags as they are (verbs draft 8.3.1).
func unchanged(t testing.TB, tb *Table, do func(), stags ...wr.STag) {
	t.Helper()
	n := tb.Len()
	var before []any
	for _, s := range stags {
		before = append(before, query(t, tb, s))
	}
	do()
	for i, s := range stags {
		require.Equal(t, before[i], query(t, tb, s), "%v", s)
	}
	require.Equal(t, n, tb.Len())
}

// pattern fills mem with octets that tell where they are.
func pattern(mem []byte) []byte {
	for i := range mem {
		mem[i] = byte(i) ^ byte(i>>8)*7
	}
	return mem
}
