//go:build !linux

package endpoint

import "io"

// Package netpoll serves no socket on this system: goroutines do all input and output through net.Conn,
// with payload copied.

func (e *Endpoint) join() error { return nil }

func (e *Endpoint) handToRuntime() {}

type rawConn struct{ waits bool }

func (r *rawConn) usable() bool { return false }

func (r *rawConn) read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func (r *rawConn) readDirect(*spans, int, []byte) (int, error) { return 0, io.ErrClosedPipe }

func (r *rawConn) write(*batch) error { return io.ErrClosedPipe }
