package report

import (
	"bytes"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// viTape is a stream of VI/TCP with CRCs: establishment, a Send from the runner whose CRC
// is wrong, an RDMA Write from the target, and the beginning of something.
func viTape(t *testing.T) *tape {
	p := newTape(t, 1, false, false)
	ce := segment.CE{
		Attributes: segment.WriteEnable.WithLevel(segment.ReliableDelivery), MTU: 4096, ReadWindow: 3,
		Calling: "alice", Called: "bob", Options: segment.OptionCRC,
	}
	p.raw(1, conformance.Sent, ce.Append(nil, segment.Header{Type: segment.ConnectRequest, Number: 7}))
	p.raw(1, conformance.Received, ce.Append(nil, segment.Header{Type: segment.ConnectAccept, Number: 9}))
	whole := func(h segment.Header, payload string) []byte {
		h.Flags |= segment.EndOfMessage
		h.SetLength(len(payload), true)
		b := h.Append(nil)
		if h.Type.HasRDMA() {
			b = (&segment.RDMA{Address: 0x1000, Handle: 5, Length: uint32(len(payload))}).Append(b)
		}
		return segment.AppendCRC(append(b, payload...), 0)
	}
	bad := whole(segment.Header{Type: segment.Send, Number: 8}, "payload")
	bad[len(bad)-1]++
	p.raw(1, conformance.Sent, bad)
	p.raw(1, conformance.Received, whole(segment.Header{Type: segment.RDMAWrite, Number: 10, Code: segment.TransportError}, "12345"))
	p.raw(1, conformance.Sent, []byte{1, 0, 0, 99, 0})
	return p
}

func TestDecodeVI(t *testing.T) {
	var got []Entry
	for _, e := range Decode(viTape(t).marks) {
		if e.Kind != KindNote {
			got = append(got, e)
		}
	}
	require.Len(t, got, 5)
	for i, want := range []struct {
		d         conformance.Direction
		title     string
		complaint string
	}{
		{conformance.Sent, "ConnectRequest #7 Eom len 174 ack 0 rx 0 RD|RWE mtu 4096 window 3 calling \"alice\" called \"bob\" options CRC crc", ""},
		{conformance.Received, "ConnectAccept #9 Eom", ""},
		{conformance.Sent, "Send #8 +0 Eom len 35", "CRC"},
		{conformance.Received, "RdmaWrite #10 +0 Eom len 49", ""},
		{conformance.Sent, "octets outside of VI segments", "no VI segment"},
	} {
		assert.Equal(t, want.d, got[i].Direction, "%d", i)
		assert.Contains(t, got[i].Title, want.title)
		if want.complaint == "" {
			assert.Empty(t, got[i].Complaint, "%d", i)
		} else {
			assert.Contains(t, got[i].Complaint, want.complaint, "%d", i)
		}
		all := 0
		for _, f := range got[i].Fields {
			all += len(f.Octets)
		}
		assert.Equal(t, len(got[i].Octets), all, "each octet of %d is in a field", i)
	}
	var texts []string
	for _, f := range got[3].Fields {
		texts = append(texts, f.Layer+" "+f.Text)
	}
	for _, want := range []string{"VI RdmaWrite Eom", "VI Message Number = 10", "VI RDMA Address = 0x1000", "VI Memory Handle = 0x5", " payload, 5 octets"} {
		assert.Contains(t, texts, want)
	}
	texts = nil
	for _, f := range got[0].Fields {
		texts = append(texts, f.Text)
	}
	for _, want := range []string{"MTU Size = 4096", "RDMA Read Window = 3", `Called Discriminator "bob"`, "Options: CRC"} {
		assert.Contains(t, texts, want)
	}
}

// Nonsense in a stream of VI/TCP is shown as octets, and each octet is in a field.
func TestDecodeVINonsense(t *testing.T) {
	good := (&segment.CE{Attributes: 1, MTU: 1}).Append(nil, segment.Header{Type: segment.ConnectRequest})
	for _, b := range [][]byte{
		good[:4], good[:60], append(bytes.Clone(good), 1), append(bytes.Clone(good), make([]byte, 40)...),
		append(bytes.Clone(good), 1, 31, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		{1, 0x85, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		p := newTape(t, 2, false, false)
		p.raw(1, conformance.Sent, b)
		all := 0
		for _, e := range Decode(p.marks) {
			all += len(e.Octets)
		}
		assert.Equal(t, len(b), all, "% x", b)
	}
}

// A capture of VI/TCP has the stream's own octets only, on VI/TCP's port.
func TestPcapOfVI(t *testing.T) {
	p := viTape(t)
	var out bytes.Buffer
	require.NoError(t, WritePcap(&out, conformance.Result{Case: "x", Trace: p.marks}, time.Unix(1, 0)))
	in, err := pcapgo.NewNgReader(&out, pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	var sent []byte
	for data, _, err := in.ReadPacketData(); err == nil; data, _, err = in.ReadPacketData() {
		tcp, ok := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.Default).Layer(layers.LayerTypeTCP).(*layers.TCP)
		require.True(t, ok)
		if tcp.SrcPort == vitcp.DefaultPort {
			continue
		}
		require.Equal(t, layers.TCPPort(vitcp.DefaultPort), tcp.DstPort)
		sent = append(sent, tcp.Payload...)
	}
	var want []byte
	for _, m := range p.marks {
		if m.Direction == conformance.Sent {
			want = append(want, m.Octets...)
		}
	}
	assert.Equal(t, want, sent)
}
