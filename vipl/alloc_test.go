package vipl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoAllocation: a message from post to dequeue, both ends and all that is between,
// allocates nothing.
func TestNoAllocation(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{})
	qa, qb := a.cq(64), b.cq(64)
	va, vb := a.vi(ServiceReliableDelivery, qa, qa), b.vi(ServiceReliableDelivery, qb, qb)
	connect(t, a, va, b, vb)
	d, r := a.desc(), b.desc()
	from, to, remote := a.data(0, 4096), b.data(0, 4096), b.at(8192)
	ctx := within(t)
	bad := 0
	check := func(ok bool) {
		if !ok {
			bad++
		}
	}
	reap := func(q *CQ, v *Vi, recv bool, want *Descriptor) {
		w, isRecv, err := q.CQDone()
		if err == ErrNotDone { //nolint:errorlint // CQDone does not wrap it
			w, isRecv, err = q.CQWait(ctx)
		}
		check(err == nil && w == v && isRecv == recv)
		done := v.SendDone
		if recv {
			done = v.RecvDone
		}
		got, err := done()
		check(err == nil && got == want && got.Control.Status.Errors() == 0)
	}
	for name, f := range map[string]func(){
		"send": func() {
			r.SetRecv(to)
			check(vb.PostRecv(r, b.dh) == nil)
			d.SetSend(from)
			check(va.PostSend(d, a.dh) == nil)
			reap(qa, va, false, d)
			reap(qb, vb, true, r)
		},
		"write": func() {
			r.SetRecv()
			check(vb.PostRecv(r, b.dh) == nil)
			d.SetRdmaWrite(remote, from)
			d.SetImmediate(1)
			check(va.PostSend(d, a.dh) == nil)
			reap(qa, va, false, d)
			reap(qb, vb, true, r)
		},
		"read": func() {
			d.SetRdmaRead(remote, from)
			check(va.PostSend(d, a.dh) == nil)
			reap(qa, va, false, d)
		},
	} {
		for range 100 { // rings grow to what is in use
			f()
		}
		if n := testing.AllocsPerRun(200, f); !raceEnabled {
			require.Zero(t, n, name)
		}
	}
	require.Zero(t, bad)

	idle := a.vi(0, nil, nil) // the local part alone
	require.Zero(t, testing.AllocsPerRun(200, func() {
		d.SetSend(from)
		check(idle.PostSend(d, a.dh) == nil)
		got, err := idle.SendDone()
		check(err == nil && got == d)
		_, err = idle.SendDone()
		check(err == ErrNotDone) //nolint:errorlint // SendDone does not wrap it
	}))
	require.Zero(t, bad)
}
