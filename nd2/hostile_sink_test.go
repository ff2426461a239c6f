package nd2_test

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/rdmap"
)

// hostile connects s with a raw peer, which has sent one empty RDMA Write.
func (s *side) hostile() *rawpeer.Peer {
	l, addr := s.listen()
	accepted := nd2.Overlap(bounded(s.t), func(ctx context.Context) error {
		if err := l.GetConnectionRequest(ctx, s.conn); err != nil {
			return err
		}
		return s.conn.Accept(ctx, s.qp, 4, 4, nil)
	})
	nc, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", addr.String())
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = nc.Close() })
	p, _, err := rawpeer.Initiate(nc, mpa.Startup{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16})
	require.NoError(s.t, err)
	require.NoError(s.t, accepted.GetOverlappedResult(true))
	require.NoError(s.t, p.Send(rawpeer.Write(0, 0, nil).Octets()))
	return p
}

// The sink of a Read is the Read's: its answer goes there, and a Write of the peer, who
// learns STag and TO from the request, goes nowhere, be it to the Read's own place, away
// from it, or after the answer.
func TestPeerWritesToReadSink(t *testing.T) {
	const read, at, size = 8, 4000, 1 << 13
	answer := []byte("answered")
	for _, flags := range []nd2.MRFlags{nd2.MRFlagRDMAReadSink, nd2.MRFlagRDMAReadSink | nd2.MRFlagAllowLocalWrite | nd2.MRFlagAllowRemoteRead} {
		for _, away := range []int{0, 4, read, 1000, 3000, -1000, -3000} {
			for _, answered := range []bool{false, true} {
				s := newSide(t, shape{flags: flags, bufBytes: size})
				p := s.hostile()
				require.NoError(t, s.qp.Read("read", s.sge(at, read), 0x1000, 77, 0))
				seg, err := p.Segment()
				require.NoError(t, err)
				op, _ := rdmap.Check(seg)
				require.Equal(t, rdmap.ReadRequest, op)
				r, ok := rdmap.ParseReadRequest(seg.Payload())
				require.True(t, ok)
				want := make([]byte, size)
				if answered {
					require.NoError(t, p.Send(rawpeer.ReadResponse(r.SinkSTag, r.SinkTO, answer).Octets()))
					s.done("read", nd2.RequestTypeRead, nd2.Success)
					copy(want[at:], answer)
				}
				require.NoError(t, p.Send(rawpeer.Write(r.SinkSTag, r.SinkTO+uint64(away), []byte("attacker")).Octets()))
				_ = p.Send(rawpeer.Send(1, nil).Octets()) // has no Receive: the stream ends here, if the Write was taken
				seg, err = p.Segment()
				require.NoError(t, err)
				op, _ = rdmap.Check(seg)
				require.Equal(t, rdmap.Terminate, op)
				assert.Equal(t, []byte{0x11, 0x00}, seg.Payload()[:2], "the Write %d octets away from the Read's place", away)
				require.NoError(t, p.Close())
				s.gone()
				if !answered {
					s.done("read", nd2.RequestTypeRead, nd2.ErrCanceled)
				}
				require.True(t, bytes.Equal(want, s.buf), "a Write %d octets away from the Read's place, flags %#x", away, uint32(flags))
				s.none()
			}
		}
	}
}
