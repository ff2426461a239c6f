package cases

import (
	"bytes"
	"errors"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// Operations that are under way when their STag goes (verbs draft 7.3.2.3, 7.8, 7.9, 7.10.4.1):
// half of a message is there, or the peer does not read.

// writeUnanswered has the peer write, on a queue pair that answers no Reads: a Send behind
// it tells that it is dealt with.
func (s *seat) writeUnanswered(at verbs.Remote, b []byte) {
	s.sit()
	s.tell(aWrite(uint32(at.STag), at.TO, b))
	s.scatter(nil, nil, verbs.StatusSuccess)
}

// atOnce says that a verb does not wait for a peer that is silent: it returns
// while nothing else happens.
func atOnce(t *conformance.T, what string, verb func() error) {
	done := make(chan error, 1)
	go func() { done <- verb() }()
	err := receive(t, done, "%s waits for the peer", what)
	require.NoError(t, err, what)
}

// writeHalf has the peer begin an RDMA Write: the first half of b, placed.
func (s *seat) writeHalf(at verbs.Remote, b []byte) {
	s.tell(tagged(moreTagged, opWrite, uint32(at.STag), at.TO, b[:len(b)/2]))
	s.settle()
}

// writeRest is the second half.
func (s *seat) writeRest(at verbs.Remote, b []byte) {
	s.tell(aWrite(uint32(at.STag), at.TO+uint64(len(b)/2), b[len(b)/2:]))
}

// narrow connects a new queue pair through buffers that are soon full.
func (s *seat) narrow() {
	t := s.n.t
	s.leave()
	s.qp = s.n.newQP(s.cfg)
	s.renumber()
	x, y := tcpPair(t)
	require.NoError(t, x.(*net.TCPConn).SetReadBuffer(64<<10))
	require.NoError(t, y.(*net.TCPConn).SetWriteBuffer(64<<10))
	begin(t, s.qp, verbs.Stream{Conn: y, Role: asInitiator, CRC: true})
	s.peer = newRawEnd(x, withCRC) // too much for the trace
}

// stall makes a narrow stream, and a full one.
func (s *seat) stall(large verbs.Remote) {
	s.narrow()
	s.stuff(large)
}

// stuff has the peer read a large region, of largeRegion octets, of whose answer
// it takes the first segment only. Nothing can be sent behind it until the peer
// reads on.
func (s *seat) stuff(large verbs.Remote) {
	s.ask(large, largeRegion)
	require.False(s.n.t, s.heard(opReadResponse).last, "the first segment of the answer")
}

// largeRegion is more than the buffers of a stalled stream take.
const largeRegion = 2 << 20

// torn reads on to the end of a stalled stream, which comes before that of the
// answer, and tells what there was of the answer. The Terminate Message is there
// unless the stream ends within a segment (verbs draft 6.4).
func (s *seat) torn(r refusal) (got []byte) {
	t := s.n.t
	for {
		g, err := s.segment()
		if err != nil {
			var timeout net.Error
			require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the stream has not ended: %v", err)
			break
		}
		if g.control != opReadResponse {
			require.Equal(t, byte(opTerminate), g.control)
			require.Equal(t, []byte{byte(r.code >> 8), byte(r.code)}, g.payload[:2], "the Terminate Message")
			break
		}
		require.False(t, g.last, "the answer is whole")
		got = append(got, g.payload...)
	}
	s.n.events.are(verbs.Event{ID: r.event, QP: s.qp.ID()})
	_ = s.peer.Close()
	ends(t, s.qp, verbs.StateError)
	s.peer = nil
	return got
}

// skip reads the rest of the answer of a stalled stream.
func (s *seat) skip() {
	for !s.heard(opReadResponse).last {
		continue
	}
}

// flood has the peer write to, or read from, a buffer again and again while stop
// takes the STag away. From its return on the memory is the program's alone: not an
// octet of it is written or read any more.
func (s *seat) flood(b verbs.TaggedBuffer, mem []byte, write bool, stop func()) {
	t, want := s.n.t, noSTag.write
	if !write {
		want = noSTag.read
	}
	k, reads := len(mem), uint32(0)
	access := func(i int) error {
		if write {
			return s.peer.Send(aWrite(uint32(b.STag), b.Base, fill(make([]byte, k), i)))
		}
		reads++
		return s.peer.Send(readRequest(reads, b.Remote(0), uint32(k)))
	}
	fill(mem, 1)
	for i := range 10 {
		require.NoError(t, access(i))
	}
	if !write { // some have been answered, others are on the way
		for range 5 {
			s.heard(opReadResponse)
		}
	}
	stop()
	left := string(mem)
	clear(mem)
	for i := range 10 {
		if access(i) != nil {
			break // the stream has ended already
		}
	}
	for {
		g := must(s.segment())(t)
		if g.control == opTerminate {
			require.Equal(t, []byte{byte(want.code >> 8), byte(want.code)}, g.payload[:2], "the Terminate Message")
			break
		}
		require.False(t, write, "an answer to a Write")
		require.Equal(t, left, string(g.payload), "what was read")
	}
	_ = s.peer.Close()
	ends(t, s.qp, verbs.StateError)
	s.peer = nil
	s.n.events.are(verbs.Event{ID: want.event, QP: s.qp.ID()})
	require.Equal(t, make([]byte, k), mem, "the memory afterwards")
}

// midway has the peer stop in the middle of a segment of a Write to a buffer while
// stop takes the STag away. The rest is not placed.
func (s *seat) midway(b verbs.TaggedBuffer, mem []byte, at int, stop func()) {
	t := s.n.t
	s.sit()
	fpdu := s.peer.Frame(aWrite(uint32(b.STag), b.Base, bytes.Repeat([]byte{0xEE}, len(mem))))
	require.NoError(t, s.peer.Raw(fpdu[:at]))
	stop()
	clear(mem) // the program's alone now
	require.NoError(t, s.peer.Raw(fpdu[at:]))
	s.refused(noSTag.write)
	require.Equal(t, make([]byte, len(mem)), mem, "the memory")
}
