package fault

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// Relay joins two connections, with the faults of the plan between, until both directions have ended: what
// client sends is Out. It closes both, or resets both if that is how it ended. The error is that of a connection that is
// refused, which resets client, or nil.
func (in *Injector) Relay(client, server net.Conn) error {
	to, err := in.Conn(server)
	if err != nil {
		drop(client)
		_ = server.Close()
		return err
	}
	var both sync.WaitGroup
	both.Go(func() { pass(to, client) })
	both.Go(func() { pass(client, to) })
	both.Wait()
	_ = client.Close()
	_ = to.Close()
	return nil
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
			drop(dst)
			drop(src)
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

// drop closes c abruptly: TCP tells the peer with an RST.
func drop(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close()
}
