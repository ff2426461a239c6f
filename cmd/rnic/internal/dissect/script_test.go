package dissect

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// Ends of the connection of a script.
const (
	client = 0 // MPA Initiator
	server = 1
)

const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagACK = 0x10
)

// script writes a capture, packet by packet.
type script struct {
	t       testing.TB
	link    layers.LinkType
	wrap    func(ip []byte) []byte // adds the link layer's header
	v6      bool
	port    uint16 // of the client
	seq     [2]uint32
	framers [2]mpa.Framer
	packets [][]byte
}

func newScript(t testing.TB) *script {
	return &script{
		t: t, link: layers.LinkTypeRaw, port: 50000, seq: [2]uint32{1000, 2000},
		wrap: func(ip []byte) []byte { return ip },
	}
}

// segment captures a TCP segment with the given sequence number.
func (s *script) segment(from int, flags byte, seq uint32, payload []byte) {
	src, dst := s.port, uint16(4791)
	if from == server {
		src, dst = dst, src
	}
	tcp := binary.BigEndian.AppendUint16(nil, src)
	tcp = binary.BigEndian.AppendUint16(tcp, dst)
	tcp = binary.BigEndian.AppendUint32(tcp, seq)
	tcp = binary.BigEndian.AppendUint32(tcp, s.seq[1-from])
	tcp = append(tcp, 5<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	tcp = append(tcp, payload...)
	s.packets = append(s.packets, s.wrap(s.ip(from, tcp)))
}

func (s *script) ip(from int, tcp []byte) []byte {
	if s.v6 {
		ip := append([]byte{0x60, 0, 0, 0}, byte(len(tcp)>>8), byte(len(tcp)), 6, 64)
		ip = append(ip, make([]byte, 32)...)
		ip[23], ip[39] = byte(from+1), byte(2-from)
		return append(ip, tcp...)
	}
	n := 20 + len(tcp)
	ip := []byte{0x45, 0, byte(n >> 8), byte(n), 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, byte(from + 1), 192, 0, 2, byte(2 - from)}
	return append(ip, tcp...)
}

// send captures the next octets of a direction.
func (s *script) send(from int, payload []byte) {
	s.segment(from, flagACK, s.seq[from], payload)
	s.seq[from] += uint32(len(payload))
}

func (s *script) handshake() {
	s.segment(client, flagSYN, s.seq[client], nil)
	s.seq[client]++
	s.segment(server, flagSYN|flagACK, s.seq[server], nil)
	s.seq[server]++
	s.segment(client, flagACK, s.seq[client], nil)
}

func frame(t testing.TB, f mpa.Startup) []byte {
	b, err := f.Append(nil)
	require.NoError(t, err)
	return b
}

// start captures a handshake and both startup frames, and readies the framers.
func (s *script) start(req, rep mpa.Startup) {
	s.handshake()
	rep.Reply = true
	s.send(client, frame(s.t, req))
	s.send(server, frame(s.t, rep))
	s.frameWith(req, rep)
}

func (s *script) frameWith(req, rep mpa.Startup) {
	crc := req.CRC || rep.CRC
	s.framers = [2]mpa.Framer{mpa.NewFramer(crc, rep.Markers), mpa.NewFramer(crc, req.Markers)}
}

// plain is revision 1 with CRC.
func (s *script) plain() {
	s.start(mpa.Startup{Rev: 1, CRC: true}, mpa.Startup{Rev: 1, CRC: true})
}

// depths is revision 2 with CRC, the server's IRD 2 and the client's 1.
func (s *script) depths() {
	s.start(mpa.Startup{Rev: 2, CRC: true, Enhanced: true, IRD: 1, ORD: 2},
		mpa.Startup{Rev: 2, CRC: true, Enhanced: true, IRD: 2, ORD: 1})
}

func (s *script) framed(from int, ulpdu []byte) []byte {
	return s.framers[from].AppendFPDU(nil, nil, ulpdu)
}

// fpdu captures an FPDU in a segment of its own.
func (s *script) fpdu(from int, ulpdu []byte) { s.send(from, s.framed(from, ulpdu)) }

// Segments of DDP.

func untagged(last bool, op rdmap.Opcode, msn, mo uint32, payload ...byte) []byte {
	return append(ddp.AppendUntagged(nil, last, rdmap.Control(op), 0, op.QN(), msn, mo), payload...)
}

func send(msn uint32, payload ...byte) []byte { return untagged(true, rdmap.Send, msn, 0, payload...) }

func tagged(last bool, op rdmap.Opcode, stag uint32, to uint64, n int) []byte {
	return append(ddp.AppendTagged(nil, last, rdmap.Control(op), stag, to), make([]byte, n)...)
}

func readRequest(msn, stag uint32, to uint64, size uint32) []byte {
	h := rdmap.ReadRequestHeader{SinkSTag: stag, SinkTO: to, Size: size, SourceSTag: 9, SourceTO: 9}
	return h.Append(untagged(true, rdmap.ReadRequest, msn, 0))
}

func atomicRequest(msn, id uint32) []byte {
	return rdmap.AtomicRequestHeader{RequestID: id}.Append(untagged(true, rdmap.AtomicRequest, msn, 0))
}

func atomicResponse(msn, id uint32) []byte {
	return rdmap.AtomicResponseHeader{RequestID: id}.Append(untagged(true, rdmap.AtomicResponse, msn, 0))
}

// terminate is a Terminate with this control word and what follows it.
func terminate(word uint32, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint32(untagged(true, rdmap.Terminate, 1, 0), word)
	return append(b, rest...)
}

// with returns b with the octet at i changed to v.
func with(b []byte, i int, v byte) []byte {
	b[i] = v
	return b
}

// pcap is the capture as a file.
func (s *script) pcap() []byte {
	var buf bytes.Buffer
	w := pcapgo.NewWriter(&buf)
	require.NoError(s.t, w.WriteFileHeader(262144, s.link))
	for _, p := range s.packets {
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(p), Length: len(p)}
		require.NoError(s.t, w.WritePacket(info, p))
	}
	return buf.Bytes()
}

func (s *script) read() *Report {
	s.t.Helper()
	r, err := Read(bytes.NewReader(s.pcap()), nil)
	require.NoError(s.t, err)
	return r
}

// one is the report's only connection.
func (s *script) one() *Connection {
	s.t.Helper()
	r := s.read()
	require.Len(s.t, r.Connections, 1)
	return r.Connections[0]
}
