package stag

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// modelRegion is what the model knows of one STag: a list of facts and the TO
// of each octet.
type modelRegion struct {
	config  RegionConfig
	stag    wr.STag
	invalid bool
	octets  map[uint64]*byte
	refs    []modelRef
}

type modelRef struct {
	ref Ref
	to  uint64
}

// model is the slow and obvious twin of Table.
type model map[uint32]*modelRegion

func (m model) user(r *modelRegion, u User, remote bool) bool {
	if remote && r.config.QP != 0 && r.config.QP != u.QP {
		return false
	}
	return r.config.PD == u.PD
}

func (m model) resolve(s wr.STag, to, n uint64, u User, need wr.Access) Fault {
	r := m[s.Index()]
	if r == nil || r.invalid || r.stag.Key() != s.Key() {
		return FaultSTag
	}
	if !m.user(r, u, need&(wr.RemoteRead|wr.RemoteWrite) != 0) {
		return FaultPD
	}
	for bit := wr.Access(1); bit <= wr.BindWindow; bit <<= 1 {
		if need&bit != 0 && r.config.Access&bit == 0 {
			return FaultAccess
		}
	}
	inside := true
	for i := range n {
		if to+i < to {
			return FaultWrap
		}
		inside = inside && r.octets[to+i] != nil
	}
	if !inside {
		return FaultBounds
	}
	return OK
}

func (m model) invalidate(s wr.STag, u User, remote bool) Fault {
	r := m[s.Index()]
	if r == nil || !r.invalid && r.stag != s {
		return FaultSTag
	}
	if !m.user(r, u, remote) {
		return FaultPD
	}
	rights := r.config.Access&wr.RemoteRead != 0 || r.config.Access&wr.RemoteWrite != 0
	if remote && (!rights || r.config.NoRemoteInvalidate) {
		return FaultAccess
	}
	r.invalid = true
	return OK
}

func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		runModel(t, rand.New(rand.NewPCG(seed, 99)), 3000)
	}
}

func runModel(t *testing.T, rng *rand.Rand, steps int) {
	tb, m := NewTable(40), model{}
	mem := make([]byte, 256)    // what the table works on
	mirror := make([]byte, 256) // what the model works on
	seen := []wr.STag{0, 1 << 8}
	faults := map[Fault]int{}

	anySTag := func() wr.STag {
		s := seen[rng.IntN(len(seen))]
		if rng.IntN(8) == 0 {
			s ^= 1 << rng.IntN(32)
		}
		return s
	}
	anyUser := func() User {
		return User{PD: wr.PDID(1 + rng.IntN(6)/5), QP: wr.QPID(1 + rng.IntN(2))}
	}

	for range steps {
		switch op := rng.IntN(20); {
		case op < 3:
			lo := rng.IntN(len(mem))
			hi := lo + rng.IntN(len(mem)-lo+1)
			c := RegionConfig{
				PD: wr.PDID(1 + rng.IntN(6)/5), QP: wr.QPID(rng.IntN(3)),
				Access: wr.Access(rng.IntN(32)) | localRights*wr.Access(rng.IntN(2)),
				Key:    uint8(rng.Uint32()), Memory: mem[lo:hi],
				ZeroBased: rng.IntN(2) == 0, NoRemoteInvalidate: rng.IntN(4) == 0,
			}
			if !c.ZeroBased {
				c.VA = []uint64{1, 1000, 1<<63 - 100, ^uint64(0) - 256, ^uint64(0) - 50}[rng.IntN(5)]
			}
			fits := len(m) < 40 && hi > lo && c.Access.Valid() && (c.VA != ^uint64(0)-50 || hi-lo <= 50)
			r, err := tb.Register(c)
			require.Equal(t, fits, err == nil, "%+v: %v", c, err)
			if !fits {
				continue
			}
			require.NotContains(t, m, r.STag().Index())
			mr := &modelRegion{config: c, stag: r.STag(), octets: map[uint64]*byte{}}
			for i := range hi - lo {
				mr.octets[r.Base()+uint64(i)] = &mirror[lo+i]
			}
			m[r.STag().Index()] = mr
			seen = append(seen, r.STag())
			if len(seen) > 60 {
				seen = seen[len(seen)-60:]
			}
		case op < 4:
			s := anySTag()
			mr := m[s.Index()]
			err := tb.Deregister(s)
			require.Equal(t, mr != nil, err == nil)
			if mr != nil {
				delete(m, s.Index())
				for _, ref := range mr.refs {
					require.False(t, ref.ref.Hold())
				}
			}
		case op < 5:
			s, u, remote := anySTag(), anyUser(), rng.IntN(2) == 0
			want := m.invalidate(s, u, remote)
			var got Fault
			if remote {
				got = tb.InvalidateRemote(s, u)
			} else {
				got = tb.InvalidateLocal(s, u)
			}
			require.Equal(t, want, got)
		case op < 16:
			s, u := anySTag(), anyUser()
			need := wr.Access(1) << rng.IntN(4)
			to, n := uint64(rng.IntN(300)), uint64(1+rng.IntN(60))
			if mr := m[s.Index()]; mr != nil {
				to += mr.config.VA - 5
			}
			want := m.resolve(s, to, n, u, need)
			ref, got := tb.Resolve(s, to, n, u, need)
			require.Equal(t, want, got, "%v TO %#x n %d %+v %v", s, to, n, u, need)
			faults[got]++
			if got == OK {
				mr := m[s.Index()]
				mr.refs = append(mr.refs, modelRef{ref, to})
				copyBoth(t, rng, mr, modelRef{ref, to})
			}
		default: // an old Ref
			mr := m[anySTag().Index()]
			if mr != nil && len(mr.refs) > 0 {
				copyBoth(t, rng, mr, mr.refs[rng.IntN(len(mr.refs))])
			}
		}
		require.Equal(t, len(m), tb.Len())
		if !bytes.Equal(mirror, mem) {
			require.Equal(t, mirror, mem)
		}
	}
	for f := OK; f <= FaultBounds; f++ {
		require.NotZero(t, faults[f], "%v never came up", f)
	}
}

// copyBoth writes to some of the range in both worlds, or in neither.
func copyBoth(t *testing.T, rng *rand.Rand, mr *modelRegion, r modelRef) {
	off := rng.Uint64N(r.ref.Len() + 1)
	src := make([]byte, rng.Uint64N(r.ref.Len()-off+1))
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	require.Equal(t, !mr.invalid, r.ref.CopyIn(off, src))
	if mr.invalid {
		return
	}
	for i, b := range src {
		*mr.octets[r.to+off+uint64(i)] = b
	}
	got := make([]byte, len(src))
	require.True(t, r.ref.CopyOut(got, off))
	require.True(t, bytes.Equal(src, got))
}
