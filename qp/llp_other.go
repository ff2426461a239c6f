//go:build !linux

package qp

import (
	"net"
	"sync"
)

// rawIO is not used on this system: all I/O goes through net.Conn.
type rawIO struct{}

func (r *rawIO) init(net.Conn, int) {}

func (r *rawIO) usable() bool { return false }

func (r *rawIO) tryPoll(*intake) (int, outcome) { return 0, ioLost }

func (r *rawIO) look([]byte) (int, outcome) { return 0, ioAgain }

func (r *rawIO) setLowWater(bool) {}

func (r *rawIO) read(*intake, *llp, *sync.Mutex, int) (int, outcome) { return 0, ioLost }

func (r *rawIO) write(*batch, bool) (int, outcome) { return 0, ioLost }

func yieldThread() {}

func (*rawIO) sleep(*intake, *sync.Mutex) (int, outcome, bool) { return 0, ioBusy, false }
