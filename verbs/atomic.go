package verbs

import "github.com/softrnic/softrnic/wr"

// FetchAdd adds n to all 64 bits: Request.Atomic of an OpFetchAdd.
func FetchAdd(n uint64) *AtomicRequest { return wr.FetchAdd(n) }

// Swap puts v in place of all 64 bits: Request.Atomic of an OpSwap.
func Swap(v uint64) *AtomicRequest { return wr.Swap(v) }

// CompareSwap puts v in place of all 64 bits if they are old: Request.Atomic of an
// OpCompareSwap.
func CompareSwap(old, v uint64) *AtomicRequest { return wr.CompareSwap(old, v) }
