//go:build !linux

package qp

import (
	"net"

	"github.com/softrnic/softrnic/internal/netpoll"
)

// rawIO is not used on this system: all I/O goes through net.Conn.
type rawIO struct{}

func (l *llp) init(c net.Conn) error {
	l.conn = c
	return nil
}

func (l *llp) join(*netpoll.Group, netpoll.Member) (*netpoll.Socket, error) { return nil, nil }

func (l *llp) handToRuntime() {}

func (r *rawIO) tryPoll(*intake) (int, outcome) { return 0, ioLost }

func (r *rawIO) look([]byte) (int, outcome) { return 0, ioAgain }

func (r *rawIO) write(*batch, bool) (int, outcome) { return 0, ioLost }
