package stag

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

const (
	allRights   = wr.LocalRead | wr.LocalWrite | wr.RemoteRead | wr.RemoteWrite | wr.BindWindow
	localRights = wr.LocalRead | wr.LocalWrite
)

var alice = User{PD: 7, QP: 3}

// register makes a region that alice may use, or fails the test. Zero Access
// means every right, nil Memory 64 octets.
func register(t testing.TB, tb *Table, c RegionConfig) *Region {
	t.Helper()
	if c.PD == 0 {
		c.PD = alice.PD
	}
	if c.Access == 0 {
		c.Access = allRights
	}
	if c.Memory == nil {
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
