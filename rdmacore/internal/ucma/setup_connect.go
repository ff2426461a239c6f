//go:build linux && (amd64 || arm64)

package ucma

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
)

// connectSetup sends a Request; what comes of it is told by an event.
func connectSetup(c *call, q *uabi.Connect) error {
	private := q.ConnParam.PrivateData[:q.ConnParam.PrivateDataLen]
	switch {
	case q.ConnParam.Valid == 0:
		return refuse(syscall.EINVAL, "the parameters are not marked as valid")
	case len(private) > udwire.MaxRequestPrivate:
		return refuse(syscall.EINVAL, "%d octets of private data: a request for datagrams has at most %d", len(private), udwire.MaxRequestPrivate)
	}
	return c.with(q.ID, func(i *id) error {
		if err := i.in(routeResolved); err != nil {
			return err
		}
		i.port.tos = i.options.tos
		conn, err := i.port.socket(i.dst)
		i.port, i.state = nil, connecting
		if err != nil {
			return refuse(errnoOf(err), "%v: %v", i.dst, err)
		}
		i.dev.dev.OwnSocket(conn)
		var nonce [8]byte
		_, _ = rand.Read(nonce[:]) // never fails
		a := asking{conn: conn, limit: i.dev.limits, request: udwire.Setup{Transaction: binary.BigEndian.Uint64(nonce[:]), Private: private}}
		ctx, cancel := context.WithTimeout(context.Background(), i.dev.limits.Connect)
		i.cancel = cancel
		a.send() // here, so that Requests leave in the order of rdma_connect
		go func() {
			defer cancel()
			i.found(a.wait(ctx))
		}()
		return nil
	})
}

// asking is a Request whose Reply is not there.
type asking struct {
	conn    *net.UDPConn // connected to the listener
	limit   limits
	request udwire.Setup
	again   time.Time // when to send it once more
	refused time.Time // since when nobody listens; zero if it is not known
	pause   time.Duration
}

// send sends the Request. What is lost, also because the system says of one before that nobody took it, is sent again.
func (a *asking) send() {
	a.pause = max(a.limit.Setup, min(2*a.pause, a.limit.SetupMax))
	a.again = time.Now().Add(a.pause)
	if _, err := a.conn.Write(a.request.Append(nil)); errors.Is(err, syscall.ECONNREFUSED) {
		a.again = time.Now().Add(a.limit.Again)
	}
}

// wait is the Reply. It closes the socket. Errors: context.DeadlineExceeded, ECONNREFUSED of a host where nobody has
// listened for limit.Refused, another errno of a network that does not lead there.
func (a *asking) wait(ctx context.Context) (udwire.Setup, error) {
	defer a.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = a.conn.Close() })()
	buf := make([]byte, udwire.SetupSize+1)
	for {
		_ = a.conn.SetReadDeadline(a.again)
		n, err := a.conn.Read(buf)
		switch {
		case ctx.Err() != nil:
			return udwire.Setup{}, ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			a.send()
		case errors.Is(err, syscall.ECONNREFUSED):
			if a.refused.IsZero() {
				a.refused = time.Now()
			}
			if time.Since(a.refused) >= a.limit.Refused {
				return udwire.Setup{}, err
			}
			a.again, a.pause = time.Now().Add(a.limit.Again), 0
		case err != nil:
			return udwire.Setup{}, err
		default:
			if s, wrong := udwire.DecodeSetup(buf[:n]); wrong == nil && s.Reply && s.Transaction == a.request.Transaction {
				return s, nil
			}
		}
	}
}
