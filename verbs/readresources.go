package verbs

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// pool counts RDMA Read resources that the queue pairs of an RNIC share (verbs
// draft 6.5). A size of zero means that they do not. Its owner guards it.
type pool struct{ size, used int }

// raise reserves what want is more than have, or as much of it as there is, and
// returns the limit that results: want if it is not more. Less than asked for
// will do, none will not, if any was asked for (draft 9.2.5.1, RV-6.5-M13): then
// it fails with ErrInsufficientResources.
func (p *pool) raise(kind string, have, want int) (int, error) {
	if p.size == 0 || want <= have {
		return want, nil
	}
	got := min(want, have+p.size-p.used)
	if got == 0 {
		return 0, &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("all %d that the RNIC has for %s are taken", p.size, kind), Rule: "RV-6.5-M13"}
	}
	p.used += got - have
	return got, nil
}

// give gives n back.
func (p *pool) give(n int) {
	if p.size > 0 {
		p.used -= n
	}
}
