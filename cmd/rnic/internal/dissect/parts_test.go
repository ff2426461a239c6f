package dissect

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// The fields of the messages of RFC 7306.
func TestExtensionFields(t *testing.T) {
	for op, want := range map[rdmap.Opcode][]string{
		rdmap.Immediate:      {"Immediate Data = 0x1020304050607"},
		rdmap.AtomicRequest:  {"AOpCode = 66051", "Request Identifier = 0x4050607", "Remote STag = 0x08090a0b"},
		rdmap.AtomicResponse: {"Original Request Identifier = 0x10203", "Original Value = 0x405060708090a0b"},
	} {
		s := rawpeer.Send(1, make([]byte, 52))
		for i := range s.Payload {
			s.Payload[i] = byte(i)
		}
		s.Op = op
		f := mpa.NewFramer(true, false)
		e := fpduPiece(f.AppendFPDU(nil, nil, s.Octets()), 0, false)
		var got []string
		for _, field := range e.Parts[7 : 7+len(want)] {
			got = append(got, field.Text)
		}
		assert.Equal(t, want, got, op)
	}
}

func TestMarkersAreFields(t *testing.T) {
	f := mpa.NewFramer(true, true)
	raw := f.AppendFPDU(nil, nil, rawpeer.Write(1, 2, make([]byte, 1200)).Octets())
	e := fpduPiece(raw, 0, true)
	var got []string
	for _, field := range e.Parts {
		got = append(got, field.Text)
	}
	assert.Equal(t, []string{
		"Marker: FPDUPTR = 0", "ULPDU_Length = 1214", "T=1 L=1 Rsvd=0x0 DV=1", "RV=1 Rsv=0 Opcode=0x0 Write",
		"STag = 0x00000001", "TO = 0x2", "Payload, 1200 octets",
		"Marker: FPDUPTR = 508", "(continued) Payload, 1200 octets",
		"Marker: FPDUPTR = 1020", "(continued) Payload, 1200 octets",
	}, got[:11])
}

// A header of a size that its RFC does not have is cut into parts, but has no fields beyond DDP's; nor has one that is quoted.
func TestFieldsOfWholeHeaders(t *testing.T) {
	names := func(ulpdu []byte) (names []string) {
		for _, f := range headerFields(ulpdu) {
			names = append(names, f.Name)
		}
		return names
	}
	ddp := []string{"T", "L", "DV", "RV", "Opcode", "Invalidate STag", "QN", "MSN", "MO"}
	read := rawpeer.ReadRequest(1, rdmap.ReadRequestHeader{Size: 9}).Octets()
	assert.Equal(t, append(ddp, "Data Sink STag", "Data Sink TO", "RDMA Read Message Size", "Data Source STag", "Data Source TO"), names(read))
	assert.Equal(t, ddp, names(read[:len(read)-1]))
	terminate := rawpeer.Terminate(rdmap.TerminateHeader{
		Code: 0x1100, HasLength: true, SegmentLength: 18, DDPHeader: read[:18], ReadRequest: read[18:],
	}).Octets()
	assert.Equal(t, append(ddp, "Terminate Control", "Error", "Terminated DDP Segment Length", "Terminated DDP Header",
		"Terminated RDMA Header"), names(terminate))
}
