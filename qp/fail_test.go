package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/wire"
	"github.com/softrnic/softrnic/wr"
)

// TestFail are the failures of figures 24 and 25 that only a program provokes: the
// Terminate code, and whether an event or a completion tells (RV-6.2.3-M14).
func TestFail(t *testing.T) {
	lost := func(id uint64) comp { return comp{ID: id, Status: wr.StatusLocalQPCatastrophic} }
	for name, c := range map[string]struct {
		idle  bool // nothing on the Send Queue
		fail  func(*QP)
		code  uint16
		sends []comp
		event wr.EventID
	}{
		"QP, idle":      {idle: true, fail: (*QP).Fail, code: 0x0207, event: wr.EventLocalQPCatastrophic},
		"QP, at a Read": {fail: (*QP).Fail, code: 0x0207, sends: append([]comp{lost(10)}, flushed(11)...)},
		"RNIC, idle":    {idle: true, fail: (*QP).FailGlobal, code: 0x0208},
		"RNIC, at work": {fail: (*QP).FailGlobal, code: 0x0208, sends: flushed(10, 11)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{})
			r.arrange(c.idle)
			c.fail(r.q)
			require.Equal(t, terminate(c.code, echoNone, nil), r.next())
			r.requireEnd(wire.FIN)
			require.NoError(t, r.peer.Close())
			r.over()
			require.Equal(t, Error, r.q.State())
			require.NotNil(t, r.q.Query().Terminate)
			if c.event != 0 {
				r.requireEvents(c.event)
			} else {
				r.requireEvents()
			}
			assert.Equal(t, c.sends, r.all(r.scq))
			assert.Equal(t, flushed(1, 2), r.all(r.rcq))
			r.requireMemory()
			r.requireReusable()
		})
	}
}

// TestFailInTheMiddle of a Send: it is the request that was processed. The peer
// does not read, so the LLP fails too, which is told (RV-6.2.3-M15).
func TestFailInTheMiddle(t *testing.T) {
	r := newIdleRig(t, setup{closeTimeout: 50 * time.Millisecond, crc: true})
	big := r.big(32 << 20)
	r.connectNarrow()
	r.postSend(wr.Send{ID: 1, SGL: []wr.SGE{big}}, wr.Send{ID: 2})
	r.stuck()
	r.q.Fail()
	r.over()
	require.Equal(t, []comp{{1, wr.StatusLocalQPCatastrophic, 0}, {2, wr.StatusFlushed, 0}}, r.all(r.scq))
	r.requireEvents(wr.EventBadClose)
	r.requireReusable()
}

// TestFailWithoutStream: in Idle it leads to Error; where a stream has ended, or is
// about to, it does nothing.
func TestFailWithoutStream(t *testing.T) {
	for _, c := range []struct {
		from, to State
		fail     func(*QP)
		event    wr.EventID
	}{
		{Idle, Error, (*QP).Fail, wr.EventLocalQPCatastrophic},
		{Idle, Error, (*QP).FailGlobal, 0},
		{Closing, Closing, (*QP).Fail, 0},
		{Terminate, Terminate, (*QP).FailGlobal, 0},
		{Error, Error, (*QP).Fail, 0},
	} {
		r := in(t, c.from, setup{})
		if c.from == Idle {
			r.postSend(wr.Send{ID: 1})
			r.postRecv(wr.Recv{ID: 2})
		}
		c.fail(r.q)
		require.Equal(t, c.to, r.q.State())
		if c.event != 0 {
			r.requireEvents(c.event)
		} else {
			r.requireEvents()
		}
		if c.from == Idle {
			require.Equal(t, flushed(1), r.all(r.scq))
			require.Equal(t, flushed(2), r.all(r.rcq))
			r.requireReusable()
		}
	}
	r := newIdleRig(t, setup{})
	require.NoError(t, r.q.Destroy())
	r.q.Fail()
	r.requireEvents()
}
