package cases

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// The octets of MPA: startup frames and FPDUs, made and read here and not by the
// code under test.

// The flags of a startup frame, its octet 16 (RFC 5044 7.1.1, RFC 6581 6).
const (
	frameM = 0x80
	frameC = 0x40
	frameR = 0x20
	frameS = 0x10
)

// requestFrame and replyFrame are startup frames.
func requestFrame(flags, rev byte, private []byte) []byte {
	return startupFrame("MPA ID Req Frame", flags, rev, len(private), private)
}

func replyFrame(flags, rev byte, private []byte) []byte {
	return startupFrame("MPA ID Rep Frame", flags, rev, len(private), private)
}

// startupFrame is a startup frame with everything free.
func startupFrame(key string, flags, rev byte, length int, private []byte) []byte {
	b := append([]byte(key), flags, rev, byte(length>>8), byte(length))
	return append(b, private...)
}

// mpaLane is one direction of a stream of FPDUs.
type mpaLane struct {
	markers, crc bool
	at           int // octets so far, from the first of the FPDU stream on
}

// twist is how an FPDU differs from a good one. What a marker holds and the pad are
// under the CRC all the same, unless blind is set: that is over what would be good.
type twist struct {
	pad      byte // each octet of it
	reserved uint16
	pointer  func(ptr uint16) uint16
	blind    bool
	crc      func(good uint32) uint32 // of the field; nil for what is right
	longer   int                      // than the ULPDU, by the length field
}

var castagnoli = crc32.MakeTable(0x82F63B78) // RFC 5044 4.4: as for iSCSI digests

// fpdu makes the next FPDU.
func (l *mpaLane) fpdu(ulpdu []byte) []byte { return l.twisted(ulpdu, twist{}) }

// twisted makes the next FPDU, other than it should be.
func (l *mpaLane) twisted(ulpdu []byte, x twist) []byte {
	if x.blind {
		copied := *l
		good := copied.fpdu(ulpdu)
		field := binary.LittleEndian.Uint32(good[len(good)-4:])
		x.blind, x.crc = false, func(uint32) uint32 { return field }
	}
	var b []byte
	length := -1 // where the length field is
	due := func() {
		if !l.markers || (l.at+len(b))%512 != 0 {
			return
		}
		ptr := uint16(0)
		if length >= 0 {
			ptr = uint16(len(b) - length)
		}
		if x.pointer != nil {
			ptr = x.pointer(ptr)
		}
		b = binary.BigEndian.AppendUint16(b, x.reserved)
		b = binary.BigEndian.AppendUint16(b, ptr)
	}
	due()
	length = len(b)
	b = binary.BigEndian.AppendUint16(b, uint16(len(ulpdu)+x.longer))
	for _, o := range ulpdu {
		due()
		b = append(b, o)
	}
	for n := 2 + len(ulpdu); n%4 != 0; n++ {
		due()
		b = append(b, x.pad)
	}
	due()
	sum := crc32.Checksum(b, castagnoli)
	switch {
	case x.crc != nil:
		sum = x.crc(sum)
	case !l.crc:
		sum = 0
	}
	b = binary.LittleEndian.AppendUint32(b, sum)
	l.at += len(b)
	return b
}

// mpaMarker is a marker that came, and where in the stream.
type mpaMarker struct {
	at            int
	reserved, ptr uint16
}

// mpaFPDU is an FPDU that came.
type mpaFPDU struct {
	at     int    // in the stream, its first octet, which may be a marker's
	length int    // in the stream, its length field
	octets []byte // all
	ulpdu  []byte
	crc    uint32 // the field
	marks  []mpaMarker
}

// mpaWire is a connection of FPDUs, octet by octet.
type mpaWire struct {
	test    *conformance.T
	wire    net.Conn
	out, in mpaLane
	early   []byte // read and not taken yet
	// theirs is the startup frame of the other side.
	theirs []byte
}

// raw sends octets.
func (w *mpaWire) raw(b []byte) {
	_ = w.wire.SetWriteDeadline(time.Now().Add(patience(w.test)))
	_, err := w.wire.Write(b)
	require.NoError(w.test, err, "sending")
}

// send sends ULPDUs, each in a good FPDU.
func (w *mpaWire) send(ulpdus ...[]byte) {
	for _, u := range ulpdus {
		w.raw(w.out.fpdu(u))
	}
}

// octets reads n octets.
func (w *mpaWire) octets(n int) []byte {
	for len(w.early) < n {
		b, err := w.more()
		require.NoError(w.test, err, "waiting for %d octets; there are % x", n, w.early)
		w.early = append(w.early, b...)
	}
	b := w.early[:n:n]
	w.early = w.early[n:]
	return b
}

// more reads what there is.
func (w *mpaWire) more() ([]byte, error) {
	_ = w.wire.SetReadDeadline(time.Now().Add(patience(w.test)))
	b := make([]byte, 64<<10)
	n, err := w.wire.Read(b)
	if n > 0 {
		err = nil
	}
	return b[:n], err
}

// frame reads a startup frame.
func (w *mpaWire) frame() []byte {
	b := w.octets(20)
	b = append(b, w.octets(int(b[18])<<8|int(b[19]))...)
	w.theirs = b
	return b
}

// take reads the next FPDU, which has to be a good one: its markers point at its
// length field, its pad is of zeros, and its CRC is right if it has one.
func (w *mpaWire) take() mpaFPDU {
	l := &w.in
	f := mpaFPDU{at: l.at}
	get := func(n int) []byte {
		b := w.octets(n)
		f.octets = append(f.octets, b...)
		l.at += n
		return b
	}
	due := func() {
		if l.markers && l.at%512 == 0 {
			m := mpaMarker{at: l.at}
			b := get(4)
			m.reserved, m.ptr = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
			f.marks = append(f.marks, m)
		}
	}
	due()
	f.length = l.at
	n := int(binary.BigEndian.Uint16(get(2)))
	body := make([]byte, 0, n+3)
	for len(body) < n || (2+len(body))%4 != 0 {
		due()
		whole := n + -(2+n)&3 - len(body)
		if l.markers {
			whole = min(whole, 512-l.at%512)
		}
		body = append(body, get(whole)...)
	}
	due()
	sum := crc32.Checksum(f.octets, castagnoli)
	f.crc = binary.LittleEndian.Uint32(get(4))
	f.ulpdu = body[:n:n]
	for _, m := range f.marks {
		want := uint16(max(m.at-f.length, 0))
		require.Zero(w.test, m.reserved, "the reserved half of the marker at %d", m.at)
		require.Equal(w.test, want, m.ptr, "FPDUPTR of the marker at %d, the length being at %d", m.at, f.length)
	}
	require.Equal(w.test, make([]byte, len(body)-n), body[n:], "the pad of a ULPDU of %d octets", n)
	if l.crc {
		require.Equal(w.test, sum, f.crc, "the CRC of % x", f.octets)
	}
	return f
}

// next is the next ULPDU.
func (w *mpaWire) next() []byte { return w.take().ulpdu }

// expect says that the next ULPDUs are these, to the octet.
func (w *mpaWire) expect(want ...[]byte) {
	for i, u := range want {
		require.Equal(w.test, u, w.next(), "ULPDU %d of %d", i+1, len(want))
	}
}

// silent says that the stream ends in order without another octet.
func (w *mpaWire) silent() {
	require.Empty(w.test, w.early, "octets")
	b, err := w.more()
	require.ErrorIs(w.test, err, io.EOF, "the end of the stream, not % x", b)
}

// closed says that the other side ends the stream, in whatever way, without another
// octet.
func (w *mpaWire) closed() {
	require.Empty(w.test, w.early, "octets")
	b, err := w.more()
	require.Error(w.test, err, "octets that came: % x", b)
	var late net.Error
	require.False(w.test, errors.As(err, &late) && late.Timeout(), "the connection is still open")
}

// terminated says that next comes a Terminate Message without headers, of this
// layer, type and code, and then the end of the stream. The other half is closed
// then.
func (w *mpaWire) terminated(code uint16) { w.terminatedFor(code, nil) }

// terminatedFor is terminated for a segment, whose DDP header is in it.
func (w *mpaWire) terminatedFor(code uint16, fault []byte) {
	w.expect(aTerminate(code, fault, false))
	w.silent()
	w.shut()
}

// shut ends this half of the stream.
func (w *mpaWire) shut() {
	_ = w.wire.(interface{ CloseWrite() error }).CloseWrite()
}

// drop closes the connection, to be done with a stream in good order or not.
func (w *mpaWire) drop() { _ = w.wire.Close() }

// hush is how long mute waits for octets that must not come.
const hush = 10 * time.Millisecond

// mute says that there is no octet at this moment, nor for a little while.
func (w *mpaWire) mute() {
	require.Empty(w.test, w.early, "octets")
	_ = w.wire.SetReadDeadline(time.Now().Add(hush))
	b := make([]byte, 1<<10)
	n, err := w.wire.Read(b)
	require.Zero(w.test, n, "octets before their time: % x", b[:n])
	var late net.Error
	require.True(w.test, errors.As(err, &late) && late.Timeout(), "the connection is open: %v", err)
}
