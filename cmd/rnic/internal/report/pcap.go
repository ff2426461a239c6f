package report

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/mpa"
)

// WritePcap writes the streams of a case's trace as pcapng. Link, IP and TCP headers
// are made up: the runner is 192.0.2.1 and the target 192.0.2.2, each piece of a
// recordedConn is a segment of its own, and the case's notes are comments of packets.
//
// A stream that begins behind MPA's startup gets a startup of its own, marked by a
// comment: without one, Wireshark does not know what it sees.
func WritePcap(w io.Writer, r conformance.Result, started time.Time) error {
	x := decode(r.Trace)
	c := &capture{started: started, streams: x.streams, flows: map[int]*flow{}}
	for _, e := range x.entries {
		c.entry(e)
	}
	section := pcapgo.DefaultNgWriterOptions
	section.SectionInfo.Application = "rnic conform"
	section.SectionInfo.Comment = comment(fmt.Sprintf("%s: %s\n%s\n%s", r.Case, r.Verdict, strings.Join(r.Keys, " "), r.Detail))
	link := pcapgo.DefaultNgInterface
	link.LinkType, link.SnapLength = layers.LinkTypeEthernet, 0
	out, err := pcapgo.NewNgWriterInterface(w, link, section)
	if err != nil {
		return err
	}
	if err := c.write(out); err != nil {
		return fmt.Errorf("capture of %s: %w", r.Case, err)
	}
	return out.Flush()
}

// comment bounds a comment: an option of pcapng has less than 65536 octets.
func comment(text string) string {
	const most = 4096
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// HasStreams reports whether a case's trace has octets to capture.
func HasStreams(r conformance.Result) bool {
	return slices.ContainsFunc(r.Trace, func(m conformance.Mark) bool { return m.Stream > 0 })
}

// capture is a file in the making.
type capture struct {
	started time.Time
	streams map[int]*recordedConn
	flows   map[int]*flow
	packets []packet
	notes   []string // for the next packet
}

type packet struct {
	at       time.Duration
	data     []byte
	comments []string
	err      error
}

// flow is the TCP connection of a stream. Index 0 is the runner's side, 1 the
// target's.
type flow struct {
	port   uint16 // the runner's
	target uint16 // the target's
	seq    [2]uint32
}

// targetPort is that of the target: rping's; in VI/TCP it is another.
const targetPort = 7174

func side(d conformance.Direction) int {
	if d == conformance.Received {
		return 1
	}
	return 0
}

// open writes the TCP handshake of a stream that begins with e, and MPA's startup if
// the stream has none. Who sends first opened the connection.
func (c *capture) open(e Entry) {
	s, at, opener := c.streams[e.Stream], e.At, side(e.Direction)
	f := &flow{port: uint16(50000 + e.Stream), target: targetPort, seq: [2]uint32{1000, 2000}}
	if s.VI {
		f.target = vitcp.DefaultPort
	}
	c.flows[e.Stream] = f
	c.segment(f, opener, at, &layers.TCP{SYN: true}, nil)
	f.seq[opener]++
	c.segment(f, 1-opener, at, &layers.TCP{SYN: true, ACK: true}, nil)
	f.seq[1-opener]++
	c.segment(f, opener, at, &layers.TCP{ACK: true}, nil)
	if s.Halves[0].Startup || s.Halves[1].Startup || s.VI {
		return
	}
	halves := &s.Halves
	crc := halves[0].CRC() || halves[1].CRC()
	// Markers are asked for by the side that receives them.
	req := mpa.Startup{Rev: 1, CRC: crc, Markers: halves[1-opener].Markers}
	rep := mpa.Startup{Rev: 1, CRC: crc, Markers: halves[opener].Markers, Reply: true}
	const made = "made up: the recorded stream begins behind MPA's startup"
	for i, frame := range []mpa.Startup{req, rep} {
		octets, err := frame.Append(nil)
		c.notes = append(c.notes, made)
		from := opener ^ i
		c.segment(f, from, at, &layers.TCP{ACK: true, PSH: true}, octets)
		c.packets[len(c.packets)-1].err = err
	}
}

// mostOctets is how much a packet holds: more than any FPDU.
const mostOctets = 65535 - 20 - 20

func (c *capture) entry(e Entry) {
	if e.Kind == KindNote {
		c.notes = append(c.notes, comment(e.Title))
		return
	}
	if c.flows[e.Stream] == nil {
		c.open(e)
	}
	f, from := c.flows[e.Stream], side(e.Direction)
	if e.Kind == KindEnd {
		switch e.Title {
		case "FIN":
			c.segment(f, from, e.At, &layers.TCP{FIN: true, ACK: true}, nil)
			f.seq[from]++
		case "RST":
			c.segment(f, from, e.At, &layers.TCP{RST: true, ACK: true}, nil)
		default:
			c.notes = append(c.notes, e.Title)
		}
		return
	}
	for part := range slices.Chunk(e.Octets, mostOctets) {
		c.segment(f, from, e.At, &layers.TCP{ACK: true, PSH: true}, part)
	}
}

// segment adds a packet.
func (c *capture) segment(f *flow, from int, at time.Duration, tcp *layers.TCP, payload []byte) {
	addr := [2]net.IP{{192, 0, 2, 1}, {192, 0, 2, 2}}
	port := [2]layers.TCPPort{layers.TCPPort(f.port), layers.TCPPort(f.target)}
	mac := [2]net.HardwareAddr{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: addr[from], DstIP: addr[1-from]}
	tcp.SrcPort, tcp.DstPort, tcp.Seq, tcp.Window = port[from], port[1-from], f.seq[from], 65535
	if tcp.ACK {
		tcp.Ack = f.seq[1-from]
	}
	err := tcp.SetNetworkLayerForChecksum(ip)
	buf := gopacket.NewSerializeBuffer()
	if err == nil {
		err = gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
			&layers.Ethernet{SrcMAC: mac[from], DstMAC: mac[1-from], EthernetType: layers.EthernetTypeIPv4},
			ip, tcp, gopacket.Payload(payload))
	}
	f.seq[from] += uint32(len(payload))
	c.packets = append(c.packets, packet{at, buf.Bytes(), c.notes, err})
	c.notes = nil
}

func (c *capture) write(out *pcapgo.NgWriter) error {
	if n := len(c.packets); n > 0 { // the last packet gets what came behind it
		c.packets[n-1].comments = append(c.packets[n-1].comments, c.notes...)
	}
	for _, p := range c.packets {
		if p.err != nil {
			return p.err
		}
		info := gopacket.CaptureInfo{Timestamp: c.started.Add(p.at), CaptureLength: len(p.data), Length: len(p.data)}
		if err := out.WritePacketWithOptions(info, p.data, pcapgo.NgPacketOptions{Comments: p.comments}); err != nil {
			return err
		}
	}
	return nil
}
