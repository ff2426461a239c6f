package qp

import "github.com/softrnic/softrnic/stag"

// holder holds memory for one copy after the other: the hold of a region goes on while
// what is copied next is of the same. The zero holder has none.
type holder struct{ ref stag.Ref }

// hold holds r, until the next hold or release. It reports false if r was revoked.
func (h *holder) hold(r stag.Ref) bool {
	if h.ref.SameHold(r) {
		return true
	}
	h.release()
	if !r.Hold() {
		return false
	}
	h.ref = r
	return true
}

func (h *holder) release() {
	h.ref.Release()
	h.ref = stag.Ref{}
}
