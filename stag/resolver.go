package stag

import "github.com/softrnic/softrnic/wr"

// Resolver resolves for one user and one set of rights, and remembers the STag it
// found last: most accesses of a stream are to few STags, and the next one to the same
// is a look at one word. Make one with Table.Resolver. It has one owner at a time.
type Resolver struct {
	table *Table
	user  User
	need  wr.Access

	// What was found last, e nil before that. It is good for as long as e is in
	// generation gen: a grant does not change within one.
	e                *entry
	gen              uint64
	last             wr.STag
	base, length, at uint64
}

// Resolver makes one for accesses by u that need every right of need.
func (t *Table) Resolver(u User, need wr.Access) Resolver {
	return Resolver{table: t, user: u, need: need}
}

// Resolve is Table.Resolve.
func (r *Resolver) Resolve(s wr.STag, to, n uint64) (Ref, AccessFault) {
	if r.e == nil || s != r.last || r.e.word.Load()&^holdMask != r.gen || n == 0 {
		return r.find(s, to, n)
	}
	// Of a TO below the base off is more than the length, see grant.contains.
	off := to - r.base
	if off > r.length || n > r.length-off {
		return r.find(s, to, n) // it knows which fault that is
	}
	return Ref{r.e, r.gen, off + r.at, n}, OK
}

// find asks the table, and remembers what it says.
func (r *Resolver) find(s wr.STag, to, n uint64) (Ref, AccessFault) {
	ref, f := r.table.Resolve(s, to, n, r.user, r.need)
	if f != OK || n == 0 {
		return ref, f
	}
	var g grant
	gen, ok := ref.e.look(&g)
	if ok && gen == ref.gen { // else another generation has begun, maybe with another key
		r.e, r.gen, r.last = ref.e, gen, s
		r.base, r.length, r.at = g.base, g.length, g.at
	}
	return ref, OK
}
