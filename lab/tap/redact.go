package tap

import (
	"slices"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
)

// redacted is a ULPDU without the program's octets: of the same length, zeros in their place.
func redacted(ulpdu []byte) []byte {
	b := slices.Clone(ulpdu)
	seg, code := ddp.Parse(b)
	if code != ddp.CodeOK {
		clear(b) // it may be anything
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
