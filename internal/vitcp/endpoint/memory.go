package endpoint

import (
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// spans is memory in several stretches and a place in it, which copies and system
// calls move on. Nothing is held but during those: what stays in between are
// references, which fail once the memory is deregistered.
type spans struct {
	list []Span
	refs []stag.Ref // of list, after resolve
	i    int        // the place: in refs,
	off  uint64     // and in refs[i]
}

// set makes s a copy of list, in the storage it has, and returns the octets in all.
func (s *spans) set(list []Span) (total uint64) {
	s.list = append(s.list[:0], list...)
	return s.room()
}

// room is how many octets there are in all.
func (s *spans) room() (total uint64) {
	for i := range s.list {
		total += uint64(s.list[i].Length)
	}
	return total
}

// resolve looks all memory up and goes to its beginning. It reports false if some may
// not be used so (VA-6.3.2-M1).
func (s *spans) resolve(t *stag.Table, u stag.User, need wr.Access) bool {
	s.refs, s.i, s.off = s.refs[:0], 0, 0
	for i := range s.list {
		p := &s.list[i]
		if p.Length == 0 {
			continue
		}
		ref, f := t.Resolve(p.Handle, p.Addr, uint64(p.Length), u, need)
		if f != stag.OK {
			return false
		}
		s.refs = append(s.refs, ref)
	}
	return true
}

// one makes s the n octets at addr, and resolves them.
func (s *spans) one(addr uint64, h wr.STag, n uint32, t *stag.Table, u stag.User, need wr.Access) bool {
	s.list = append(s.list[:0], Span{Addr: addr, Handle: h, Length: n})
	return s.resolve(t, u, need)
}

// here is where the next octets are: up to n of them from off on in ref. k is zero at
// the end only.
func (s *spans) here(n uint64) (ref stag.Ref, off, k uint64) {
	for s.i < len(s.refs) && s.off == s.refs[s.i].Len() {
		s.i, s.off = s.i+1, 0
	}
	if s.i == len(s.refs) {
		return ref, 0, 0
	}
	ref = s.refs[s.i]
	return ref, s.off, min(n, ref.Len()-s.off)
}

// skip moves on by n octets, which here has shown to be in one stretch.
func (s *spans) skip(n uint64) { s.off += n }

// copyIn puts b at the place. It reports false if memory is gone or has vanished, or there
// is less of it.
func (s *spans) copyIn(b []byte) bool {
	for len(b) > 0 {
		ref, off, k := s.here(uint64(len(b)))
		if k == 0 || !ref.CopyIn(off, b[:k]) {
			return false
		}
		s.skip(k)
		b = b[k:]
	}
	return true
}

// copyOut fills b from the place on, as copyIn.
func (s *spans) copyOut(b []byte) bool {
	for len(b) > 0 {
		ref, off, k := s.here(uint64(len(b)))
		if k == 0 || !ref.CopyOut(b[:k], off) {
			return false
		}
		s.skip(k)
		b = b[k:]
	}
	return true
}
