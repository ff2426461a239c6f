package segment_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// FuzzParse: a segment that is well formed is what its parts make again, but
// for what nobody looks at.
func FuzzParse(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.hex), g.crc)
	}
	f.Fuzz(func(t *testing.T, b []byte, crc bool) {
		if len(b) >= segment.SegmentHeader {
			b = b[:min(len(b), segment.MaxSegment)]
			b[2], b[3] = byte(len(b)>>8), byte(len(b))
		}
		s, fault := segment.Parse(b, crc)
		if fault.Lost() {
			return
		}
		_ = s.String()
		payload, rdma := s.Payload(), s.RDMA()
		assert.LessOrEqual(t, len(payload), len(b)-segment.SegmentHeader)
		if fault != segment.FaultNone || s.Type == segment.ConnectRequest || s.Type == segment.ConnectAccept {
			return
		}
		h := s.Header
		h.SetLength(len(payload), s.HasTrailer())
		again := h.Append(nil)
		if h.Type.HasRDMA() {
			again = rdma.Append(again)
		}
		again = append(again, payload...)
		if s.HasTrailer() {
			again = segment.AppendCRC(again, 0)
		}
		assert.Equal(t, b, again)
	})
}

// FuzzCE: what was read from a CE header, written and read again, is the same.
func FuzzCE(f *testing.F) {
	for _, g := range golden {
		if g.ce.MTU != 0 {
			b := unhex(f, g.hex)
			f.Add(b[segment.SegmentHeader:])
		}
	}
	f.Add(append(make([]byte, segment.CEHeader), 0, 99, 0, 7, 1, 2, 3, 0, 2, 0, 4, 0, 0))
	f.Add(append(make([]byte, segment.CEHeader), 0, 1, 0, 4, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), segment.MaxSegment-segment.SegmentHeader)]
		h := segment.Header{Type: segment.ConnectRequest, Flags: segment.EndOfMessage, Length: uint16(segment.SegmentHeader + len(b))}
		whole := append(h.Append(nil), b...)
		s, fault := segment.Parse(whole, false)
		if fault == segment.FaultCRC { // not what this is about
			whole = segment.AppendCRC(whole[:len(whole)-segment.Trailer], 0)
			s, fault = segment.Parse(whole, false)
		}
		_ = s.String()
		if fault != segment.FaultNone {
			return
		}
		ce := s.CE()
		require.LessOrEqual(t, max(len(ce.Calling), len(ce.Called)), segment.MaxDiscriminator)
		require.Equal(t, ce.Options&segment.OptionCRC != 0, s.HasTrailer())
		again, fault := segment.Parse(ce.Append(nil, s.Header), false)
		require.Equal(t, segment.FaultNone, fault)
		require.Equal(t, ce, again.CE())
	})
}

// FuzzCutter: how a stream is chopped makes no difference to what is cut.
func FuzzCutter(f *testing.F) {
	var stream []byte
	for _, g := range golden {
		stream = append(stream, unhex(f, g.hex)...)
	}
	f.Add(stream, true, byte(1))
	f.Add(stream, false, byte(50))
	f.Add(append(stream, 1, 0x80, 0, 3), true, byte(7))
	f.Fuzz(func(t *testing.T, stream []byte, crc bool, step byte) {
		big := segment.NewCutter(1<<17, crc)
		lines, faults, lost := cut(t, big, bytes.Clone(stream), func() int { return len(stream) })
		small := segment.NewCutter(0, crc)
		lines2, faults2, lost2 := cut(t, small, stream, func() int { return int(step) })
		require.Equal(t, lines, lines2)
		require.Equal(t, faults, faults2)
		require.Equal(t, lost, lost2)
		require.LessOrEqual(t, small.Buffered(), segment.MaxSegment)
	})
}
