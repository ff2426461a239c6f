package dissect

import (
	"bufio"
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
)

// TestGapInSmallSegments: octets behind a gap of which every fourth looks like the beginning of a long FPDU are judged as often in small
// segments as in large ones. Each time all were looked at anew, a file of 400 KB took minutes.
func TestGapInSmallSegments(t *testing.T) {
	octets := bytes.Repeat([]byte{0x40, 0x00, 0x41, 0x43}, 24<<10)
	for _, crc := range []bool{true, false} {
		for _, segment := range []int{1400, 50} {
			s := newScript(t)
			f := mpa.Startup{Rev: 1, CRC: crc}
			s.start(f, f)
			s.fpdu(client, send(1, 1, 2, 3))
			s.seq[client] += 1000
			for at := 0; at < len(octets); at += segment {
				s.send(client, octets[at:min(at+segment, len(octets))])
			}
			tr := newTracker(nil)
			require.NoError(t, readPackets(bufio.NewReader(bytes.NewReader(s.pcap())), tr))
			tr.finish()
			require.Len(t, tr.report.Connections, 1)
			require.Len(t, tr.report.Connections[0].Streams[0].Gaps, 1)
			assert.False(t, tr.report.Connections[0].Streams[0].Gaps[0].Found)
			n := len(octets) / 4
			assert.InDelta(t, n+n/2, tr.judged, float64(n/2), "CRC %v, segments of %d octets: each once, or twice", crc, segment)
		}
	}
}

// TestGapCutAnywhere: behind a gap the same FPDU is found, however what comes is cut into segments.
func TestGapCutAnywhere(t *testing.T) {
	for _, crc := range []bool{true, false} {
		for _, segment := range []int{1, 2, 3, 7, 8, 61, 4000} {
			s := newScript(t)
			f := mpa.Startup{Rev: 1, CRC: crc}
			s.start(f, f)
			s.fpdu(client, send(1, 1, 2, 3))
			skip := s.framed(client, send(2, make([]byte, 600)...))
			s.seq[client] += 400
			var b []byte
			for msn := uint32(3); msn < 9; msn++ {
				b = append(b, s.framed(client, send(msn, bytes.Repeat([]byte("A"), 200*int(msn))...))...)
			}
			rest := append(bytes.Clone(skip[400:]), b...)
			for at := 0; at < len(rest); at += segment {
				s.send(client, rest[at:min(at+segment, len(rest))])
			}
			one := s.read().Connections[0].Streams[0]
			require.Len(t, one.Gaps, 1, "CRC %v, %d", crc, segment)
			assert.True(t, one.Gaps[0].Found, "CRC %v, %d", crc, segment)
			assert.Equal(t, 7, one.FPDUs, "CRC %v, %d", crc, segment)
			assert.Equal(t, uint64(len(skip)-400), one.Gaps[0].Skipped, "CRC %v, %d", crc, segment)
			assert.Empty(t, one.Violations)
		}
	}
}

// measured calls at its end.
type measured struct {
	*bytes.Reader
	end func()
}

func (m measured) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if err != nil {
		m.end()
	}
	return n, err
}

// TestManyFPDUsBegun: directions of which an octet of an FPDU has come have no buffer for the longest.
func TestManyFPDUsBegun(t *testing.T) {
	const connections = 3000
	s := newScript(t)
	for i := range connections {
		s.port = uint16(20000 + i)
		f := mpa.Startup{Rev: 1, CRC: true}
		s.start(f, f)
		s.send(client, s.framed(client, send(1, 1, 2, 3))[:7])
	}
	file := s.pcap()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var after uint64
	r, err := Read(measured{bytes.NewReader(file), func() { after = heap() }}, nil)
	require.NoError(t, err)
	assert.Len(t, r.Connections, connections)
	assert.Equal(t, 7, r.Connections[connections-1].Streams[0].Incomplete)
	assert.Less(t, int(after)-int(before), 64*bufferSize+connections*8<<10)
}
