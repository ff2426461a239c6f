package stag

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestModel does random things to a table and to the model, and compares every
// result, every Query and every octet. SOFTRNIC_MODEL_SEED runs one seed.
func TestModel(t *testing.T) {
	first, n := uint64(0), uint64(8)
	if env := os.Getenv("SOFTRNIC_MODEL_SEED"); env != "" {
		seed, err := strconv.ParseUint(env, 10, 64)
		require.NoError(t, err)
		first, n = seed, 1
	}
	seen := map[outcome]int{}
	for seed := first; seed < first+n; seed++ {
		ok := t.Run(fmt.Sprint("SOFTRNIC_MODEL_SEED=", seed), func(t *testing.T) {
			d := newDriver(t, seed, seen)
			for range 4000 {
				d.step()
			}
			d.compareAll()
			for i := range d.pages {
				d.comparePages(i)
			}
		})
		if !ok {
			return
		}
	}
	if n > 1 {
		for _, what := range modelOutcomes {
			assert.NotZero(t, seen[what], "%v never came up", what)
		}
	}
}

// modelOutcomes is what a run must have provoked at least once.
var modelOutcomes = slices.Concat(
	outcomes("register", wr.ErrInvalidPD, wr.ErrInvalidAccess, wr.ErrInvalidLength, wr.ErrInvalidVA, wr.ErrInvalidFBO,
		wr.ErrInvalidPhysBufferSize, wr.ErrInvalidPhysBufferEntry, wr.ErrInsufficientResources),
	outcomes("reregister", wr.ErrInvalidPD, wr.ErrInvalidAccess, wr.ErrInvalidLength, wr.ErrInvalidVA, wr.ErrInvalidFBO,
		wr.ErrInvalidPhysBufferSize, wr.ErrInvalidPhysBufferEntry, wr.ErrInvalidSTag, wr.ErrWindowsBound),
	outcomes("shared", wr.ErrInvalidSTag, wr.ErrInvalidPD, wr.ErrInvalidAccess, wr.ErrInvalidVA, wr.ErrInsufficientResources),
	outcomes("allocate", wr.ErrInvalidPD, wr.ErrInsufficientResources),
	outcomes("window", wr.ErrInvalidPD, wr.ErrInsufficientResources),
	outcomes("deallocate", wr.ErrInvalidSTag, wr.ErrWindowsBound),
	outcomes("retire", wr.ErrWindowsBound),
	outcomes("pages", wr.ErrInvalidLength, wr.ErrInvalidPhysBufferSize, wr.ErrInsufficientResources),
	outcomes("free", wr.ErrInvalidModifier),
	outcomes("fast", FaultPrivilege, FaultSTag, FaultPD, FaultNotInvalid, FaultRights, FaultBufferSize, FaultBufferList,
		FaultFBO, FaultLength, FaultVA, FaultBufferEntry),
	outcomes("bind", FaultWindow, FaultNotInvalid, FaultRegion, FaultPD, FaultAccess, FaultWrap, FaultBounds),
	outcomes("local", FaultSTag, FaultPD, FaultWindowsBound),
	outcomes("remote", FaultGone, FaultSTag, FaultPD, FaultAccess, FaultWindowsBound),
	outcomes("resolve", FaultSTag, FaultPD, FaultAccess, FaultWrap, FaultBounds),
	outcomes("copy", true), outcomes("copy out", true),
)

// outcomes are the zero result of an operation and others.
func outcomes[T comparable](what string, others ...T) []outcome {
	var success T
	all := []outcome{{what, success}}
	for _, o := range others {
		all = append(all, outcome{what, o})
	}
	return all
}

// outcome is a result of an operation: an AccessFault, an Immediate Error (0 for none)
// or a bool.
type outcome struct {
	what   string
	result any
}

// driver drives both worlds.
type driver struct {
	t     *testing.T
	rng   *rand.Rand
	seen  map[outcome]int
	block bool

	tb *Table
	m  *model

	mem, mirror []byte // Go memory of the two, page-aligned
	pages       []*Pages
	qps         []*modelQP
	known       []wr.STag // that may name something
	refs        []modelRef
	resolvers   map[resolverKey]*modelResolver // each lives as long as the table
}

// modelResolver is a Resolver and what it was asked last.
type modelResolver struct {
	Resolver
	s     wr.STag
	to, n uint64
}

type resolverKey struct {
	User
	need wr.Access
}

// resolveAgain asks resolvers that have been asked before: the one for u and need,
// and all others what they were asked last.
func (d *driver) resolveAgain(s wr.STag, to, n uint64, u User, need wr.Access) {
	k := resolverKey{u, need}
	if d.resolvers[k] == nil {
		if d.resolvers == nil {
			d.resolvers = map[resolverKey]*modelResolver{}
		}
		d.resolvers[k] = &modelResolver{Resolver: d.tb.Resolver(u, need)}
	}
	r := d.resolvers[k]
	r.s, r.to, r.n = s, to, n
	for k, r := range d.resolvers {
		want, f := d.tb.Resolve(r.s, r.to, r.n, k.User, k.need)
		ref, got := r.Resolve(r.s, r.to, r.n)
		require.Equal(d.t, f, got)
		require.Equal(d.t, want, ref)
	}
}

// modelRef is a Ref with what it stands for in the model.
type modelRef struct {
	ref   Ref
	e     *modelSTag
	life  int
	pages *modelPages // in place of e
	off   uint64
}

func newDriver(t *testing.T, seed uint64, seen map[outcome]int) *driver {
	rng := rand.New(rand.NewPCG(seed, 2003))
	c := Config{Regions: 14, Windows: 6, PBL: 5, BlockMode: seed%2 == 1, PhysicalMemory: 12 * page}
	d := &driver{t: t, rng: rng, seen: seen, block: c.BlockMode, tb: NewTable(c), m: newModel(c)}
	indices := rand.NewChaCha8([32]byte{byte(seed)})
	d.tb.supply.fill = func(b []byte) { _, _ = indices.Read(b) } // the seed decides all
	d.mem, d.mirror = aligned(2*page), aligned(2*page)
	for i := range 4 {
		d.qps = append(d.qps, d.newQP(i))
	}
	return d
}

// aligned is memory on a page boundary, so that the model knows its FBO.
func aligned(n int) []byte {
	mem := make([]byte, n+page)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % page
	return mem[skip : int(skip)+n : int(skip)+n]
}

func (d *driver) newQP(i int) *modelQP {
	return &modelQP{user: User{PD: wr.PDID(1 + i/3), QP: wr.QPID(1 + i), Windows: new(Windows), Privileged: d.rng.IntN(4) > 0}}
}

func (d *driver) learn(e *modelSTag, s wr.STag) {
	require.NotContains(d.t, d.m.stags, s.Index())
	e.index = s.Index()
	d.m.stags[e.index] = e
	d.known = append(d.known, s)
	if len(d.known) > 40 {
		d.known = d.known[1:]
	}
}

// errorOf is the Immediate Error in err, 0 if there is none.
func (d *driver) errorOf(err error) wr.ImmediateError {
	var e wr.ImmediateError
	if err != nil {
		require.ErrorAs(d.t, err, &e)
		require.True(d.t, errors.Is(err, e))
	}
	return e
}

// same compares the results of the two worlds.
func same[T comparable](d *driver, what string, want, got T, args ...any) {
	d.t.Helper()
	if want != got {
		require.Equal(d.t, want, got, "%s %+v", what, args)
	}
	d.seen[outcome{what, got}]++
}

func (d *driver) step() {
	switch d.rng.IntN(22) {
	case 0, 1:
		d.register()
	case 2:
		d.reregister()
	case 3:
		if d.chance(2) {
			d.registerShared()
		}
	case 4:
		d.allocate()
	case 5, 6, 7:
		d.fastRegister()
	case 8:
		d.allocateWindow()
	case 9, 10, 11:
		d.bind()
	case 12, 13:
		d.invalidate()
	case 14:
		d.deallocate()
	case 15:
		d.physical()
	case 16:
		d.useRef()
	case 17:
		if d.chance(8) {
			d.retire()
		}
	default:
		d.resolve()
	}
	require.Equal(d.t, len(d.m.stags), d.tb.Len())
	if d.chance(16) {
		d.compareAll()
	}
}

// compareAll compares every Query, the Go memory, and some pages.
func (d *driver) compareAll() {
	for i, e := range d.m.stags {
		want, got := d.m.query(e), query(d.t, d.tb, wr.MakeSTag(i, 0))
		if want != got {
			require.Equal(d.t, want, got)
		}
	}
	if !bytes.Equal(d.mirror, d.mem) {
		require.Equal(d.t, d.mirror, d.mem)
	}
	if len(d.pages) > 0 {
		d.comparePages(d.rng.IntN(len(d.pages)))
	}
}

func (d *driver) comparePages(i int) {
	if want, got := d.m.pages[i].mem, d.pages[i].Bytes(); !bytes.Equal(want, got) {
		require.Equal(d.t, want, got)
	}
}
