// Package sglcheck is the scatter/gather element that stands for one that cannot be: the
// helpers that make elements return no error, so what they cannot tell is refused when
// it is posted.
package sglcheck

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// Err is what a list with an unrepresentable element is refused with.
var Err = &wr.Reason{
	Err: wr.ErrInvalidSGLFormat, What: fmt.Sprintf("the offset of an element is negative or beyond 64 bits, or its length is not within 0 to %d", uint32(wr.MaxMessage)),
	Remedy: "name octets of the region, of 4 GiB - 1 at most in one element",
}

// SGE is the element of an offset or a length that an SGE cannot tell, such as a length
// of 4 GiB. No region has an octet at that tagged offset, so it stands for nothing else.
func SGE() wr.SGE { return wr.SGE{Length: wr.MaxMessage, TO: 1<<64 - 1} }

// Is reports whether the element stands for an unrepresentable one.
func Is(g *wr.SGE) bool { return g.TO == 1<<64-1 && g.Length == wr.MaxMessage }

func tooLong(n, most int) error {
	return &wr.Reason{
		Err: wr.ErrInvalidSGLLength, What: fmt.Sprintf("%d elements, at most %d", n, most),
		Remedy: "use fewer, or create the queue with more (SendSGE, WriteSGE, RecvSGE, SRQConfig.SGE)",
	}
}

// CheckList finds what is wrong with a list of which most elements are allowed:
// wr.ErrInvalidSGLLength for more, Err for an unrepresentable element in it.
func CheckList(l []wr.SGE, most int) error {
	if len(l) > most {
		return tooLong(len(l), most)
	}
	for i := range l {
		if Is(&l[i]) {
			return Err
		}
	}
	return nil
}
