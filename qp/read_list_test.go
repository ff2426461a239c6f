package qp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// listRig is a rig whose Reads have up to four sinks.
func listRig(t *testing.T, ord int) *rig {
	return newRig(t, setup{ord: ord, config: func(c *Config) { c.ReadSGE = 4 }})
}

// asks is the Read Request that goes out for one sink.
func (s *slab) asks(msn uint32, off, n int, from uint64) []byte {
	return rawpeer.ReadRequest(msn, rdmap.ReadRequestHeader{
		SinkSTag: uint32(s.stag), SinkTO: s.at(off), Size: uint32(n), SourceSTag: 5, SourceTO: from,
	}).Octets()
}

// answers sends the octets of one sink.
func (r *rig) answers(s *slab, off int, payload []byte) {
	r.t.Helper()
	r.send(rawpeer.ReadResponse(uint32(s.stag), s.at(off), payload).Octets())
	s.expect(off, payload)
}

// TestReadIntoSeveral: a Request for each sink that is not empty, as ORD allows, and one completion behind the last answer. What
// is fenced waits for all of it.
func TestReadIntoSeveral(t *testing.T) {
	for _, ord := range []int{1, 2, 4} {
		r := listRig(t, ord)
		r.postSend(
			wr.Request{ID: 1, Op: wr.OpRead, Remote: wr.Remote{STag: 5, TO: 1000}, SGL: []wr.SGE{r.full.sge(100, 20), r.full.sge(0, 0), r.full.sge(7, 9), r.full.sge(50, 3)}},
			wr.Request{ID: 2, Flags: wr.ReadFence},
		)
		pieces := []struct {
			of     *slab
			off, n int
			from   uint64
		}{{r.full, 100, 20, 1000}, {r.full, 7, 9, 1020}, {r.full, 50, 3, 1029}}
		asked := 0
		for i, p := range pieces {
			for ; asked < min(i+ord, len(pieces)); asked++ {
				q := pieces[asked]
				require.Equal(t, q.of.asks(uint32(1+asked), q.off, q.n, q.from), r.next(), "ORD %d", ord)
			}
			require.Empty(t, r.all(r.scq))
			r.answers(p.of, p.off, filled(p.n))
		}
		require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
		require.Equal(t, []comp{{1, 0, 0}, {2, 0, 0}}, r.wait(r.scq, 2))
		r.postSend(wr.Request{ID: 3, Op: wr.OpRead, Remote: wr.Remote{STag: 5, TO: 70}, Local: r.full.sge(60, 2)})
		require.Equal(t, r.full.asks(4, 60, 2, 70), r.next(), "the next Read")
		r.answers(r.full, 60, filled(2))
		require.Equal(t, []comp{{3, 0, 0}}, r.wait(r.scq, 1))
		r.requireMemory()
		require.NoError(t, r.peer.CloseWrite())
		r.over()
		require.Equal(t, wr.StateIdle, r.q.State(), "nothing is left")
	}
}

// TestReadIntoNone: a list without an octet, or with one sink, is a Read as any other; without ReadSGE, and with Invalidate, Local counts.
func TestReadIntoNone(t *testing.T) {
	r := listRig(t, 4)
	r.postSend(
		wr.Request{ID: 1, Op: wr.OpRead, Remote: wr.Remote{STag: 5}, SGL: []wr.SGE{r.full.sge(3, 0), r.full.sge(4, 0)}, Local: r.full.sge(30, 2)},
		wr.Request{ID: 2, Op: wr.OpRead, Remote: wr.Remote{STag: 5}, SGL: []wr.SGE{r.full.sge(3, 0), r.full.sge(4, 5)}},
		wr.Request{ID: 3, Op: wr.OpReadInvalidate, Remote: wr.Remote{STag: 5}, SGL: []wr.SGE{r.full.sge(3, 1)}, Local: r.full.sge(30, 2)},
	)
	require.Equal(t, rawpeer.ReadRequest(1, rdmap.ReadRequestHeader{SourceSTag: 5}).Octets(), r.next())
	require.Equal(t, r.full.asks(2, 4, 5, 0), r.next())
	require.Equal(t, r.full.asks(3, 30, 2, 0), r.next())
	_, err := r.q.PostSend(wr.Request{Op: wr.OpRead, SGL: make([]wr.SGE, 5)})
	require.ErrorIs(t, err, wr.ErrInvalidSGLLength)

	r = newRig(t, setup{})
	r.postSend(wr.Request{ID: 1, Op: wr.OpRead, Remote: wr.Remote{STag: 5}, SGL: []wr.SGE{r.full.sge(3, 1)}, Local: r.full.sge(30, 2)})
	require.Equal(t, r.full.asks(1, 30, 2, 0), r.next())
}

// TestReadIntoSeveralFails: the peer refuses a part: the Read fails, once, and what was answered stays.
func TestReadIntoSeveralFails(t *testing.T) {
	r := listRig(t, 2)
	r.postSend(
		wr.Request{ID: 1, Op: wr.OpRead, Remote: wr.Remote{STag: 5}, SGL: []wr.SGE{r.full.sge(0, 4), r.full.sge(4, 4), r.full.sge(8, 4)}},
		wr.Request{ID: 2},
	)
	r.next()
	second := bytes.Clone(r.next())
	r.answers(r.full, 0, filled(4))
	require.Equal(t, r.full.asks(3, 8, 4, 8), r.next())
	r.send(rawpeer.Terminate(rdmap.TerminateHeader{
		Code: rdmap.CodeProtSTag, SegmentLength: uint16(len(second)), DDPHeader: second[:ddp.UntaggedHeader], ReadRequest: second[ddp.UntaggedHeader:],
	}).Octets())
	require.NoError(t, r.peer.CloseWrite())
	r.over()
	assert.Equal(t, []comp{{1, wr.StatusRemoteTermination, 0}, {2, wr.StatusFlushed, 0}}, r.all(r.scq))
	r.requireMemory()
}

// TestReadIntoSeveralOutOfTurn: an answer goes into the sink that is due, and no other of the same Read.
func TestReadIntoSeveralOutOfTurn(t *testing.T) {
	r := listRig(t, 2)
	r.postSend(wr.Request{ID: 1, Op: wr.OpRead, Remote: wr.Remote{STag: 5}, SGL: []wr.SGE{r.full.sge(0, 4), r.full.sge(4, 4)}})
	r.next()
	r.next()
	r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(4), filled(4)).Octets())
	require.NoError(t, r.peer.Close())
	r.over()
	assert.Equal(t, faultTagBounds, r.s.cause.fault)
	r.requireMemory()
}
