//go:build !linux

package endpoint

import (
	"io"
	"net"
)

// rawConn is not used on this system: all input and output goes through net.Conn, with
// payload copied.
type rawConn struct{}

func (r *rawConn) init(net.Conn) {}

func (r *rawConn) usable() bool { return false }

func (r *rawConn) read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func (r *rawConn) readDirect(*spans, int, []byte) (int, error) { return 0, io.ErrClosedPipe }

func (r *rawConn) write(*batch) error { return io.ErrClosedPipe }
