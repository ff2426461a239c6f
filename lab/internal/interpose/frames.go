package interpose

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/mpa"
)

// MaxEarly is how many octets behind one startup frame wait for the other. More are no iWARP: an Initiator sends no
// FPDU before it has the Reply (RFC 5044 7.1.2), and no other peer is to cost memory.
const MaxEarly = 64 << 10

// Sink takes what Frames finds in a direction. It does not keep the octets.
type Sink interface {
	// Startup is a startup frame, as it came; of a Reply that rejects, with all that came behind it.
	Startup(d Direction, s *mpa.Startup, raw []byte)
	FPDU(d Direction, u mpa.FPDU)
	// Raw is octets of a direction that is no FPDU stream, or none any more.
	Raw(d Direction, b []byte)
}

// Startups are the startup frames of a connection: the Reply comes in, the Request goes out.
type Startups struct {
	mu     sync.Mutex
	frames [2]*mpa.Startup // by direction; guarded by mu
}

// Frames is one direction of an MPA stream. It is used by one goroutine at a time.
type Frames struct {
	sink     Sink
	dir      Direction
	startups *Startups
	started  bool   // the FPDU stream has begun
	raw      bool   // what comes is no FPDU stream, or none any more
	head     []byte // of the startup, or what has come of an FPDU that is not whole
	crc      bool
	in       mpa.Deframer
	out      mpa.Framer
}

// NewFrames is for a stream whose startup frames are still to come, unless Begin is called.
func NewFrames(sink Sink, d Direction, startups *Startups) *Frames {
	return &Frames{sink: sink, dir: d, startups: startups}
}

// Begin starts Full Operation.
func (f *Frames) Begin(crc, markers bool) {
	f.crc, f.started = crc, true
	f.in, f.out = mpa.NewDeframer(crc, markers), mpa.NewFramer(crc, markers)
	f.in.SetBuffer(make([]byte, mpa.MinBuffer))
}

// Feed takes octets that have come.
func (f *Frames) Feed(b []byte) {
	if !f.started && !f.raw {
		b = f.startup(b)
	}
	for len(b) > 0 && !f.raw {
		n := f.in.Feed(b)
		f.head = append(f.head, b[:n]...)
		b = b[n:]
		f.whole()
	}
	if f.raw && len(b) > 0 {
		f.sink.Raw(f.dir, b)
	}
}

// whole passes on the FPDUs that are whole.
func (f *Frames) whole() {
	for {
		u, ok, err := f.in.NextRaw()
		f.head = f.head[len(f.head)-f.in.Buffered():]
		if err != nil {
			f.raw = true
			f.sink.Raw(f.dir, f.Rest())
			return
		}
		if !ok {
			return
		}
		f.sink.FPDU(f.dir, u)
	}
}

// startup passes on the startup frame of this direction. It returns what is behind it, once the other one is known too.
func (f *Frames) startup(b []byte) []byte {
	f.head = append(f.head, b...)
	s := f.startups
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frames[f.dir] == nil {
		frame, n, err := mpa.ParseStartup(f.head)
		switch {
		case errors.Is(err, mpa.ErrShort):
			return nil
		case err != nil:
			return f.GiveUp()
		case frame.Reject: // a startup as any, and no FPDU behind it
			f.sink.Startup(f.dir, &frame, f.GiveUp())
			return nil
		}
		f.sink.Startup(f.dir, &frame, f.head[:n])
		frame.PrivateData = nil
		s.frames[f.dir], f.head = &frame, f.head[n:]
	}
	reply, request := s.frames[In], s.frames[Out]
	if reply == nil || request == nil {
		if len(f.head) > MaxEarly {
			return f.GiveUp()
		}
		return nil
	}
	f.Begin(request.CRC || reply.CRC, s.frames[1-f.dir].Markers) // the other end asked for them
	return f.Rest()
}

// GiveUp takes what is to come as no FPDU stream, unless one has begun. It returns what is waiting.
func (f *Frames) GiveUp() []byte {
	if f.started || f.raw {
		return nil
	}
	f.raw = true
	return f.Rest()
}

// Rest is what has come and is no whole FPDU, for the end of the stream.
func (f *Frames) Rest() []byte {
	b := f.head
	f.head = nil
	return b
}

// Started reports whether what comes is FPDUs.
func (f *Frames) Started() bool { return f.started }

// Wrong is what is wrong with the CRC of u, for Append.
func (f *Frames) Wrong(u mpa.FPDU) uint32 {
	if !f.crc {
		return 0
	}
	return u.CRC ^ u.Computed
}

// Append makes the next FPDU, with the markers where they belong. Its CRC is that of ulpdu, as wrong as wrong says;
// with carried, of the same length, that goes in place of ulpdu.
func (f *Frames) Append(ulpdu, carried []byte, wrong uint32) []byte {
	before := f.out
	b := f.out.AppendFPDU(nil, ulpdu)
	if len(b) < 4 {
		return b
	}
	crc := binary.LittleEndian.Uint32(b[len(b)-4:]) ^ wrong
	if carried != nil && !slices.Equal(carried, ulpdu) {
		b = before.AppendFPDU(nil, carried)
	}
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc)
	return b
}
