package qp

import "github.com/softrnic/softrnic/internal/tcpsock"

// Heard is what TCP knows of the peer: see verbsinternal.HeardOf.
func (q *QP) Heard(ask bool) (h tcpsock.Heard, ok bool) {
	if s := q.session.Load(); s != nil {
		return s.llp.conn.Heard(ask)
	}
	return h, false
}
