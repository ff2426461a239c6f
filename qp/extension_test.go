package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/wire"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// extended is a queue pair that speaks RFC 7306.
func extended(c *setup) { c.config = func(c *Config) { c.Extensions = true } }

// TestExtensionsAreOffByDefault: no operation of RFC 7306 is posted to a queue pair that
// does not speak it, and nothing is sent.
func TestExtensionsAreOffByDefault(t *testing.T) {
	r := newRig(t, setup{})
	for op := wr.OpImmediate; op.IsExtension(); op++ {
		n, err := r.q.PostSend(wr.Request{Op: op, Atomic: &wr.AtomicRequest{}})
		require.ErrorIs(t, err, wr.ErrInvalidOp, "%v", op)
		require.ErrorContains(t, err, "QPConfig.Extensions")
		require.Zero(t, n)
	}
	require.False(t, r.q.Query().Extensions)
	r.postSend(wr.Request{ID: 1})
	require.Equal(t, wire.Send(1, nil).Octets(), r.next())
}

// extensionAttacks are on a queue pair that speaks RFC 7306. What no RFC defines is still
// unexpected there, and so is what it defines where the T flag or the queue is another than
// its figure 2 has.
func extensionAttacks() (all []attack) {
	for op := rdmap.AtomicResponse + 1; op <= 0xF; op++ {
		all = append(all, attack{
			name: "extended, opcode " + op.String(), bad: seg(wire.Segment{Op: op, MSN: 1, Payload: make([]byte, 8)}),
			fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
		})
	}
	for op := rdmap.Immediate; op <= rdmap.AtomicResponse; op++ {
		all = append(all, attack{
			name: op.String() + " tagged", bad: seg(wire.Segment{Tagged: true, Op: op, Payload: make([]byte, 52)}),
			fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
		}, attack{
			name: op.String() + " to queue 2", bad: seg(wire.Segment{Op: op, QN: 2, MSN: 1, Payload: make([]byte, 52)}),
			fault: faultQN, code: 0x1201, echo: echoDDP, event: wr.EventInvalidQN,
		})
	}
	for i := range all {
		all[i].set = extended
	}
	return all
}
