package tap

import (
	"encoding/binary"
	"slices"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// redacted is a ULPDU without the program's octets: of the same length, zeros in their place.
func redacted(ulpdu []byte) []byte {
	b := slices.Clone(ulpdu)
	seg, code := ddp.Parse(b)
	if code != ddp.CodeOK {
		clear(b) // nobody can tell what it is
		return b
	}
	rest := seg.Payload()
	op := rdmap.OpcodeOf(seg.RsvdULP())
	least, most := op.HeaderSize()
	if !op.Known() || seg.Tagged() != op.Tagged() || op.HasPayload() || len(rest) < least || len(rest) > most {
		clear(rest)
		return b
	}
	switch {
	case op.IsImmediate():
		clear(rest)
	case op == rdmap.AtomicRequest:
		clear(rest[20:]) // the operation, its identifier, STag and TO stay
	case op == rdmap.AtomicResponse:
		clear(rest[4:])
	}
	return b
}

// redactor makes FPDUs anew, without the program's octets.
type redactor struct {
	in   mpa.Deframer
	out  mpa.Framer
	crc  bool
	lost bool // what comes is no FPDU stream any more
}

func newRedactor(crc, markers bool) *redactor {
	r := &redactor{in: mpa.NewDeframer(crc, markers), out: mpa.NewFramer(crc, markers), crc: crc}
	r.in.SetBuffer(make([]byte, mpa.MinBuffer))
	return r
}

// feed takes octets, and has emit take each FPDU that is whole by them; what is no FPDU is zeros.
func (r *redactor) feed(b []byte, emit func([]byte)) {
	for len(b) > 0 && !r.lost {
		b = b[r.in.Feed(b):]
		for {
			u, ok, err := r.in.NextRaw()
			if err != nil {
				r.lost = true
				emit(make([]byte, r.in.Buffered()))
				break
			}
			if !ok {
				break
			}
			emit(r.fpdu(u))
		}
	}
	if r.lost && len(b) > 0 {
		emit(make([]byte, len(b)))
	}
}

// rest is the beginning of an FPDU that never became whole, as zeros behind its length.
func (r *redactor) rest() []byte { return make([]byte, r.in.Buffered()) }

// fpdu keeps the CRC as wrong as it was.
func (r *redactor) fpdu(u mpa.FPDU) []byte {
	bad := uint32(0)
	if r.crc {
		bad = u.CRC ^ u.Computed
	}
	b := r.out.AppendFPDU(nil, redacted(u.ULPDU))
	if bad != 0 && len(b) >= 4 {
		field := b[len(b)-4:]
		binary.LittleEndian.PutUint32(field, binary.LittleEndian.Uint32(field)^bad)
	}
	return b
}
