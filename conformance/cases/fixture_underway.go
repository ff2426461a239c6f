package cases

import (
	"bytes"
	"errors"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// Probes of operations that are under way when their STag goes (verbs draft 7.3.2.3, 7.8, 7.9,
// 7.10.4.1): half of a message is there, or the peer does not read.

// atOnce says that a verb does not wait for a peer that is silent: it returns
// while nothing else happens.
func atOnce(t *conformance.T, what string, verb func() error) {
	done := make(chan error, 1)
	go func() { done <- verb() }()
	require.NoError(t, receive(t, done, "%s waits for the peer", what), what)
}

// writeHalf has the peer begin an RDMA Write: the first half of b, placed; writeRest is the second.
func (s *probe) writeHalf(at verbs.Remote, b []byte) {
	s.send(tagged(moreTagged, opWrite, uint32(at.STag), at.TO, b[:len(b)/2]))
	s.settled()
}

func (s *probe) writeRest(at verbs.Remote, b []byte) {
	s.send(aWrite(uint32(at.STag), at.TO+uint64(len(b)/2), b[len(b)/2:]))
}

// narrow connects a new queue pair through buffers that are soon full, and stall fills it.
func (s *probe) narrow() {
	s.disconnect()
	s.link = s.idleLink(s.cfg)
	x, y := tcpPair(s.t)
	require.NoError(s.t, x.(*net.TCPConn).SetReadBuffer(64<<10))
	require.NoError(s.t, y.(*net.TCPConn).SetWriteBuffer(64<<10))
	begin(s.t, s.qp, verbs.StreamConfig{Conn: y, Role: asInitiator, CRC: true})
	s.peer = newPeer(s.t, x, withCRC) // too much for the trace
}

func (s *probe) stall(large verbs.Remote) {
	s.narrow()
	s.stuff(large)
}

// largeRegion is more than the buffers of a stalled stream take.
const largeRegion = 2 << 20

// stuff has the peer read a large region, of largeRegion octets, of whose answer
// it takes the first segment only. Nothing can be sent behind it until the peer
// reads on.
func (s *probe) stuff(large verbs.Remote) {
	s.ask(large, largeRegion)
	require.False(s.t, s.segment(opReadResponse).last, "the first segment of the answer")
}

// skip reads the rest of the answer of a stalled stream.
func (s *probe) skip() {
	for !s.segment(opReadResponse).last {
		continue
	}
}

// torn reads on to the end of a stalled stream, which comes before that of the
// answer, and tells what there was of the answer. The Terminate Message is there
// unless the stream ends within a segment (verbs draft 6.4).
func (s *probe) torn(r peerFault) (got []byte) {
	for {
		u, err := s.Next()
		if err != nil {
			var timeout net.Error
			require.False(s.t, errors.As(err, &timeout) && timeout.Timeout(), "the stream has not ended: %v", err)
			break
		}
		g := must(parseSegment(u))(s.t)
		if g.control != opReadResponse {
			require.Equal(s.t, byte(opTerminate), g.control)
			s.hasCode(g, r.code)
			break
		}
		require.False(s.t, g.last, "the answer is whole")
		got = append(got, g.payload...)
	}
	s.raised(r.event)
	s.failed()
	return got
}

// flood has the peer write to, or read from, a buffer again and again while stop
// takes the STag away. From its return on the memory is the program's alone: not an
// octet of it is written or read any more.
func (s *probe) flood(b verbs.TaggedBuffer, mem []byte, write bool, stop func()) {
	k, want := len(mem), either(write, noSTag.write, noSTag.read)
	access := func(i int) error {
		if write {
			return s.Send(aWrite(uint32(b.STag), b.Base, fill(make([]byte, k), i)))
		}
		return s.Send(s.readOf(uint32(b.STag), b.Base, k))
	}
	fill(mem, 1)
	for i := range 10 {
		require.NoError(s.t, access(i))
	}
	if !write { // some have been answered, others are on the way
		for range 5 {
			s.segment(opReadResponse)
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
		g := must(parseSegment(s.next()))(s.t)
		if g.control == opTerminate {
			s.hasCode(g, want.code)
			break
		}
		require.False(s.t, write, "an answer to a Write")
		require.Equal(s.t, left, string(g.payload), "what was read")
	}
	s.failed()
	s.raised(want.event)
	require.Equal(s.t, make([]byte, k), mem, "the memory afterwards")
}

// midway has the peer stop in the middle of a segment of a Write to a buffer while
// stop takes the STag away. The rest is not placed.
func (s *probe) midway(b verbs.TaggedBuffer, mem []byte, at int, stop func()) {
	s.connect()
	fpdu := s.Frame(aWrite(uint32(b.STag), b.Base, bytes.Repeat([]byte{0xEE}, len(mem))))
	s.raw(fpdu[:at])
	stop()
	clear(mem) // the program's alone now
	s.raw(fpdu[at:])
	s.refused(noSTag.write)
	require.Equal(s.t, make([]byte, len(mem)), mem, "the memory")
}
