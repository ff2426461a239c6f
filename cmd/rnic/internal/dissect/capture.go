package dissect

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

const magicPcapng = 0x0A0D0D0A // the same in either byte order

// Read decodes a pcap or pcapng file. visit, unless nil, is called for each
// FPDU; what it gets is its own. An error means that the file, or its rest,
// cannot be read; the report holds what came before. A file that merely ends
// early is no error.
func Read(r io.Reader, visit func(FPDU)) (*Report, error) {
	t := newTracker(visit)
	err := readPackets(bufio.NewReader(r), t)
	t.finish()
	if errors.Is(err, io.ErrUnexpectedEOF) && t.packets > 0 {
		t.report.Cut = true
		err = nil
	}
	return &t.report, err
}

// source is what pcapgo's two readers have in common.
type source interface {
	ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error)
}

func readPackets(r *bufio.Reader, t *tracker) error {
	src, linkOf, err := open(r)
	if err != nil {
		return fmt.Errorf("not a readable pcap or pcapng file: %w", err)
	}
	d := newDecoder()
	for {
		data, info, err := src.ZeroCopyReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("packet %d: %w", t.packets+d.skipped+1, err)
		}
		t.number++
		t.at = info.Timestamp
		d.short, d.captured = info.CaptureLength < info.Length, info.CaptureLength
		if link := linkOf(info); !d.decode(link, data, t) && d.unsupported == nil {
			d.unsupported = fmt.Errorf("link type %d (%v) is not supported", link, link)
		}
	}
	if ng, ok := src.(*pcapgo.NgReader); ok {
		for i := range ng.NInterfaces() {
			if f, err := ng.Interface(i); err == nil && f.Statistics.PacketsDropped != pcapgo.NgNoValue64 {
				t.report.Lost += f.Statistics.PacketsDropped
			}
		}
	}
	if t.packets == 0 {
		return d.unsupported
	}
	return nil
}

func open(r *bufio.Reader) (source, func(gopacket.CaptureInfo) layers.LinkType, error) {
	magic, err := r.Peek(4)
	if err != nil {
		return nil, nil, fmt.Errorf("too short: %w", err)
	}
	if binary.BigEndian.Uint32(magic) != magicPcapng {
		p, err := pcapgo.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		return p, func(gopacket.CaptureInfo) layers.LinkType { return p.LinkType() }, nil
	}
	p, err := pcapgo.NewNgReader(r, pcapgo.NgReaderOptions{WantMixedLinkType: true, SkipUnknownVersion: true})
	if err != nil {
		return nil, nil, err
	}
	return p, func(info gopacket.CaptureInfo) layers.LinkType {
		i, err := p.Interface(info.InterfaceIndex)
		if err != nil {
			return layers.LinkTypeMax
		}
		return i.LinkType
	}, nil
}

// decoder takes a packet apart down to TCP.
type decoder struct {
	parsers     map[gopacket.LayerType]*gopacket.DecodingLayerParser
	found       []gopacket.LayerType
	ip4         layers.IPv4
	ip6         layers.IPv6
	tcp         layers.TCP
	skipped     int   // packets without usable TCP
	short       bool  // the packet was not captured whole
	captured    int   // octets of it that were
	unsupported error // the first link type that was not understood
}

func newDecoder() *decoder {
	d := &decoder{parsers: map[gopacket.LayerType]*gopacket.DecodingLayerParser{}}
	inner := []gopacket.DecodingLayer{
		&layers.Dot1Q{}, &d.ip4, &d.ip6, &layers.IPv6ExtensionSkipper{}, &d.tcp,
	}
	for first, outer := range map[gopacket.LayerType]gopacket.DecodingLayer{
		layers.LayerTypeEthernet:  &layers.Ethernet{},
		layers.LayerTypeLinuxSLL:  &layers.LinuxSLL{},
		layers.LayerTypeLinuxSLL2: &layers.LinuxSLL2{},
		layers.LayerTypeLoopback:  &layers.Loopback{},
		layers.LayerTypeIPv4:      nil,
		layers.LayerTypeIPv6:      nil,
	} {
		p := gopacket.NewDecodingLayerParser(first, inner...)
		if outer != nil {
			p.AddDecodingLayer(outer)
		}
		p.IgnoreUnsupported = true
		d.parsers[first] = p
	}
	return d
}

// firstLayer is the outermost layer of a packet, zero if unknown.
func firstLayer(link layers.LinkType, data []byte) gopacket.LayerType {
	switch link {
	case layers.LinkTypeEthernet:
		return layers.LayerTypeEthernet
	case layers.LinkTypeLinuxSLL:
		return layers.LayerTypeLinuxSLL
	case layers.LinkTypeLinuxSLL2:
		return layers.LayerTypeLinuxSLL2
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		return layers.LayerTypeLoopback
	// 12 and 14 are what some systems call Raw.
	case layers.LinkTypeRaw, 12, 14, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
		if len(data) > 0 && data[0]>>4 == 6 {
			return layers.LayerTypeIPv6
		}
		return layers.LayerTypeIPv4
	default:
		return 0
	}
}

// decode gives a packet's TCP segment to t. It reports false if the link type
// is not understood. Packets without a whole TCP header, and fragments, are
// passed over: their octets then are a hole.
func (d *decoder) decode(link layers.LinkType, data []byte, t *tracker) bool {
	first := firstLayer(link, data)
	if first == 0 {
		d.skipped++
		return false
	}
	p := d.parsers[first]
	// An error after TCP was reached does not matter; before, there is no TCP.
	_ = p.DecodeLayers(data, &d.found)
	var src, dst netip.Addr
	tcp := false
	for _, l := range d.found {
		switch l {
		case layers.LayerTypeIPv4:
			src, _ = netip.AddrFromSlice(d.ip4.SrcIP.To4())
			dst, _ = netip.AddrFromSlice(d.ip4.DstIP.To4())
		case layers.LayerTypeIPv6:
			src, _ = netip.AddrFromSlice(d.ip6.SrcIP)
			dst, _ = netip.AddrFromSlice(d.ip6.DstIP)
		case layers.LayerTypeTCP:
			tcp = true
		}
	}
	if !tcp || !src.IsValid() || !dst.IsValid() {
		d.skipped++
		return true
	}
	t.segment(segment{
		src:     netip.AddrPortFrom(src, uint16(d.tcp.SrcPort)),
		dst:     netip.AddrPortFrom(dst, uint16(d.tcp.DstPort)),
		seq:     d.tcp.Seq,
		ack:     d.tcp.Ack,
		syn:     d.tcp.SYN,
		hasAck:  d.tcp.ACK,
		fin:     d.tcp.FIN,
		payload: d.tcp.Payload,
		short:   d.short, captured: d.captured,
	})
	return true
}
