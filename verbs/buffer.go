package verbs

import (
	"github.com/softrnic/softrnic/internal/sglcheck"
)

// TaggedBuffer is registered memory as work requests and peers name it: an STag,
// and the tagged offset of the first octet. MR.Buffer, BindBuffer and
// FastRegisterBuffer make one; nothing is looked up.
type TaggedBuffer struct {
	STag STag
	Base uint64
}

// SGE is the element for n octets from octet off of the buffer. It is not
// checked here: what lies outside completes in error, and what no element can tell,
// a negative offset or a length not within 0 to MaxMessage, is refused when it is
// posted (ErrInvalidSGLFormat).
func (b TaggedBuffer) SGE(off, n int) SGE {
	to := b.Base + uint64(off)
	if off < 0 || to < b.Base || n < 0 || uint64(n) > MaxMessage {
		return sglcheck.SGE()
	}
	return SGE{STag: b.STag, TO: to, Length: uint32(n)}
}

// SGL is a list of one element, as SGE.
func (b TaggedBuffer) SGL(off, n int) []SGE { return []SGE{b.SGE(off, n)} }

// Remote is the address of octet off, to be told to a peer.
func (b TaggedBuffer) Remote(off int) Remote {
	return Remote{STag: b.STag, TO: b.Base + uint64(off)}
}

// BindBuffer is the window as it is once the Bind has been executed.
func BindBuffer(b *BindRequest) TaggedBuffer { return tagged(b.Window, b.Addressing, b.VA) }

// FastRegisterBuffer is the region as it is once the Fast-Register has been
// executed.
func FastRegisterBuffer(f *FastRegisterRequest) TaggedBuffer {
	return tagged(f.STag, f.Addressing, f.VA)
}

func tagged(s STag, a Addressing, va uint64) TaggedBuffer {
	if a == ZeroBased { // draft 7.6.1.2
		va = 0
	}
	return TaggedBuffer{STag: s, Base: va}
}
