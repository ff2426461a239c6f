//go:build !linux

package netpoll

import (
	"errors"
	"net"
	"runtime"
)

// set has no socket on this system: each stream has a pump.
type set struct{ waker }

type event struct{}

func (*event) slot() int32 { return 0 }
func (*event) gen() int32  { return 0 }
func (*event) what() Ready { return 0 }

func (*set) open() error            { return errors.ErrUnsupported }
func (*set) close()                 {}
func (*set) arm() bool              { return false }
func (*set) disarm()                {}
func (*set) detach()                {}
func (*set) setLowWater(*Socket)    {}
func (*set) clearLowWater()         {}
func (*set) watchable() int         { return none }
func (*set) add(*Socket) error      { return errors.ErrUnsupported }
func (*set) change(*Socket)         {}
func (*set) remove(*Socket)         {}
func (*set) wait(ready []event) int { return 0 }

func yieldThread() { runtime.Gosched() }

// MaxReadPieces is into how many pieces TryReadPieces reads.
const MaxReadPieces = 9

func newLink(c net.Conn, wear func(work string)) (link, error) { return newPump(c, wear), nil }
