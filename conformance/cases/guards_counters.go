package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wr"
)

// What a queue pair and a CQ count.

// depths are how many there are and have been, of each.
func depths(list ...wr.Depth) (numbers [][2]uint64) {
	for _, d := range list {
		numbers = append(numbers, [2]uint64{d.Now, d.Most})
	}
	return numbers
}

// total is of all there are.
func total(counts map[string]uint64) (all uint64) {
	for _, n := range counts {
		all += n
	}
	return all
}

// countersOfStreams has a queue pair have several streams, which end by the peer and by a verb: what there was is
// still told, and what has gone is not.
func countersOfStreams(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	const reads = 3
	for i := range uint64(reads) {
		post(t, l.qp, l.aRead(i))
		l.expect(l.asks(uint32(i + 1)))
	}
	s := l.qp.Stats()
	require.Equal(t, [][2]uint64{{reads, reads}, {reads, reads}, {0, 0}}, depths(s.OutReads, s.SendQueue, s.RecvQueue))
	require.Empty(t, s.Completions)
	for range reads - 1 {
		l.send(l.answer())
	}
	await(t, l.sq, reads-1)
	l.recv(1)
	l.says(1)
	s = l.qp.Stats()
	require.Equal(t, [][2]uint64{{1, reads}, {1, reads}, {0, 1}}, depths(s.OutReads, s.SendQueue, s.RecvQueue))
	require.Equal(t, []uint64{reads, 1}, []uint64{s.SendsPosted, s.RecvsPosted}, "posted")
	require.Equal(t, map[verbs.Status]uint64{verbs.StatusSuccess: reads}, s.Completions)

	t.Part("reset by the peer, with a Read outstanding")
	require.NoError(t, l.Reset())
	ends(t, l.qp, verbs.StateError)
	s = l.qp.Stats()
	require.Equal(t, [][2]uint64{{0, reads}, {0, reads}, {0, 1}}, depths(s.OutReads, s.SendQueue, s.RecvQueue))
	require.Equal(t, []uint64{1, 0, 1, 0}, []uint64{s.InResets, s.OutResets, s.Connects, s.Accepts})
	require.EqualValues(t, 1, total(s.Ends))
	require.Equal(t, map[verbs.Status]uint64{verbs.StatusSuccess: reads, verbs.StatusFlushed: 1}, s.Completions)

	t.Part("reset by a verb")
	l.again()
	l.modify(verbs.StateError)
	s = l.qp.Stats()
	require.Equal(t, []uint64{1, 1, 2, 0}, []uint64{s.InResets, s.OutResets, s.Connects, s.Accepts})

	t.Part("ended by a bad CRC")
	l.again()
	l.twisted([]byte("text"), twist{crc: func(good uint32) uint32 { return good ^ 1 }})
	l.terminated(0x2002, nil, false)
	l.closesTo(verbs.StateError)
	s = l.qp.Stats()
	require.Equal(t, []uint64{1, 1, 3, 0}, []uint64{s.InResets, s.OutResets, s.Connects, s.Accepts})
	require.EqualValues(t, 1, s.CRCErrors)
	require.Equal(t, []uint64{3, 1, 0}, []uint64{total(s.Ends), total(s.OutTerminates), total(s.InTerminates)})

	t.Part("a CQ that overflows")
	cq := n.newCQ(2)
	notify(t, cq, verbs.NotifyNext)
	require.NoError(t, n.flush(cq, 5).Destroy())
	c := cq.Stats()
	require.Equal(t, [][2]uint64{{2, 2}}, depths(c.Queue))
	require.Equal(t, []uint64{3, 1}, []uint64{c.Overflows, c.Notifications})
	await(t, cq, 2)
	require.Equal(t, [][2]uint64{{0, 2}}, depths(cq.Stats().Queue))
}
