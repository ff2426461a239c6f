package cq

import (
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

// model is the queue as the draft tells it, with a slice.
type model struct {
	size           int
	queued         []uint64
	released       []uint64
	armed          wr.NotifyType
	token          bool
	calls          int
	told           bool // of the overflow that lasts
	failed, closed bool
	events         []wr.EventID
}

// modelDrive runs a queue and its model side by side.
type modelDrive struct {
	*eventful
	t     *testing.T
	rng   *rand.Rand
	m     model
	s     slots
	calls int
	next  uint64
}

// TestModel drives a queue at random and compares every result with the model.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	if v := os.Getenv(modelSeedEnv); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("%s=%d", modelSeedEnv, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		d := &modelDrive{t: t, rng: rng, m: model{size: 1 + rng.IntN(9)}}
		d.eventful = newEventful(t, d.m.size)
		d.notify = func() { d.calls++ }
		for range 300 {
			d.step()
			d.check()
		}
	}
}

func (d *modelDrive) step() {
	switch op := d.rng.IntN(1000); {
	case op < 450:
		d.push()
	case op < 650:
		d.poll()
	case op < 800:
		d.request()
	case op < 850:
		require.Equal(d.t, d.m.token, notified(d.Queue))
		d.m.token = false
	case op < 995:
		d.resize()
	case op < 998:
		d.Fail()
		if !d.m.failed && !d.m.closed {
			d.m.failed = true
			d.m.events = append(d.m.events, wr.EventCQOperation)
		}
	default:
		d.Close()
		d.m.reap(len(d.m.queued))
		d.m.closed, d.m.size = true, 0
	}
}

func (d *modelDrive) push() {
	d.next++
	e := entry(d.next)
	e.Owner, e.Pos = d.s.slot(d.next), d.next
	e.Solicited = d.rng.IntN(3) == 0
	if d.rng.IntN(5) == 0 {
		e.Status = wr.StatusFlushed
	}
	m := &d.m
	switch {
	case m.closed || m.failed:
		require.False(d.t, d.Push(e))
		return
	case len(m.queued) == m.size:
		require.False(d.t, d.Push(e))
		if !m.told {
			m.told = true
			m.events = append(m.events, wr.EventCQOverflow)
		}
		return
	}
	require.True(d.t, d.Push(e))
	m.queued = append(m.queued, d.next)
	if m.armed == wr.NotifyNext || m.armed == wr.NotifySolicited && (e.Solicited || e.Status != 0) {
		m.armed, m.token = 0, true
		m.calls++
	}
}

// reap takes n completions out of the model.
func (m *model) reap(n int) {
	m.released = append(m.released, m.queued[:n]...)
	m.queued = m.queued[n:]
	m.told = m.told && n == 0
}

func (d *modelDrive) poll() {
	m := &d.m
	if d.rng.IntN(2) == 0 {
		c, err := d.PollOne()
		switch {
		case m.closed:
			require.ErrorIs(d.t, err, wr.ErrInvalidCQ)
		case len(m.queued) == 0:
			require.ErrorIs(d.t, err, wr.ErrCQEmpty)
		default:
			require.NoError(d.t, err)
			require.Equal(d.t, m.queued[0], c.ID)
			m.reap(1)
		}
		return
	}
	buf := make([]wr.Completion, d.rng.IntN(4))
	n := d.Poll(buf)
	require.Equal(d.t, min(len(buf), len(m.queued)), n)
	require.True(d.t, slices.Equal(ids(buf[:n]), m.queued[:n]))
	m.reap(n)
}

func (d *modelDrive) request() {
	n := wr.NotifyType(1 + d.rng.IntN(2))
	if d.m.closed {
		require.ErrorIs(d.t, d.Request(n), wr.ErrInvalidCQ)
		return
	}
	require.NoError(d.t, d.Request(n))
	if d.m.armed != wr.NotifyNext {
		d.m.armed = n
	}
}

func (d *modelDrive) resize() {
	entries := d.rng.IntN(14) - 1
	var want error
	switch {
	case entries < 1:
		want = wr.ErrInvalidModifier
	case d.m.closed:
		want = wr.ErrInvalidCQ
	case entries < len(d.m.queued):
		want = wr.ErrShrinkFailed
	default:
		d.m.size = entries
		d.m.told = d.m.told && len(d.m.queued) == entries
	}
	require.ErrorIs(d.t, d.Resize(entries), want)
}

// check compares what can be seen at any time.
func (d *modelDrive) check() {
	require.Equal(d.t, d.m.size, d.Cap())
	require.Equal(d.t, len(d.m.queued), d.Len())
	require.Equal(d.t, d.m.calls, d.calls)
	require.True(d.t, slices.Equal(d.m.events, d.events), "%v, not %v", d.events, d.m.events)
	require.True(d.t, slices.Equal(d.m.released, d.s.released), "released")
}
