package stag

import "github.com/softrnic/softrnic/wr"

// What the driver asks for at random: mostly what can succeed.

func (d *driver) chance(n int) bool { return d.rng.IntN(n) == 0 }

func oneOf[T any](d *driver, of ...T) T { return of[d.rng.IntN(len(of))] }

// stag is mostly one that names something of the kind wanted, with its key.
func (d *driver) stag(wanted func(*modelSTag) bool) wr.STag {
	var all, fits []*modelSTag
	for _, s := range d.known {
		if e := d.m.stags[s.Index()]; e != nil {
			all = append(all, e)
			if wanted(e) {
				fits = append(fits, e)
			}
		}
	}
	var e *modelSTag
	switch {
	case len(fits) > 0 && !d.chance(12):
		e = oneOf(d, fits...)
	case len(all) > 0 && !d.chance(2):
		e = oneOf(d, all...)
	case len(d.known) > 0 && !d.chance(3):
		return oneOf(d, d.known...) ^ wr.STag(d.rng.IntN(2))<<d.rng.IntN(32)
	default:
		return wr.STag(d.rng.IntN(3) * 128)
	}
	s := wr.MakeSTag(e.index, e.key)
	if d.chance(20) {
		s ^= 1 << d.rng.IntN(8)
	}
	return s
}

// qp is mostly one that s is open to.
func (d *driver) qp(s wr.STag) *modelQP {
	e := d.m.stags[s.Index()]
	var fits []*modelQP
	for _, q := range d.qps {
		if e != nil && e.pd == q.user.PD && (e.qp == 0 || e.qp == q.user.QP) {
			fits = append(fits, q)
		}
	}
	if len(fits) == 0 || d.chance(6) {
		return oneOf(d, d.qps...)
	}
	return oneOf(d, fits...)
}

func anyRegion(e *modelSTag) bool   { return !e.window }
func anyValid(e *modelSTag) bool    { return e.valid }
func boundWindow(e *modelSTag) bool { return e.window && e.valid }
func freeWindow(e *modelSTag) bool  { return e.window && !e.valid }
func invalidRegion(e *modelSTag) bool {
	return !e.window && !e.valid
}
func bindable(e *modelSTag) bool {
	return !e.window && e.valid && e.addressing == wr.VABased && e.access&wr.BindWindow != 0
}

func (d *driver) pd() wr.PDID {
	if d.chance(25) {
		return 0
	}
	return wr.PDID(1 + d.rng.IntN(4)/3)
}

func (d *driver) access() wr.Access {
	switch d.rng.IntN(8) {
	case 0:
		return wr.Access(d.rng.IntN(72))
	case 1, 2:
		return localRights
	}
	return allRights
}

func (d *driver) buffers() wr.PhysicalBuffers {
	b := wr.PhysicalBuffers{Size: page}
	if d.block {
		b.Size = oneOf(d, uint64(1), 3, 24, 100)
	}
	if d.chance(12) {
		b.Size = oneOf(d, uint64(0), 4097, 2*page, 1<<31)
	}
	n := 1 + d.rng.IntN(3)
	if d.chance(5) {
		n = d.rng.IntN(7)
	}
	for range n {
		if len(d.pages) == 0 || d.chance(40) {
			b.Addresses = append(b.Addresses, d.rng.Uint64N(1<<40))
			continue
		}
		i := d.rng.IntN(len(d.pages))
		for try := 0; try < 9 && d.m.pages[i].freed; try++ {
			i = d.rng.IntN(len(d.pages))
		}
		p := d.pages[i]
		a := p.Address(d.rng.IntN(len(p.Bytes()) / int(p.Size())))
		if all := uint64(len(p.Bytes())); d.block && all > b.Size {
			a = p.Address(0) + d.rng.Uint64N(all-b.Size+1)
		}
		if d.chance(40) {
			a += oneOf(d, uint64(1), 2048, page)
		}
		b.Addresses = append(b.Addresses, a)
	}
	if b.Size > 0 {
		b.FBO = d.rng.Uint64N(b.Size)
		if d.chance(20) {
			b.FBO = b.Size
		}
		total := b.Size * uint64(len(b.Addresses))
		b.Length = min(1+d.rng.Uint64N(max(1, total-min(total, b.FBO))), 1+d.rng.Uint64N(60)) // short, for the model's patience
		if d.chance(8) {
			b.Length = oneOf(d, total, total-b.FBO, total-b.FBO+1)
		}
	}
	return b
}

// va is one that agrees with fbo, mostly.
func (d *driver) va(size, fbo uint64) uint64 {
	size = max(size, 1)
	va := oneOf(d, uint64(1), 7, 1<<40, 1<<63/size, ^uint64(0)/size)*size + fbo
	if d.chance(12) {
		va += oneOf(d, uint64(1), ^uint64(0))
	}
	if d.chance(20) {
		va = 0
	}
	return va
}

func (d *driver) region() (c RegionConfig, mirror []byte) {
	c = RegionConfig{
		PD: d.pd(), QP: wr.QPID(max(0, d.rng.IntN(24)-20)), Access: d.access(), Key: uint8(d.rng.Uint32()),
		RemoteAccess: d.chance(2), RemoteInvalidate: !d.chance(6), Addressing: wr.Addressing(d.rng.IntN(3) / 2),
	}
	size, fbo := uint64(page), d.rng.Uint64N(page)
	if d.chance(3) {
		lo := d.rng.IntN(len(d.mem))
		hi := min(lo+d.rng.IntN(80), len(d.mem))
		if d.chance(10) {
			lo, hi = 0, len(d.mem) // page-aligned, so the address will do
		}
		c.Memory, mirror = d.mem[lo:hi], d.mirror[lo:hi]
		if c.Addressing == wr.ZeroBased {
			c.Memory, mirror = d.mem[:hi-lo], d.mirror[:hi-lo]
		}
	} else if c.Buffers = d.buffers(); c.Buffers.Size == 0 {
		c.Buffers.Size = 5000 // or they would be none at all
	} else {
		size, fbo = c.Buffers.Size, c.Buffers.FBO
	}
	if c.Addressing == wr.VABased {
		if c.VA = d.va(size, fbo); c.Memory != nil && c.VA == 0 {
			c.VA = 1
		}
	} else if d.chance(30) {
		c.VA = page
	}
	return c, mirror
}
