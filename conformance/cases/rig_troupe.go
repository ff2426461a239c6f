package cases

import (
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// Two nodes that send each other ten of everything.

// troupe is a world in which each of the ten operations can be done: a is Privileged.
type troupe struct {
	*world
	fast  *verbs.MR // for Fast-Register, Invalid
	pages *verbs.Pages
	key   uint8 // of fast, next
}

func newTroupe(t *conformance.T, c worldConfig) *troupe {
	c.A.QP.Privileged = true
	w := newWorld(t, c)
	return &troupe{world: w, fast: w.a.allocated(), pages: w.a.pages(1, 4096)}
}

// tenOf are one request of each operation type, in the order of 9.3.1.1, with numbers
// from 0 on, and what completes at b's queue pair if there are receives for them. All of
// them succeed; the last one undoes the one before it.
func (w *troupe) tenOf(flags verbs.Flags) (list []verbs.Request, received []verbs.Completion) {
	a, b := w.a, w.b
	w.key++
	r := fastRegister(w.fast.WithKey(w.key), w.pages.List(0, 64), 4096, allRights)
	list = []verbs.Request{
		{Op: verbs.OpSend, SGL: a.mr.SGL(0, 5)},
		{Op: verbs.OpSendSE, SGL: a.mr.SGL(0, 6)},
		{Op: verbs.OpSendInvalidate, SGL: a.mr.SGL(0, 7), Invalidate: b.register(8, allRights).STag()},
		{Op: verbs.OpSendSEInvalidate, SGL: a.mr.SGL(0, 8), Invalidate: b.register(8, allRights).STag()},
		{Op: verbs.OpWrite, SGL: a.mr.SGL(0, 9), Remote: b.mr.Remote(4096)},
		{Op: verbs.OpRead, Local: a.mr.SGE(64, 10), Remote: b.mr.Remote(4096)},
		{Op: verbs.OpReadInvalidate, Local: a.register(11, allRights).SGE(0, 11), Remote: b.mr.Remote(4096)},
		binds(a.newMW().BindRequest(a.mr, 0, 12, remoteRights, 1)),
		r,
		{Op: verbs.OpInvalidate, Invalidate: r.FastRegister.STag},
	}
	for i := range list {
		q := &list[i]
		q.ID, q.Flags = uint64(i), flags
		if i < 4 {
			c := verbs.Completion{ID: q.ID, QP: b.qp.ID(), Op: verbs.OpRecv, Bytes: uint32(5 + i)}
			c.Invalidated, c.HasInvalidated = q.Invalidate, q.Invalidate != 0
			received = append(received, c)
		}
	}
	return list, received
}

// ten posts tenOf with numbers from id on, and the receives. It returns what completes.
func (w *troupe) ten(id uint64, flags verbs.Flags) (sent, received []verbs.Completion) {
	list, received := w.tenOf(flags)
	for i := range received {
		received[i].ID += id
		postRecv(w.t, w.b.qp, verbs.Recv{ID: received[i].ID, SGL: w.b.mr.SGL(64*i, 64)})
	}
	for i := range list {
		list[i].ID += id
		sent = append(sent, verbs.Completion{ID: list[i].ID, QP: w.a.qp.ID(), Op: list[i].Op})
	}
	post(w.t, w.a.qp, list...)
	return sent, received
}
