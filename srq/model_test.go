package srq

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// modelSeedEnv replays a run that failed, with the seed that it printed.
const modelSeedEnv = "SOFTRNIC_MODEL_SEED"

// model is the queue as the draft tells it, with nothing but slices.
type model struct {
	depth, sge, limit int
	armed             bool
	failed, closed    bool
	posted            []uint64
	taken             []*Element   // not released
	ids               []uint64     // what each of taken was posted with
	waiting           []waiterChan // in the order of their turns
	turns             map[waiterChan]uint64
	lastTurn          uint64
	tokens            map[waiterChan]bool
	events            []wr.EventID
}

// TestModel drives a queue at random and compares every result, the attributes
// and the events with the model.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	if v := os.Getenv(modelSeedEnv); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("%s=%d", modelSeedEnv, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		c := Config{Depth: 1 + rng.IntN(100), SGE: 1 + rng.IntN(3)}
		c.Limit = rng.IntN(c.Depth + 1)
		d := &modelDrive{
			rig: newRig(t, c), rng: rng, t: t,
			m: model{
				depth: c.Depth, sge: c.SGE, limit: c.Limit, armed: c.Limit > 0,
				turns: map[waiterChan]uint64{}, tokens: map[waiterChan]bool{},
			},
		}
		for range 8 {
			d.waiters = append(d.waiters, make(waiterChan, 1))
		}
		for range 400 {
			d.step()
			d.check()
		}
	}
}

// modelDrive runs the queue and its model side by side.
type modelDrive struct {
	*rig
	rng     *rand.Rand
	t       *testing.T
	m       model
	next    uint64
	waiters []waiterChan
	dead    []*Element // released before: releasing again does nothing
}

func (d *modelDrive) step() {
	switch op := d.rng.IntN(1000); {
	case op < 250:
		d.postSome()
	case op < 550:
		d.takeOne()
	case op < 800:
		d.release()
	case op < 900:
		d.modify()
	case op < 997:
		d.await(d.waiters[d.rng.IntN(len(d.waiters))])
	case op < 999:
		d.Fail()
		if !d.m.failed && !d.m.closed {
			d.m.failed = true
			d.m.events = append(d.m.events, wr.EventSRQCatastrophic)
			d.m.wake(len(d.m.waiting))
		}
	default:
		d.Close()
		d.m.closed, d.m.posted = true, nil
		d.m.wake(len(d.m.waiting))
	}
}

func (d *modelDrive) postSome() {
	var reqs []wr.Recv
	want, wantErr := 0, error(nil)
	if d.m.failed || d.m.closed {
		wantErr = wr.ErrInvalidSRQ
	}
	for range d.rng.IntN(30) {
		d.next++
		n := d.rng.IntN(d.m.sge + 1)
		if d.rng.IntN(40) == 0 {
			n = d.m.sge + 1
		}
		reqs = append(reqs, wr.Recv{ID: d.next, SGL: sgl(d.next, n)})
		switch {
		case wantErr != nil:
		case n > d.m.sge:
			wantErr = wr.ErrInvalidSGLLength
		case len(d.m.posted)+len(d.m.taken) == d.m.depth:
			wantErr = wr.ErrQueueFull
		default:
			want++
			d.m.posted = append(d.m.posted, d.next)
		}
	}
	d.m.wake(want)
	n, err := d.Post(reqs...)
	require.Equal(d.t, want, n)
	require.ErrorIs(d.t, err, wantErr)
}

func (d *modelDrive) takeOne() {
	var c waiterChan
	if i := d.rng.IntN(2 * len(d.waiters)); i < len(d.waiters) {
		c = d.waiters[i]
	}
	e, failed := d.TakeFor(c, false)
	require.Equal(d.t, d.m.failed || d.m.closed, failed)
	if failed {
		require.Nil(d.t, e)
		return
	}
	if len(d.m.posted) == 0 {
		require.Nil(d.t, e)
	} else {
		require.Equal(d.t, d.m.posted[0], e.ID)
		d.m.taken, d.m.ids = append(d.m.taken, e), append(d.m.ids, e.ID)
		d.m.posted = d.m.posted[1:]
		d.m.leave(c)
	}
	if d.m.armed && len(d.m.posted) < d.m.limit {
		d.m.armed = false
		d.m.events = append(d.m.events, wr.EventSRQLimit)
	}
}

func (d *modelDrive) release() {
	if len(d.dead) > 0 && d.rng.IntN(3) == 0 {
		e := d.dead[d.rng.IntN(len(d.dead))]
		if !slices.Contains(d.m.taken, e) { // else it is somebody's again
			e.Release(d.rng.Uint64())
		}
		return
	}
	if len(d.m.taken) == 0 {
		return
	}
	i, last := d.rng.IntN(len(d.m.taken)), len(d.m.taken)-1
	e := d.m.taken[i]
	e.Release(d.rng.Uint64())
	d.dead = append(d.dead, e)
	d.m.taken[i], d.m.ids[i] = d.m.taken[last], d.m.ids[last]
	d.m.taken, d.m.ids = d.m.taken[:last], d.m.ids[:last]
}

func (d *modelDrive) modify() {
	var m Modify
	depth, limit := d.m.depth, d.m.limit
	if d.rng.IntN(2) == 0 {
		depth = d.rng.IntN(110) - 2
		m.Depth = &depth
	}
	if d.rng.IntN(3) == 0 {
		limit = d.rng.IntN(110) - 2
		m.Limit = &limit
	}
	m.Rearm = d.rng.IntN(3) == 0
	armed := limit > 0 && (m.Rearm || d.m.armed)
	var want error
	switch {
	case d.m.closed:
		want = wr.ErrInvalidSRQ
	case depth <= 0, armed && limit > depth && m.Limit == nil:
		want = wr.ErrInvalidModifier
	case m.Limit != nil && (limit < 0 || limit > depth):
		want = wr.ErrSRQLimitRange
	case depth < len(d.m.posted)+len(d.m.taken):
		want = wr.ErrShrinkFailed
	default:
		d.m.depth, d.m.limit, d.m.armed = depth, limit, armed
	}
	require.ErrorIs(d.t, d.Modify(m), want)
}

func (d *modelDrive) await(c waiterChan) {
	switch d.rng.IntN(3) {
	case 0:
		d.Await(c)
		d.m.await(c)
	case 1:
		d.Forget(c)
		woken := d.m.turns[c] != 0 && !slices.Contains(d.m.waiting, c)
		d.m.leave(c)
		if woken && len(d.m.posted) > 0 {
			d.m.wake(1)
		}
	default:
		require.Equal(d.t, d.m.tokens[c], token(c))
		d.m.tokens[c] = false
	}
}

// await puts c where its place is.
func (m *model) await(c waiterChan) {
	if m.turns[c] == 0 {
		m.lastTurn++
		m.turns[c] = m.lastTurn
	}
	if !slices.Contains(m.waiting, c) {
		m.waiting = append(m.waiting, c)
		slices.SortFunc(m.waiting, func(a, b waiterChan) int { return cmp.Compare(m.turns[a], m.turns[b]) })
	}
	switch {
	case m.failed || m.closed:
		m.wake(len(m.waiting))
	case len(m.posted) > 0:
		m.wake(1)
	}
}

func (m *model) leave(c waiterChan) {
	delete(m.turns, c)
	if i := slices.Index(m.waiting, c); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
}

// wake wakes the first n.
func (m *model) wake(n int) {
	n = min(n, len(m.waiting))
	for _, c := range m.waiting[:n] {
		m.tokens[c] = true
	}
	m.waiting = slices.Clone(m.waiting[n:])
}

// check compares what can be seen at any time, and the queue's own bounds.
func (d *modelDrive) check() {
	require.Equal(d.t, Attributes{
		Depth: d.m.depth, SGE: d.m.sge, Limit: d.m.limit, PD: 9, Armed: d.m.armed,
	}, d.Query())
	require.True(d.t, slices.Equal(d.m.events, d.events), "%v, not %v", d.events, d.m.events)
	for c, want := range d.m.tokens {
		require.Equal(d.t, want, len(c) == 1)
	}
	if n := len(d.m.taken); n > 0 { // nobody touches what is taken
		i := d.rng.IntN(n)
		e := d.m.taken[i]
		require.Equal(d.t, d.m.ids[i], e.ID)
		require.True(d.t, slices.Equal(sgl(e.ID, len(e.SGL)), e.SGL))
	}
	require.Len(d.t, d.m.posted, d.posted.n)
	var asleep []waiterChan
	for w := d.starved.first; w != nil; w = w.next {
		asleep = append(asleep, w.c.(waiterChan))
	}
	require.True(d.t, slices.Equal(d.m.waiting, asleep))
	// woken are those who have not taken one, or looked in vain, since.
	if woken := len(d.m.turns) - len(asleep); len(asleep) > 0 {
		require.GreaterOrEqual(d.t, woken, len(d.m.posted), "nobody sleeps while a receive is there")
	}
	require.LessOrEqual(d.t, d.used+d.spare, d.m.depth)
	n := 0
	for e := d.free; e != nil; e = e.next {
		n++
	}
	require.Equal(d.t, d.spare, n)
}
