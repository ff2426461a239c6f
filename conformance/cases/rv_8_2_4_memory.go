package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// memoryLeftAlone overwrites a request's memory as soon as it has completed, with
// traffic going on: the octets on the wire are the old ones, what came in does not come
// again.
func memoryLeftAlone(t *conformance.T) {
	const k = 9000
	n := newNode(t, nodeConfig{})
	l := n.line(verbs.QPConfig{})
	mine, sink, room := n.register(k, allRights), n.register(k, allRights), n.register(k, allRights)
	pattern := bytes.Repeat([]byte{0xEE}, k)
	for i := range counted(t, "round %d", uint32(30)) {
		data := bytes.Clone(fill(mine.Bytes(), int(i)))
		post(t, l.qp, verbs.Request{ID: 1, SGL: mine.SGL(0, k)}, verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: mine.SGL(0, k), Remote: theirs})
		completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, verbs.OpWrite, verbs.StatusSuccess))
		copy(mine.Bytes(), pattern) // the peer has read nothing of it yet
		require.Equal(t, data, l.whole(18), "the Send")
		require.Equal(t, data, l.whole(14), "the Write")

		post(t, l.qp, verbs.Request{ID: 3, Op: verbs.OpRead, Local: sink.SGE(0, k), Remote: theirs})
		require.Equal(t, byte(opReadRequest), l.heard()[1])
		l.tell(segmented(opReadResponse, sink.Remote(0), data, 2000)...)
		postRecv(t, l.qp, verbs.Recv{ID: 4, SGL: room.SGL(0, k)})
		l.say(data)
		completes(t, l.sq, l.sentAs(3, verbs.OpRead, verbs.StatusSuccess))
		copy(sink.Bytes(), pattern)
		completes(t, l.rq, l.got(4, k))
		copy(room.Bytes(), pattern)
		l.settle()
		require.Equal(t, pattern, sink.Bytes(), "the sink of the Read")
		require.Equal(t, pattern, room.Bytes(), "the buffer of the receive")
	}
}

// whole is the payload of the next message that the peer gets, whose headers have that
// many octets.
func (l *line) whole(header int) (b []byte) {
	for {
		u := l.heard()
		b = append(b, u[header:]...)
		if u[0]&0x40 != 0 {
			return b
		}
	}
}

// memoryLeftAloneFlushed: the same of requests that were under way when they were
// flushed. The peer goes on sending for them.
func memoryLeftAloneFlushed(t *conformance.T) {
	const k = 4 << 20
	n := newNode(t, nodeConfig{})
	mine, sink, room := n.register(k, allRights), n.register(k, allRights), n.register(k, allRights)
	pattern := bytes.Repeat([]byte{0xEE}, k)
	half := fill(make([]byte, 5000), 1)
	for next := range inTurn(t, "Modify QP to %v", []verbs.State{verbs.StateError, verbs.StateTerminate}) {
		fill(mine.Bytes(), 2)
		clear(sink.Bytes())
		clear(room.Bytes())
		l := n.line(verbs.QPConfig{CloseTimeout: shortly})
		postRecv(t, l.qp, verbs.Recv{ID: 4, SGL: room.SGL(0, k)})
		post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpRead, Local: sink.SGE(0, k), Remote: theirs})
		require.Equal(t, byte(opReadRequest), l.heard()[1])
		l.tell(segmented(opReadResponse, sink.Remote(0), make([]byte, 5000), 2000)[:1]...)
		l.tell(untagged(moreUntagged, opSend, 0, 0, 1, 0, half))
		l.settle()
		require.Equal(t, half, room.Bytes()[:5000], "so far")
		for range 4 {
			post(t, l.qp, verbs.Request{ID: 2, SGL: mine.SGL(0, k)})
		}
		l.modify(next)
		// All of it is there at this moment, or will be: some is on its way.
		_ = l.peer.Send(untagged(lastUntagged, opSend, 0, 0, 1, 5000, make([]byte, 3000)))
		_ = l.peer.Send(aReadResponse(uint32(sink.STag()), sink.Base()+2000, make([]byte, 3000)))
		ends(t, l.qp, verbs.StateError)
		copy(mine.Bytes(), pattern)
		copy(sink.Bytes(), pattern)
		copy(room.Bytes(), pattern)
		require.Equal(t, l.recvAs(verbs.StatusFlushed, 4), await(t, l.rq, 1))
		require.Equal(t, l.sentAs(1, verbs.OpRead, verbs.StatusFlushed), await(t, l.sq, 5)[0])
		for {
			u, err := l.peer.Next()
			if err != nil {
				break
			}
			require.NotContains(t, string(u), string(pattern[:64]), "what the peer still gets")
		}
		require.NoError(t, l.qp.Destroy())
		require.True(t, bytes.Equal(pattern, sink.Bytes()), "the sink of the Read")
		require.True(t, bytes.Equal(pattern, room.Bytes()), "the buffer of the receive")
	}
}
