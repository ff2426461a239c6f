package uppertester

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// config is a for cm. Cases count every FPDU, and their raw peer may be held up: it is
// not to be nudged.
func (a *ConnectArgs) config() cm.Config {
	model := cm.ClientServer
	if a.P2P {
		model = cm.PeerToPeer
	}
	return cm.Config{
		PrivateData: a.PrivateData, NoCRC: a.NoCRC, Markers: a.Markers, Rev: a.Rev,
		Model: model, RTR: cm.RTR(a.RTR), IRD: a.IRD, ORD: a.ORD, Timeout: a.Timeout,
		NoNudge: true,
	}
}

// Listen takes one connection for a queue pair.
func (s *Service) Listen(a ConnectArgs, r *Listening) error {
	e, err := s.end(a.QP)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(s.host, "0"))
	if err != nil {
		return fmt.Errorf("uppertester: %w", err)
	}
	r.Addr = l.Addr().String()
	s.wg.Go(func() {
		defer context.AfterFunc(s.ctx, func() { _ = l.Close() })()
		nc, err := l.Accept()
		_ = l.Close()
		if err != nil {
			e.conn <- Connection{Failed: err.Error()}
			return
		}
		e.conn <- s.accept(nc, e.qp, a)
	})
	return nil
}

// accept is the Responder's part of the startup.
func (s *Service) accept(nc net.Conn, qp *verbs.QP, a ConnectArgs) Connection {
	cfg := a.config()
	req, err := cm.Await(s.ctx, nc, cfg)
	if err != nil {
		return Connection{Failed: err.Error()}
	}
	c := Connection{PrivateData: req.PrivateData(), PeerIRD: req.PeerIRD(), PeerORD: req.PeerORD(), P2P: req.P2P()}
	if a.Reject {
		c.Rejected = true
		if err := req.Reject(a.PrivateData); err != nil {
			c.Failed = err.Error()
		}
		return c
	}
	conn, err := req.Accept(s.ctx, qp, cfg)
	if err != nil {
		_ = nc.Close() // the request may stand
		c.Failed = err.Error()
		return c
	}
	c.describe(conn)
	return c
}

// Dial connects a queue pair.
func (s *Service) Dial(a ConnectArgs, _ *None) error {
	e, err := s.end(a.QP)
	if err != nil {
		return err
	}
	s.wg.Go(func() { e.conn <- s.dial(e.qp, a) })
	return nil
}

func (s *Service) dial(qp *verbs.QP, a ConnectArgs) Connection {
	conn, err := cm.Dial(s.ctx, a.Addr, qp, a.config())
	c := Connection{PeerIRD: -1, PeerORD: -1}
	var rejected *cm.RejectedError
	switch {
	case errors.As(err, &rejected):
		c.Failed, c.Rejected = err.Error(), true
		c.PrivateData, c.PeerIRD, c.PeerORD = rejected.PrivateData, rejected.PeerIRD, rejected.PeerORD
	case err != nil:
		c.Failed = err.Error()
	default:
		c.PrivateData = conn.PrivateData()
		c.describe(conn)
	}
	return c
}

func (c *Connection) describe(conn *cm.Conn) {
	c.CRC, c.Rev, c.P2P = conn.CRC(), conn.Rev(), conn.P2P()
	c.MarkersOut, c.MarkersIn = conn.Markers()
	c.IRD, c.ORD = conn.IRD(), conn.ORD()
	c.PeerIRD, c.PeerORD = conn.PeerIRD(), conn.PeerORD()
}

// Connected waits for what Listen or Dial began.
func (s *Service) Connected(w Wait, r *Connection) error {
	e, err := s.end(w.Of)
	if err != nil {
		return err
	}
	ctx, cancel := s.bounded(w.Timeout)
	defer cancel()
	select {
	case *r = <-e.conn:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("uppertester: not connected within %v: %w", w.Timeout, ctx.Err())
	}
}

// Ended waits until a queue pair's stream is gone.
func (s *Service) Ended(w Wait, r *QPState) error {
	e, err := s.end(w.Of)
	if err != nil {
		return err
	}
	ctx, cancel := s.bounded(w.Timeout)
	defer cancel()
	select {
	case <-e.qp.Done():
		return s.Query(w.Of, r)
	case <-ctx.Done():
		return fmt.Errorf("uppertester: the stream did not end within %v: %w", w.Timeout, ctx.Err())
	}
}
