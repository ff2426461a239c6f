//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/uabi"
)

var qpnCount atomic.Uint32

// newQPN gives a queue pair its number, before it is made. It is called once.
func (d *Device) newQPN(*QP) (uint32, error) { return 0xc35000 + qpnCount.Add(1), nil }

// freeQPN is told that the queue pair is gone.
func (d *Device) freeQPN(*QP) {}

// toRTR is MODIFY_QP to RTR with the peer's queue pair number, m, which nobody has taken: it begins
// to connect, and does not block.
func (d *Device) toRTR(*QP, *uabi.ModifyQP) error { return nil }
