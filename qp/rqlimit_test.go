package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestRQLimit (verbs draft 6.3.8): one message is in progress at most, so that
// only an armed limit of 0 is exceeded, once.
func TestRQLimit(t *testing.T) {
	zero, one, many := 0, 1, 9
	for name, c := range map[string]struct {
		create int
		modify Modify
		want   []wr.EventID
		limit  int
		armed  bool // afterwards
	}{
		"as created":          {0, Modify{Next: wr.StateRTS}, nil, 0, false},
		"created armed":       {1, Modify{Next: wr.StateRTS}, nil, 1, true},
		"armed":               {0, Modify{Next: wr.StateRTS, ArmRQLimit: true}, []wr.EventID{wr.EventRQLimit}, 0, false},
		"set to 0":            {1, Modify{Next: wr.StateRTS, RQLimit: &zero}, []wr.EventID{wr.EventRQLimit}, 0, false},
		"set to 0 and armed":  {1, Modify{Next: wr.StateRTS, RQLimit: &zero, ArmRQLimit: true}, []wr.EventID{wr.EventRQLimit}, 0, false},
		"set to 1, not armed": {0, Modify{Next: wr.StateRTS, RQLimit: &one}, nil, 1, false},
		"set to 1 and armed":  {0, Modify{Next: wr.StateRTS, RQLimit: &one, ArmRQLimit: true}, nil, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			shared := newShared(t, ownPD)
			s := setup{config: func(q *Config) { q.SRQ, q.RQLimit = shared.Queue, c.create }}
			r := newIdleRig(t, s)
			bad := Modify{Next: wr.StateIdle, RQLimit: &many, ArmRQLimit: true}
			before := r.q.Query()
			require.ErrorIs(t, r.q.Modify(bad), wr.ErrRQLimitRange, "the S-RQ has 8")
			require.Equal(t, before, r.q.Query())
			r.modify = c.modify
			r.connect()
			shared.post(wr.Recv{ID: 1}, wr.Recv{ID: 2})
			r.send(rawpeer.Send(1, nil).Octets(), rawpeer.Send(2, nil).Octets())
			require.Equal(t, []comp{{1, 0, 0}, {2, 0, 0}}, r.wait(r.rcq, 2), "it disturbs nothing")
			r.requireEvents(c.want...)
			got := r.q.Query()
			require.Equal(t, c.limit, got.RQLimit)
			require.Equal(t, c.armed, got.RQLimitArmed)
		})
	}
}
