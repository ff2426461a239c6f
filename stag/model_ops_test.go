package stag

import (
	"bytes"
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// The operations of the driver: each is done in both worlds.

func (d *driver) register() {
	c, mirror := d.region()
	l, want := d.m.describe(c, d.block, mirror)
	if want == 0 && d.m.count(false) >= d.m.regions {
		want = wr.ErrInsufficientResources
	}
	i, err := d.tb.Register(c)
	same(d, "register", want, d.errorOf(err), c)
	if err == nil {
		e := &modelSTag{}
		e.become(c, l)
		d.learn(e, i.STag)
		require.Equal(d.t, d.m.query(e), i)
	}
}

func (d *driver) reregister() {
	s := d.stag(anyRegion)
	c, mirror := d.region()
	want := d.m.reregister(s, c, d.block, mirror)
	i, err := d.tb.Reregister(s, c)
	same(d, "reregister", want, d.errorOf(err), s, c)
	if err == nil {
		require.Equal(d.t, d.m.query(d.m.stags[s.Index()]), i)
	}
}

func (d *driver) registerShared() {
	s := d.stag(func(e *modelSTag) bool { return !e.window && e.valid })
	c := SharedConfig{
		PD: d.pd(), QP: wr.QPID(max(0, d.rng.IntN(24)-20)), Key: uint8(d.rng.Uint32()),
		Addressing: wr.Addressing(d.rng.IntN(3) / 2), Access: d.access(), RemoteAccess: d.chance(2),
	}
	if e := d.m.stags[s.Index()]; e != nil && c.Addressing == wr.VABased {
		c.VA = d.va(e.size, e.fbo)
	}
	e, want := d.m.shared(s, c)
	i, err := d.tb.RegisterShared(s, c)
	same(d, "shared", want, d.errorOf(err), s, c)
	if err == nil {
		d.learn(e, i.STag)
		require.Equal(d.t, d.m.query(e), i)
	}
}

func (d *driver) allocate() {
	c := AllocateConfig{
		PD: d.pd(), PBL: d.rng.IntN(8) - 1, RemoteAccess: !d.chance(3),
		QP: wr.QPID(max(0, d.rng.IntN(24)-20)), RemoteInvalidate: !d.chance(6),
	}
	want := wr.ImmediateError(0)
	switch {
	case c.PD == 0:
		want = wr.ErrInvalidPD
	case c.PBL > d.m.pbl, d.m.count(false) >= d.m.regions:
		want = wr.ErrInsufficientResources
	}
	i, err := d.tb.Allocate(c)
	same(d, "allocate", want, d.errorOf(err), c)
	if err == nil {
		e := &modelSTag{pd: c.PD, qp: c.QP, pbl: max(1, c.PBL), flag: c.RemoteAccess, mayInvalidate: c.RemoteInvalidate}
		d.learn(e, i.STag)
		require.Equal(d.t, d.m.query(e), i)
	}
}

func (d *driver) allocateWindow() {
	pd := d.pd()
	want := wr.ImmediateError(0)
	switch {
	case pd == 0:
		want = wr.ErrInvalidPD
	case d.m.count(true) >= d.m.windows:
		want = wr.ErrInsufficientResources
	}
	s, err := d.tb.AllocateWindow(pd)
	same(d, "window", want, d.errorOf(err), pd)
	if err == nil {
		d.learn(&modelSTag{window: true, pd: pd}, s)
	}
}

func (d *driver) fastRegister() {
	f := wr.FastRegisterRequest{
		STag: d.stag(invalidRegion), Buffers: d.buffers(), Access: d.access(), Addressing: wr.Addressing(d.rng.IntN(3) / 2),
	}
	if d.chance(3) { // another key
		f.STag ^= wr.STag(d.rng.IntN(256))
	}
	f.VA = d.va(f.Buffers.Size, f.Buffers.FBO)
	q := d.qp(f.STag)
	want := d.m.fastRegister(f, q.user, d.block)
	same(d, "fast", want, d.tb.FastRegister(&f, q.user), f, q)
}

func (d *driver) bind() {
	b := wr.BindRequest{
		Window: d.stag(freeWindow), Region: d.stag(bindable), Addressing: wr.Addressing(d.rng.IntN(2)),
		Access: oneOf(d, wr.RemoteRead, wr.RemoteWrite, wr.RemoteAtomic, remoteRights, remoteRights), VA: d.rng.Uint64N(100), Length: d.rng.Uint64N(20),
	}
	if d.chance(10) {
		b.Access = wr.Access(d.rng.IntN(64))
	}
	if r := d.m.stags[b.Region.Index()]; r != nil {
		b.VA = r.base + d.rng.Uint64N(r.length+3) - 1
		b.Length = 1 + d.rng.Uint64N(max(1, min(100, r.length/2)))
	}
	if d.chance(40) {
		b.VA, b.Length = ^uint64(0)-d.rng.Uint64N(3), d.rng.Uint64N(5)
	}
	q := d.qp(b.Region)
	want := d.m.bind(b, q)
	same(d, "bind", want, d.tb.Bind(&b, q.user), b, q)
}

func (d *driver) invalidate() {
	s := d.stag(oneOf(d, boundWindow, anyValid, func(e *modelSTag) bool { return !e.window && !e.shared }))
	u, remote := d.qp(s).user, d.chance(2)
	want := d.m.invalidate(s, u, remote)
	if remote {
		same(d, "remote", want, d.tb.InvalidateRemote(s, u), s, u)
	} else {
		same(d, "local", want, d.tb.InvalidateLocal(s, u), s, u)
	}
}

func (d *driver) deallocate() {
	s := d.stag(func(e *modelSTag) bool { return e.shared || d.chance(6) })
	want := d.m.deallocate(s)
	same(d, "deallocate", want, d.errorOf(d.tb.Deallocate(s)), s)
}

// retire destroys a queue pair, and makes a new one in its place.
func (d *driver) retire() {
	i := d.rng.IntN(len(d.qps))
	q := d.qps[i]
	want := d.m.retire(q)
	same(d, "retire", want, d.errorOf(d.tb.Retire(q.user.Windows)))
	if want == 0 && !d.chance(8) { // a few stay for a while
		d.qps[i] = d.newQP(i)
	}
}

func (d *driver) physical() {
	if len(d.pages) > 0 && d.chance(2) {
		i := d.rng.IntN(len(d.pages))
		p, mp := d.pages[i], d.m.pages[i]
		want := wr.ImmediateError(0)
		if mp.freed {
			want = wr.ErrInvalidModifier
		} else {
			d.m.physical += uint64(len(mp.mem))
		}
		mp.freed = true
		same(d, "free", want, d.errorOf(p.Deallocate()))
		return
	}
	n, size := d.rng.IntN(4), uint64(page)
	if d.block {
		n, size = d.rng.IntN(60), oneOf(d, uint64(1), 7, 100)
	}
	if d.chance(10) {
		size = oneOf(d, uint64(0), 4097, 1<<31)
	}
	want := wr.ImmediateError(0)
	switch {
	case d.block && (size == 0 || size > 1<<30), !d.block && !pageSize(size):
		want = wr.ErrInvalidPhysBufferSize
	case n == 0:
		want = wr.ErrInvalidLength
	case uint64(n)*size > d.m.physical:
		want = wr.ErrInsufficientResources
	}
	p, err := d.tb.AllocatePages(n, size)
	same(d, "pages", want, d.errorOf(err), n, size)
	if err == nil {
		d.m.physical -= uint64(n) * size
		for i := d.rng.IntN(8); i < len(p.Bytes()); i += 8 {
			p.Bytes()[i] = byte(d.rng.Uint32())
		}
		d.pages = append(d.pages, p)
		d.m.pages = append(d.m.pages, &modelPages{addr: p.Address(0), size: size, mem: bytes.Clone(p.Bytes())})
		if k := len(d.pages) - 30; k > 0 && d.m.pages[0].freed {
			d.pages, d.m.pages = d.pages[1:], d.m.pages[1:]
		}
	}
}

func (d *driver) resolve() {
	s := d.stag(oneOf(d, anyValid, boundWindow))
	u := d.qp(s).user
	need := oneOf(d, wr.LocalRead, wr.LocalWrite, wr.RemoteRead, wr.RemoteWrite, wr.RemoteWrite, wr.RemoteAtomic, 0)
	to, n := d.rng.Uint64N(200), 1+d.rng.Uint64N(30)
	if need == wr.RemoteAtomic {
		n = 8
	}
	if e := d.m.stags[s.Index()]; e != nil {
		to = e.base + d.rng.Uint64N(e.length+8) - 4
	}
	if d.chance(4) && len(d.pages) > 0 {
		s = 0
		p := oneOf(d, d.pages...)
		to = p.Address(0) + d.rng.Uint64N(uint64(len(p.Bytes()))+8) - 4
	}
	if d.chance(40) {
		to = ^uint64(0) - d.rng.Uint64N(40)
	}
	want := d.m.resolve(s, to, n, u, need)
	ref, got := d.tb.Resolve(s, to, n, u, need)
	same(d, "resolve", want, got, s, to, n, u, need)
	d.resolveAgain(s, to, n, u, need)
	if got != OK {
		require.Zero(d.t, ref)
		return
	}
	r := modelRef{ref: ref}
	if s == 0 {
		r.pages, r.off = d.m.place(to, n)
	} else {
		r.e = d.m.stags[s.Index()]
		r.life, r.off = r.e.life, to-r.e.base
	}
	d.refs = append(d.refs, r)
	if len(d.refs) > 50 {
		d.refs = d.refs[1:]
	}
	d.copyBoth(r)
}

func (d *driver) useRef() {
	if len(d.refs) > 0 {
		d.copyBoth(oneOf(d, d.refs...))
	}
}

// updateBoth changes eight octets in both worlds, or in neither.
func (d *driver) updateBoth(r modelRef, octet func(uint64) *byte, alive bool) {
	v := d.rng.Uint64()
	old, aligned, ok := r.ref.Update(func(old uint64) uint64 { return old ^ v })
	same(d, "update", alive && r.ref.Len() == 8, ok)
	if !ok || !aligned {
		return
	}
	var b [8]byte
	for i := range b {
		b[i] = *octet(uint64(i))
	}
	same(d, "what there was", binary.NativeEndian.Uint64(b[:]), old)
	binary.NativeEndian.PutUint64(b[:], old^v)
	for i := range b {
		*octet(uint64(i)) = b[i]
	}
}

// copyBoth writes to some of the range in both worlds and reads it back, or in
// neither.
func (d *driver) copyBoth(r modelRef) {
	octet := func(i uint64) *byte { return &r.pages.mem[r.off+i] }
	alive := r.pages != nil && !r.pages.freed
	if r.e != nil {
		of := r.e.octet
		octet = func(i uint64) *byte { return of(r.off + i) }
		alive = d.m.stags[r.e.index] == r.e && r.e.valid && r.e.life == r.life
	}
	d.updateBoth(r, octet, alive)
	off := d.rng.Uint64N(r.ref.Len() + 1)
	src := make([]byte, d.rng.Uint64N(r.ref.Len()-off+1))
	for i := range src {
		src[i] = byte(d.rng.Uint32())
	}
	same(d, "copy", alive, r.ref.CopyIn(off, src))
	got := make([]byte, len(src))
	same(d, "copy out", alive, r.ref.CopyOut(got, off))
	if !alive {
		return
	}
	want := make([]byte, len(src))
	for i, b := range src {
		*octet(off + uint64(i)) = b
	}
	for i := range want { // after all of it: a list may have a buffer twice
		want[i] = *octet(off + uint64(i))
	}
	if !bytes.Equal(want, got) {
		require.Equal(d.t, want, got)
	}
}
