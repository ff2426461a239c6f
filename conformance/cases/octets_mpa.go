package cases

import (
	"encoding/binary"
	"errors"
	"fmt"
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
		ptr := either(length >= 0, uint16(len(b)-length), uint16(0))
		if x.pointer != nil {
			ptr = x.pointer(ptr)
		}
		b = binary.BigEndian.AppendUint16(b, x.reserved)
		b = binary.BigEndian.AppendUint16(b, ptr)
	}
	due()
	length = len(b)
	b = binary.BigEndian.AppendUint16(b, uint16(len(ulpdu)+x.longer))
	for rest := ulpdu; len(rest) > 0; {
		due()
		n := len(rest)
		if l.markers {
			n = min(n, 512-(l.at+len(b))%512)
		}
		b, rest = append(b, rest[:n]...), rest[n:]
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
	pad    []byte
	crc    uint32 // the field
	sum    uint32 // what it should be
	marks  []mpaMarker
}

// parse takes the next FPDU from the octets b that begin with it, if it is whole. What
// is wrong with it is for fault to say.
func (l *mpaLane) parse(b []byte) (f mpaFPDU, whole bool) {
	f = mpaFPDU{at: l.at}
	at, short := 0, false
	get := func(n int) []byte {
		if short = short || len(b)-at < n; short {
			return make([]byte, n)
		}
		at += n
		return b[at-n : at : at]
	}
	due := func() {
		if l.markers && (l.at+at)%512 == 0 {
			m := mpaMarker{at: l.at + at}
			o := get(4)
			m.reserved, m.ptr = binary.BigEndian.Uint16(o), binary.BigEndian.Uint16(o[2:])
			f.marks = append(f.marks, m)
		}
	}
	due()
	f.length = l.at + at
	n := int(binary.BigEndian.Uint16(get(2)))
	padded := n + -(2+n)&3
	var body []byte
	if !l.markers {
		body = get(padded)
	}
	for len(body) < padded && !short {
		due()
		body = append(body, get(min(padded-len(body), 512-(l.at+at)%512))...)
	}
	due()
	f.sum = crc32.Checksum(b[:at], castagnoli)
	f.crc = binary.LittleEndian.Uint32(get(4))
	if short {
		return f, false
	}
	f.octets, f.ulpdu, f.pad = b[:at:at], body[:n:n], body[n:]
	l.at += at
	return f, true
}

// fault says what is wrong with an FPDU: its markers have to point at its length field,
// its pad has to be of zeros, and its CRC right if it has one.
func (f mpaFPDU) fault(crc bool) error {
	for _, m := range f.marks {
		if want := uint16(max(m.at-f.length, 0)); m.reserved != 0 || m.ptr != want {
			return fmt.Errorf("the marker at %d is %04x %04x, FPDUPTR has to be %04x: the length is at %d",
				m.at, m.reserved, m.ptr, want, f.length)
		}
	}
	for _, o := range f.pad {
		if o != 0 {
			return fmt.Errorf("the pad of a ULPDU of %d octets is % x", len(f.ulpdu), f.pad)
		}
	}
	if crc && f.sum != f.crc {
		return fmt.Errorf("the CRC of an FPDU of %d octets is %08x, not %08x", len(f.octets), f.crc, f.sum)
	}
	return nil
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
	require.NoError(w.test, second(w.wire.Write(b)), "sending")
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
		b := must(w.more())(w.test, "waiting for %d octets; there are % x", n, w.early)
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

// take reads the next FPDU, which has to be a good one: see fault.
func (w *mpaWire) take() mpaFPDU {
	for {
		if f, ok := w.in.parse(w.early); ok {
			w.early = w.early[len(f.octets):]
			require.NoError(w.test, f.fault(w.in.crc), "the FPDU % x", f.octets)
			return f
		}
		b := must(w.more())(w.test, "waiting for an FPDU; there are % x", w.early)
		w.early = append(w.early, b...)
	}
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
func (w *mpaWire) shut() { _ = w.wire.(interface{ CloseWrite() error }).CloseWrite() }

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
