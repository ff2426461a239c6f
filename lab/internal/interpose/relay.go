package interpose

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// Relay joins two connections until both directions have ended, and closes both, or resets both if that is how it
// ended.
func Relay(a, b net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { pass(b, a) })
	both.Go(func() { pass(a, b) })
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}

// pass copies one direction, and passes on how it ends. If dst takes nothing any more, that direction's own end
// is what src will see: what it sends meanwhile is dropped.
func pass(dst, src net.Conn) {
	b := make([]byte, 64<<10)
	var lost error
	for {
		n, err := src.Read(b)
		if lost == nil && n > 0 {
			_, lost = dst.Write(b[:n])
		}
		half, ok := dst.(interface{ CloseWrite() error })
		switch {
		case errors.Is(err, syscall.ECONNRESET) || errors.Is(lost, syscall.ECONNRESET):
			Drop(dst)
			Drop(src)
			return
		case err == nil:
			continue
		case ok && errors.Is(err, io.EOF):
			_ = half.CloseWrite()
		default:
			_ = dst.Close()
		}
		return
	}
}

// Drop closes c abruptly: TCP sends the peer an RST.
func Drop(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close()
}
