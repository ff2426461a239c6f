package dissect

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
)

// TestGap: a packet is missing in the middle; what is behind it is decoded again, whether FPDUs begin where packets do or not.
func TestGap(t *testing.T) {
	for name, s := range map[string]mpa.Startup{
		"CRC": {Rev: 1, CRC: true}, "no CRC": {Rev: 1}, "markers": {Rev: 1, CRC: true, Markers: true}, "markers, no CRC": {Rev: 1, Markers: true},
	} {
		for _, cut := range []int{0, 1000, 333} { // 0: a packet an FPDU
			rep := s
			rep.Reply = true
			sc := newScript(t)
			sc.start(s, rep)
			var all []byte
			const n = 40
			for i := range n {
				f := sc.framed(client, send(uint32(i+1), make([]byte, 300)...))
				if cut == 0 {
					sc.send(client, f)
				}
				all = append(all, f...)
			}
			for len(all) > 0 && cut > 0 {
				k := min(cut, len(all))
				sc.send(client, all[:k])
				all = all[k:]
			}
			whole := sc.one()
			require.Equal(t, n, whole.Streams[0].FPDUs)
			require.Empty(t, whole.Streams[0].Gaps)
			lost := len(sc.packets) - 6
			sc.packets = without(sc.packets, lost)
			c := sc.one()
			assert.Empty(t, broken(c), name)
			got := c.Streams[0]
			require.Len(t, got.Gaps, 1, name)
			assert.True(t, got.Gaps[0].Found, name)
			assert.Less(t, got.FPDUs, n, name)
			assert.GreaterOrEqual(t, got.FPDUs, n-6, "%s, packets of %d", name, cut)
			assert.Zero(t, got.CRC.Bad)
		}
	}
}

// TestGapInCaptures: of each packet missing in the middle of each capture, something is said, and no more FPDUs are lost than were in it or
// around it.
func TestGapInCaptures(t *testing.T) {
	for _, name := range captures(t) {
		whole, err := Read(bytes.NewReader(capture(t, name)), nil)
		require.NoError(t, err)
		_, all := packets(t, name)
		unsaid := 0 // of the last packet of a direction nothing can be known
		for i := range all {
			r := edited(t, name, func(p [][]byte) [][]byte { return without(p, i) })
			if len(r.Connections) != len(whole.Connections) {
				continue // it had a startup in it
			}
			for k, c := range r.Connections {
				for d, s := range c.Streams {
					before := whole.Connections[k].Streams[d]
					if s.FPDUs < before.FPDUs && s.FPDUs > 0 && len(s.Gaps) == 0 {
						unsaid++
					}
				}
			}
		}
		assert.LessOrEqual(t, unsaid, 2, name)
	}
}

// TestFields: what is listed of an FPDU.
func TestFields(t *testing.T) {
	sc := newScript(t)
	sc.plain()
	sc.fpdu(client, readRequest(1, 7, 100, 4))
	sc.fpdu(client, send(1, 1, 2, 3))
	var got []FPDU
	_, err := Read(bytes.NewReader(sc.pcap()), func(f FPDU) {
		f.Payload = bytes.Clone(f.Payload)
		got = append(got, f)
	})
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Contains(t, got[0].Fields, Field{"RDMA Read Message Size", "4"})
	assert.Contains(t, got[1].Fields, Field{"MSN", "1"})
	assert.Equal(t, []byte{1, 2, 3}, got[1].Payload)
	assert.Equal(t, got[0].Packet+1, got[1].Packet)
	assert.False(t, got[1].Time.IsZero())
}
