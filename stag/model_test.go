package stag

import (
	"slices"

	"github.com/softrnic/softrnic/wr"
)

// A slow and obvious twin of Table, written from chapter 7 of the draft: maps,
// plain checks, one octet at a time, an error for each sentence that has one.
// It shares no code with the table but the nouns of package wr.

type model struct {
	pbl, regions, windows int
	physical              uint64 // octets left
	stags                 map[uint32]*modelSTag
	pages                 []*modelPages
}

// modelPages is an allocation: octet i has physical address addr+i.
type modelPages struct {
	addr  uint64
	size  uint64
	mem   []byte
	freed bool
}

// modelSTag is what is known of one STag.
type modelSTag struct {
	index         uint32
	window        bool
	valid, shared bool
	life          int // counts the stays in the Valid state

	key        uint8
	pd         wr.PDID
	qp         wr.QPID
	access     wr.Access
	addressing wr.Addressing
	base       uint64
	length     uint64
	octet      func(i uint64) *byte // of the region or window

	flag, mayInvalidate bool
	pbl                 int
	size, fbo           uint64

	region *modelSTag // of a bound window
	to     *modelQP   // of a bound window
}

type modelQP struct {
	user    User
	retired bool
}

func newModel(c Config) *model {
	return &model{pbl: c.PBL, regions: c.Regions, windows: c.Windows, physical: c.PhysicalMemory, stags: map[uint32]*modelSTag{}}
}

func (m *model) count(window bool) int {
	n := 0
	for _, s := range m.stags {
		if s.window == window {
			n++
		}
	}
	return n
}

// boundTo lists the windows bound to a region or queue pair.
func (m *model) boundTo(what func(*modelSTag) bool) int {
	n := 0
	for _, s := range m.stags {
		if s.window && s.valid && what(s) {
			n++
		}
	}
	return n
}

func (m *model) windowsOf(r *modelSTag) int {
	return m.boundTo(func(w *modelSTag) bool { return w.region == r })
}

// place finds the allocation that has all of the n octets at addr.
func (m *model) place(addr, n uint64) (*modelPages, uint64) {
	for _, p := range m.pages {
		if !p.freed && addr >= p.addr && addr < p.addr+uint64(len(p.mem)) && n <= p.addr+uint64(len(p.mem))-addr {
			return p, addr - p.addr
		}
	}
	return nil, 0
}

func pageSize(size uint64) bool {
	for ok := uint64(4096); ok <= 1<<30; ok <<= 1 {
		if size == ok {
			return true
		}
	}
	return false
}

// layout is a checked buffer list.
type layout struct {
	base, length, size, fbo uint64
	entries                 int
	octet                   func(i uint64) *byte
}

// buffers checks a buffer list in the order that FastRegister documents.
func (m *model) buffers(b wr.PhysicalBuffers, room int, block bool, a wr.Addressing, va uint64) (layout, AccessFault) {
	if block && (b.Size == 0 || b.Size > 1<<30) || !block && !pageSize(b.Size) {
		return layout{}, FaultBufferSize
	}
	if len(b.Addresses) > room {
		return layout{}, FaultBufferList
	}
	if b.FBO >= b.Size {
		return layout{}, FaultFBO
	}
	if b.Length == 0 {
		return layout{}, FaultLength
	}
	if total := b.Size * uint64(len(b.Addresses)); total < b.FBO || total-b.FBO < b.Length {
		return layout{}, FaultLength
	}
	base, ok := modelBase(a, va, b.Length, b.Size, b.FBO)
	if !ok {
		return layout{}, FaultVA
	}
	var in []*modelPages
	var at []uint64
	for _, addr := range b.Addresses {
		p, off := m.place(addr, b.Size)
		if p == nil || !block && addr%b.Size != 0 {
			return layout{}, FaultBufferEntry
		}
		in, at = append(in, p), append(at, off)
	}
	size, fbo := b.Size, b.FBO
	return layout{base, b.Length, size, fbo, len(in), func(i uint64) *byte {
		pos := fbo + i
		return &in[pos/size].mem[at[pos/size]+pos%size]
	}}, OK
}

func modelBase(a wr.Addressing, va, length, size, fbo uint64) (uint64, bool) {
	if a == wr.ZeroBased {
		return 0, true
	}
	last := va + length // one behind it, which must be a TO as well
	return va, va != 0 && va%size == fbo && last > va
}

var modelErrors = map[AccessFault]wr.ImmediateError{
	FaultBufferSize: wr.ErrInvalidPhysBufferSize, FaultBufferList: wr.ErrInvalidLength, FaultFBO: wr.ErrInvalidFBO,
	FaultLength: wr.ErrInvalidLength, FaultVA: wr.ErrInvalidVA, FaultBufferEntry: wr.ErrInvalidPhysBufferEntry,
}

// figure 18, by its rows that say Yes. The right to Atomics, which is 32, needs both local ones.
func figure18Allows(a wr.Access) bool {
	rows := []wr.Access{1, 1 | 4, 2, 2 | 8, 1 | 2, 1 | 2 | 4, 1 | 2 | 8, 1 | 2 | 4 | 8}
	return slices.Contains(rows, a&^(wr.BindWindow|32)) && (a&32 == 0 || a&3 == 3)
}

// describe checks what Register and Reregister get. mirror is the model's own
// copy of c.Memory.
func (m *model) describe(c RegionConfig, block bool, mirror []byte) (layout, wr.ImmediateError) {
	switch {
	case c.PD == 0:
		return layout{}, wr.ErrInvalidPD
	case !figure18Allows(c.Access):
		return layout{}, wr.ErrInvalidAccess
	case c.Addressing == wr.ZeroBased && c.VA != 0:
		return layout{}, wr.ErrInvalidVA
	}
	if c.Buffers.Size != 0 {
		l, f := m.buffers(c.Buffers, m.pbl, block, c.Addressing, c.VA)
		return l, modelErrors[f]
	}
	n := uint64(len(mirror))
	if n == 0 {
		return layout{}, wr.ErrInvalidLength
	}
	first := c.VA % 4096 // the tests give a VA, or a page-aligned memory
	pages := (first + n + 4095) / 4096
	if pages > uint64(m.pbl) {
		return layout{}, wr.ErrInvalidLength
	}
	base, ok := modelBase(c.Addressing, c.VA, n, 4096, first)
	if !ok {
		return layout{}, wr.ErrInvalidVA
	}
	return layout{base, n, 4096, first, int(pages), func(i uint64) *byte { return &mirror[i] }}, 0
}

func (s *modelSTag) become(c RegionConfig, l layout) {
	s.valid = true
	s.life++
	s.key, s.pd, s.qp, s.access, s.addressing = c.Key, c.PD, c.QP, c.Access, c.Addressing
	s.base, s.length, s.octet = l.base, l.length, l.octet
	s.size, s.fbo, s.pbl = l.size, l.fbo, max(s.pbl, l.entries)
	s.flag = c.RemoteAccess || c.Access&(4|8|32) != 0
	s.mayInvalidate = c.RemoteInvalidate
}

func (m *model) reregister(s wr.STag, c RegionConfig, block bool, mirror []byte) wr.ImmediateError {
	r := m.stags[s.Index()]
	switch {
	case r == nil, r.window, r.shared:
		return wr.ErrInvalidSTag
	case m.windowsOf(r) > 0:
		return wr.ErrWindowsBound
	}
	l, err := m.describe(c, block, mirror)
	if err != 0 {
		delete(m.stags, s.Index())
		return err
	}
	r.become(c, l)
	return 0
}

func (m *model) shared(s wr.STag, c SharedConfig) (*modelSTag, wr.ImmediateError) {
	old := m.stags[s.Index()]
	switch {
	case old == nil, old.window, !old.valid, old.key != s.Key():
		return nil, wr.ErrInvalidSTag
	case c.PD == 0:
		return nil, wr.ErrInvalidPD
	case !figure18Allows(c.Access):
		return nil, wr.ErrInvalidAccess
	case c.Addressing == wr.ZeroBased && c.VA != 0:
		return nil, wr.ErrInvalidVA
	}
	va := c.VA
	if va == 0 && old.addressing == wr.VABased {
		va = old.base
	}
	base, ok := modelBase(c.Addressing, va, old.length, old.size, old.fbo)
	if !ok {
		return nil, wr.ErrInvalidVA
	}
	if m.count(false) >= m.regions {
		return nil, wr.ErrInsufficientResources
	}
	n := &modelSTag{pbl: old.pbl, shared: true}
	n.become(RegionConfig{Key: c.Key, PD: c.PD, QP: c.QP, Access: c.Access, Addressing: c.Addressing, RemoteAccess: c.RemoteAccess},
		layout{base, old.length, old.size, old.fbo, old.pbl, old.octet})
	old.shared = true
	return n, 0
}

func (m *model) fastRegister(f wr.FastRegisterRequest, u User, block bool) AccessFault {
	r := m.stags[f.STag.Index()]
	switch {
	case !u.Privileged:
		return FaultPrivilege
	case r == nil, r.window, r.shared:
		return FaultSTag
	case r.pd != u.PD:
		return FaultPD
	case r.valid:
		return FaultNotInvalid
	case !figure18Allows(f.Access), f.Access&(4|8|32) != 0 && !r.flag:
		return FaultRights
	}
	l, fault := m.buffers(f.Buffers, r.pbl, block, f.Addressing, f.VA)
	if fault != OK {
		return fault
	}
	r.become(RegionConfig{
		Key: f.STag.Key(), PD: r.pd, QP: r.qp, Access: f.Access, Addressing: f.Addressing,
		RemoteAccess: r.flag, RemoteInvalidate: r.mayInvalidate,
	}, l)
	return OK
}
