package rsocket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Config is how connections are made. The zero value works; each field's stands for what is said.
type Config struct {
	// NIC is the RNIC to use: one that all connections of the process share, and that is never closed. Of another, close its connections before it.
	NIC *verbs.RNIC
	// RecvBuffer is the ring that the peer writes into, in octets: 256 KiB. It is rounded up to a multiple of 8 KiB.
	RecvBuffer int
	// SendBuffer is where small writes wait until TCP has taken them, in octets: 64 KiB; at least 8 KiB. Large writes wait in the caller's memory.
	SendBuffer int
	// Mapped is how many buffers the peer may map for this side's WriteAt: none; to 128, or a multiple of 256 to 32512.
	Mapped int
	// CRC asks for CRC32C in every FPDU. Without it there is none if the peer agrees: TCP's checksum is what a net.Conn has.
	CRC bool
	// Immediate speaks the protocol as over InfiniBand: for peers under `rnic run --as roce`. Both sides have to.
	Immediate bool
	// Timeout bounds the MPA startup behind TCP's connect: 10 s.
	Timeout time.Duration
	// CloseTimeout is how long Close waits for TCP to take what was written, and Write beyond its deadline for what TCP has half: 5 s.
	CloseTimeout time.Duration
	// Logger, if set, gets a warning for each connection that a Listener could not set up, ten a second at most.
	Logger *slog.Logger
}

const (
	defaultRecvBuffer = 256 << 10
	defaultSendBuffer = 64 << 10
	maxBuffer         = 1 << 28
	// messages is how many receives are posted for messages that count: what rsockets have by default.
	messages = 384
	// margin is for messages that do not count, which rsockets send on top, and for receives that are not posted again yet.
	margin = 32
)

func (c Config) withDefaults() (Config, error) {
	for _, n := range []int{c.RecvBuffer, c.SendBuffer} {
		if n < 0 || n > maxBuffer {
			return c, fmt.Errorf("rsocket: a buffer of %d octets: it is 0 for the default, or up to %d", n, maxBuffer)
		}
	}
	if c.Mapped < 0 || unscaled(scaled(c.Mapped)) != c.Mapped {
		return c, fmt.Errorf("rsocket: %d mapped buffers: it is 0 to 128, or a multiple of 256 to 32512", c.Mapped)
	}
	c.RecvBuffer = cmp.Or(c.RecvBuffer, defaultRecvBuffer)
	c.SendBuffer = cmp.Or(c.SendBuffer, defaultSendBuffer)
	const unit = 8 << 10
	c.RecvBuffer = (c.RecvBuffer + unit - 1) / unit * unit
	c.SendBuffer = max(c.SendBuffer, unit)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, 5*time.Second)
	if c.NIC == nil {
		nic, err := shared()
		if err != nil {
			return c, err
		}
		c.NIC = nic
	}
	return c, nil
}

// shared is the RNIC of all who bring none.
var shared = sync.OnceValues(func() (*verbs.RNIC, error) { return verbs.Open(verbs.Config{}) })

func (c Config) connection(private []byte) cm.Config {
	return cm.Config{PrivateData: private, NoCRC: !c.CRC, Timeout: c.Timeout, CloseTimeout: c.CloseTimeout}
}

// Dial connects with the zero Config.
func Dial(network, address string) (*Conn, error) {
	return Config{}.dial(context.Background(), network, address)
}

// DialContext connects. The network is "tcp", "tcp4" or "tcp6"; a Conn comes back. It is as the field DialContext of http.Transport wants it. Errors:
// those of net.Dialer and cm.Connect, and ErrProtocol for a peer that is not one of rsockets, in a *net.OpError.
func (c Config) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (c Config) dial(ctx context.Context, network, address string) (*Conn, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := isTCP(network); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s, err := newConn(c)
	if err != nil {
		_ = nc.Close()
		return nil, opError("dial", nc, err)
	}
	conn, err := cm.Connect(ctx, nc, s.qp, c.connection(append(s.hello().append(nil), endOfLine...)))
	if err != nil {
		_ = nc.Close() // open after a refusal
		s.release()
		return nil, opError("dial", nc, err)
	}
	if err := s.begin(conn, conn.PrivateData()); err != nil {
		_ = conn.Abort()
		s.release()
		return nil, opError("dial", nc, err)
	}
	return s, nil
}

func isTCP(network string) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
		return nil
	}
	return net.UnknownNetworkError(network)
}

type addressed interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// unconnected is a ConnectError in an OpError, which says whom.
type unconnected struct{ err *cm.ConnectError }

func (e unconnected) Error() string { return e.err.Sentence() }
func (e unconnected) Unwrap() error { return e.err }

func opError(op string, c addressed, err error) error {
	if failed := (*cm.ConnectError)(nil); errors.As(err, &failed) {
		err = unconnected{failed}
	}
	return &net.OpError{Op: op, Net: "rsocket", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
