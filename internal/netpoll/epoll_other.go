//go:build !linux

package netpoll

import "errors"

// set is not there on this system: nothing is ever added to a Group.
type set struct{}

type event struct{}

func (*event) slot() int32 { return 0 }
func (*event) gen() int32  { return 0 }
func (*event) what() Ready { return 0 }

func (*set) open() error                         { return errors.ErrUnsupported }
func (*set) close()                              {}
func (*set) arm() bool                           { return false }
func (*set) disarm()                             {}
func (*set) detach()                             {}
func (*set) setLowWater(*Socket)                 {}
func (*set) clearLowWater()                      {}
func (*set) watchable() int                      { return -1 }
func (*set) add(*Socket) error                   { return errors.ErrUnsupported }
func (*set) change(*Socket)                      {}
func (*set) remove(*Socket)                      {}
func (*set) wait([]event) int                    { return 0 }
func (*set) sleep(func() bool) (did, woken bool) { return false, false }
func (*set) wake()                               {}
func (*set) rearm()                              {}

func yieldThread() {}
