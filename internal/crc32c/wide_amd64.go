package crc32c

import "golang.org/x/sys/cpu"

// CRC32C for processors whose PCLMULQDQ takes registers of 512 bits (VPCLMULQDQ): four lanes
// (fold_amd64.go) at a time. Four such registers are folded by 2048 bits, 256 octets a step;
// what is left of them at the end is folded into one, which is folded over the 64 octets that remain
// at a time; its four lanes become one, and the CRC32 instruction takes that. The rest
// of less than 64 octets goes the plain way.
//
// CRC32 beside it (fold_amd64.go) would gain only where all is in the first cache: from the second the loop
// takes octets as fast as they come. So storing them costs nothing either: Copy takes as long as a copy.

// wideMin is the length from which on this is faster than the plain way, as measured. It is at least 64.
const wideMin = 128

// canWide says that sumWide and copyWide may be called.
var canWide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasAVX2 && canFold

// wideFolds are what a step, 64 octets, and the end of a sum multiply by.
var wideFolds = iSCSI.wide()

func (g generator) wide() wideTable {
	return wideTable{
		step: g.fold(2048), one: g.fold(512),
		last: [4][2]uint64{g.fold(384), g.fold(256), g.fold(128)},
	}
}

type wideTable struct {
	step, one [2]uint64
	last      [4][2]uint64 // of each lane; the fourth is there already
}

func update(crc uint32, b []byte) uint32 {
	switch {
	case canWide && len(b) >= wideMin:
		n := len(b) &^ 63
		return ^crcPlain(sumWide(^crc, b[:n], &wideFolds), b[n:])
	case canFold:
		return ^folded(^crc, b)
	default:
		return portable(crc, b)
	}
}

func copyUpdate(crc uint32, dst, src []byte) uint32 {
	if !canWide || len(src) < wideMin {
		return copyBlocks(crc, dst, src)
	}
	n := len(src) &^ 63
	state := copyWide(^crc, &dst[0], src[:n], &wideFolds)
	dst = dst[n:]
	copy(dst, src[n:])
	return ^crcPlain(state, dst)
}

// sumWide continues state with b, whose length is a multiple of 64 and not 0. table is wideFolds.
//
//go:noescape
func sumWide(state uint32, b []byte, table *wideTable) uint32

// copyWide is sumWide that copies b to dst.
//
//go:noescape
func copyWide(state uint32, dst *byte, b []byte, table *wideTable) uint32

// foldWide is sumWide that leaves in rest the last lane, which stands for all of b behind a state of zero,
// rather than the state: that is for the generator of table alone to tell.
//
//go:noescape
func foldWide(state uint32, b []byte, table *wideTable, rest *[16]byte)

// Folder folds for the CRC of another generator.
type Folder wideTable

// NewFolder returns the Folder of a generator, reversed and without x^32.
func NewFolder(reversed uint32) *Folder {
	f := Folder(generator(reversed).wide())
	return &f
}

// Fold folds the first n octets of b into rest: after those 16 octets, a CRC that began with a state of zero has the
// state that one which began with state has after the n. n is 0, and rest is as it was, if this processor
// cannot, or if it is not worth while.
func (f *Folder) Fold(state uint32, b []byte, rest *[16]byte) (n int) {
	if !canWide || len(b) < wideMin {
		return 0
	}
	n = len(b) &^ 63
	foldWide(state, b[:n], (*wideTable)(f), rest)
	return n
}
