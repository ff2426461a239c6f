package qp

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/wr"
)

func num(n int) *int { return &n }

// supplied is an attribute of Modify QP, and how to see that it was changed.
type supplied struct {
	name   string
	config func(*Config)
	put    func(*Modify)
	seen   func(*rig) bool
}

func shared(c *Config) { c.SRQ = srq.New(srq.Config{ID: 1, PD: ownPD, Depth: 8, SGE: 1}) }

var suppliedAttributes = []supplied{
	{name: "LLP stream", put: func(*Modify) {}, seen: func(r *rig) bool { return r.q.Query().Stream != nil }},
	{
		name: "stream message buffer", put: func(m *Modify) { m.LastMessage = []byte("last") },
		seen: func(r *rig) bool {
			b := make([]byte, 4)
			_, err := io.ReadFull(r.peer.Conn, b)
			return err == nil && string(b) == "last"
		},
	},
	{name: "ORD", put: func(m *Modify) { m.ORD = num(9) }, seen: func(r *rig) bool { return r.q.Query().ORD == 9 }},
	{name: "IRD", put: func(m *Modify) { m.IRD = num(9) }, seen: func(r *rig) bool { return r.q.Query().IRD == 9 }},
	{name: "SQ depth", put: func(m *Modify) { m.SendDepth = num(64) }, seen: func(r *rig) bool { return r.q.Query().SendDepth == 64 }},
	{name: "RQ depth", put: func(m *Modify) { m.RecvDepth = num(64) }, seen: func(r *rig) bool { return r.q.Query().RecvDepth == 64 }},
	{
		name: "RQ limit", config: shared, put: func(m *Modify) { m.RQLimit = num(3) },
		seen: func(r *rig) bool { return r.q.Query().RQLimit == 3 },
	},
	{
		name: "RQ limit armed", config: shared, put: func(m *Modify) { m.ArmRQLimit = true },
		seen: func(r *rig) bool { return r.q.Query().RQLimitArmed },
	},
}

// figures4and5 are the attributes that each transition allows, by name. What is
// not here allows none; what is not in legal is no transition.
var (
	figures4and5 = map[[2]wr.State][]string{
		{wr.StateIdle, wr.StateIdle}: {"ORD", "IRD", "SQ depth", "RQ depth", "RQ limit", "RQ limit armed"},
		{wr.StateIdle, wr.StateRTS}:  {"LLP stream", "stream message buffer", "ORD", "IRD", "SQ depth", "RQ depth", "RQ limit", "RQ limit armed"},
		{wr.StateRTS, wr.StateRTS}:   {"ORD", "IRD", "SQ depth", "RQ depth"},
	}
	legal = map[[2]wr.State]bool{
		{wr.StateIdle, wr.StateIdle}: true, {wr.StateIdle, wr.StateRTS}: true, {wr.StateIdle, wr.StateError}: true, {wr.StateRTS, wr.StateRTS}: true, {wr.StateRTS, wr.StateClosing}: true,
		{wr.StateRTS, wr.StateTerminate}: true, {wr.StateRTS, wr.StateError}: true, {wr.StateError, wr.StateIdle}: true,
	}
)

// in brings a new rig into a state.
func in(t *testing.T, s wr.State, c setup) *rig {
	r := newIdleRig(t, c)
	if s != wr.StateIdle {
		r.connect()
	}
	switch s {
	case wr.StateClosing, wr.StateTerminate: // until the peer closes
		require.NoError(t, r.q.Modify(Modify{Next: s}))
	case wr.StateError:
		require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
	default:
	}
	require.Equal(t, s, r.q.State())
	return r
}

// streamTo makes a stream for r whose other end is r.peer, if it has none yet.
func (r *rig) streamTo() *mpa.Stream {
	mine, theirs, err := rawpeer.Pair()
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _, _ = mine.Close(), theirs.Close() })
	if r.peer == nil {
		r.peer = rawpeer.New(theirs, rawpeer.Options{Patience: patience})
	}
	return &mpa.Stream{Conn: mine}
}

// TestModifyAttributes supplies each attribute with each transition: it is
// changed, or everything stays (verbs draft 6.1.3, figures 4 and 5).
func TestModifyAttributes(t *testing.T) {
	for _, from := range allStates() {
		for _, next := range allStates() {
			for _, a := range suppliedAttributes {
				t.Run(fmt.Sprintf("%v to %v/%s", from, next, a.name), func(t *testing.T) {
					r := in(t, from, setup{config: a.config})
					before := r.q.Query()
					cell := [2]wr.State{from, next}
					m := Modify{Next: next}
					if cell == [2]wr.State{wr.StateIdle, wr.StateRTS} || a.name == "LLP stream" {
						m.Stream = r.streamTo()
					}
					a.put(&m)
					err := r.q.Modify(m)
					switch {
					case !legal[cell]:
						require.ErrorIs(t, err, wr.ErrInvalidState)
						require.Equal(t, before, r.q.Query())
					case !slices.Contains(figures4and5[cell], a.name):
						require.ErrorIs(t, err, wr.ErrInvalidModifier)
						require.Equal(t, before, r.q.Query())
					default:
						require.NoError(t, err)
						require.Equal(t, next, r.q.State())
						require.True(t, a.seen(r))
					}
				})
			}
		}
	}
}

// TestModifyIsAllOrNothing has one attribute of several be at fault (RV-6.1.3-M4).
func TestModifyIsAllOrNothing(t *testing.T) {
	good := func() Modify { return Modify{ORD: num(2), IRD: num(2), SendDepth: num(64), RecvDepth: num(8)} }
	always := func(e wr.ImmediateError) map[wr.State]wr.ImmediateError {
		return map[wr.State]wr.ImmediateError{wr.StateIdle: e, wr.StateRTS: e}
	}
	enhanced := func(s *mpa.Stream) { s.Enhanced, s.IRD, s.ORD = true, 4, 3 }
	for name, c := range map[string]struct {
		set   setup
		spoil func(*rig, *Modify)
		want  map[wr.State]wr.ImmediateError
	}{
		"negative ORD":   {spoil: func(_ *rig, m *Modify) { m.ORD = num(-1) }, want: always(wr.ErrInvalidModifier)},
		"negative IRD":   {spoil: func(_ *rig, m *Modify) { m.IRD = num(-1) }, want: always(wr.ErrInvalidModifier)},
		"no Send Queue":  {spoil: func(_ *rig, m *Modify) { m.SendDepth = num(0) }, want: always(wr.ErrInvalidModifier)},
		"no RQ":          {spoil: func(_ *rig, m *Modify) { m.RecvDepth = num(0) }, want: always(wr.ErrInvalidModifier)},
		"RQ of an S-RQ":  {set: setup{config: shared}, spoil: func(*rig, *Modify) {}, want: always(wr.ErrInvalidModifier)},
		"limit, no S-RQ": {spoil: func(_ *rig, m *Modify) { m.RQLimit = num(1) }, want: always(wr.ErrInvalidModifier)},
		"limit too high": {
			set: setup{config: shared}, spoil: func(_ *rig, m *Modify) { m.RecvDepth, m.RQLimit = nil, num(9) },
			want: map[wr.State]wr.ImmediateError{wr.StateIdle: wr.ErrRQLimitRange, wr.StateRTS: wr.ErrInvalidModifier}, // figure 5
		},
		"more than the peer answers": {
			set: setup{stream: enhanced}, spoil: func(_ *rig, m *Modify) { m.ORD = num(4) },
			want: map[wr.State]wr.ImmediateError{wr.StateRTS: wr.ErrORDExceeded}, // in Idle nothing is agreed
		},
		"sends outstanding": {
			spoil: func(r *rig, m *Modify) { r.postSend(make([]wr.Request, 5)...); m.SendDepth = num(4) }, want: always(wr.ErrShrinkFailed),
		},
		"receives outstanding": {
			spoil: func(r *rig, m *Modify) { r.postRecv(make([]wr.Recv, 9)...) }, want: always(wr.ErrShrinkFailed),
		},
		"Reads to answer outstanding": {
			spoil: func(r *rig, m *Modify) {
				if r.s == nil {
					return // none in Idle
				}
				r.s.tx.mu.Lock()
				r.t.Cleanup(r.s.tx.mu.Unlock)
				r.send(goodRead(1)(r), goodRead(2)(r), goodRead(3)(r))
				require.Eventually(r.t, func() bool { return r.s.irrq.len() == 3 }, patience, time.Millisecond)
			},
			want: map[wr.State]wr.ImmediateError{wr.StateRTS: wr.ErrShrinkFailed},
		},
	} {
		for _, from := range []wr.State{wr.StateIdle, wr.StateRTS} {
			t.Run(fmt.Sprintf("%s, %v", name, from), func(t *testing.T) {
				r := in(t, from, c.set)
				m := good()
				m.Next = from
				c.spoil(r, &m)
				want := c.want[from]
				if want == 0 {
					return // not in this state
				}
				before := r.q.Query()
				require.ErrorIs(t, r.q.Modify(m), want)
				require.Equal(t, before, r.q.Query())
			})
		}
	}
}

// TestModifyReadResources lets ORD and IRD grow and shrink while connected (verbs
// draft 6.5): Reads go as far as the new ORD, and are answered as far as the new
// IRD.
func TestModifyReadResources(t *testing.T) {
	r := newRig(t, setup{ird: -1, ord: 1})
	read := func(id uint64) wr.Request {
		return wr.Request{ID: id, Op: wr.OpRead, Local: r.full.sge(int(id)*8, 4), Remote: wr.Remote{STag: 5}}
	}
	r.postSend(read(1), read(2), read(3), read(4))
	request := func(msn int) { require.EqualValues(t, msn, r.next()[13], "MSN of the Read Request") }
	answer := func(id int) {
		r.full.expect(id*8, filled(4))
		r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(id*8), filled(4)).Octets())
	}
	request(1)
	require.True(t, r.peer.Silent(20*time.Millisecond), "ORD is 1")
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, ORD: num(3), IRD: num(2)}))
	request(2)
	request(3)
	require.True(t, r.peer.Silent(20*time.Millisecond), "ORD is 3")
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, ORD: num(1)}), "RV-6.5-M9: also with more outstanding")
	answer(1)
	answer(2)
	require.Len(t, r.wait(r.scq, 2), 2)
	require.True(t, r.peer.Silent(20*time.Millisecond), "3 is outstanding")
	answer(3)
	request(4)
	answer(4)
	require.Len(t, r.wait(r.scq, 2), 2)

	r.send(goodRead(1)(r))
	r.next()
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, IRD: num(0)}))
	bad := goodRead(2)(r)
	r.send(bad)
	require.Equal(t, terminate(0x1202, echoDDP, bad), r.next())
	r.requireMemory()
}

// TestORDOfZeroAndBack: a Read with ORD 0 is an error, also after Modify QP.
func TestORDOfZeroAndBack(t *testing.T) {
	r := newRig(t, setup{})
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, ORD: num(0)}))
	r.postSend(wr.Request{ID: 1, Op: wr.OpRead})
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	require.Equal(t, []comp{{1, wr.StatusZeroReadResources, 0}}, r.wait(r.scq, 1))
}

// TestQuery has all that a queue pair knows of itself (verbs draft 9.2.5.2).
func TestQuery(t *testing.T) {
	r := newRig(t, setup{config: func(c *Config) {
		c.NoBind, c.Privileged, c.GracefulReceive, c.NoInboundRead, c.NoInboundWrite = true, true, true, true, true
		c.Extensions = true
		c.SendSGE, c.WriteSGE, c.RecvSGE = 5, 6, 7
	}})
	got := r.q.Query()
	require.NotNil(t, got.Stream)
	require.Equal(t, Attributes{
		State: wr.StateRTS, SendDepth: 16, RecvDepth: 16, SendSGE: 5, WriteSGE: 6, RecvSGE: 7, IRD: 4, ORD: 4,
		NoInboundRead: true, NoInboundWrite: true, NoBind: true, Privileged: true, GracefulReceive: true, Extensions: true, Stream: got.Stream,
	}, got)
	r = newIdleRig(t, setup{config: func(c *Config) { shared(c); c.RQLimit = 2 }})
	require.Equal(t, Attributes{
		State: wr.StateIdle, SendDepth: 16, SendSGE: 4, WriteSGE: 4, IRD: 4, ORD: 4, RQLimit: 2, RQLimitArmed: true,
	}, r.q.Query())
}
