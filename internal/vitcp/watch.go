package vitcp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/softrnic/softrnic/internal/tcpsock"
)

// watch notices that a peer which waits for an answer closes its connection, or
// sends something, which it may not. Without it a server would accept the
// requests of clients that have given up (VI Architecture 4.1: no stale
// connections). It has a goroutine until over is called or the peer stirs.
type watch struct {
	nc    net.Conn
	begun bool
	done  chan struct{} // closed when err is set
	err   error         // what the peer did
}

// newWatch watches nc, from which nobody else reads until over returns.
func newWatch(nc net.Conn) *watch {
	w := &watch{nc: nc, done: make(chan struct{})}
	if nc.SetReadDeadline(time.Time{}) == nil { // else its read could not be ended
		w.begun = true
		go w.run()
	}
	return w
}

func (w *watch) run() {
	defer close(w.done)
	var b [1]byte
	n, err := w.nc.Read(b[:])
	switch {
	case n > 0:
		w.err = fmt.Errorf("%w: octets before the answer", ErrUnexpected)
	case !errors.Is(err, os.ErrDeadlineExceeded):
		w.err = err
	}
}

// over ends the watch and returns what the peer did, if anything. The connection
// can be read then.
func (w *watch) over() error {
	if !w.begun {
		return nil
	}
	_ = w.nc.SetReadDeadline(tcpsock.Past) // fails if nc has been closed, which ends the read too
	<-w.done
	_ = w.nc.SetReadDeadline(time.Time{})
	return w.err
}
