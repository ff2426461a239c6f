package port

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/vitcp"
)

// member is the session at the process that accepts. All but c is guarded by shared.mu.
type member struct {
	c       *ownsock.Conn
	leaving map[uint32]struct{} // Waits that are over here, and not yet answered there
	out     []outgoing          // to be written: as many as there are Waits, and twice that at most
	wake    chan struct{}       // of one place: there is something
}

// outgoing is a message that waits to be written.
type outgoing struct {
	kind byte
	body []byte
}

func (m *member) push(kind byte, body []byte) {
	m.out = append(m.out, outgoing{kind, body})
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *member) wait(id uint32, f *vitcp.Filter) {
	m.push(msgWait, appendFilter(binary.BigEndian.AppendUint32(nil, id), f))
}

func (m *member) leave(id uint32) {
	m.leaving[id] = struct{}{}
	m.push(msgLeave, binary.BigEndian.AppendUint32(nil, id))
}

// left reports whether the answer to a leave has not come yet.
func (m *member) left(id uint32) bool {
	_, ok := m.leaving[id]
	return ok
}

// attend has the Waits of this process at the one that accepts, until that one has ended, or the port is closed here.
func (s *shared) attend(c *ownsock.Conn) {
	m := &member{c: c, leaving: make(map[uint32]struct{}), wake: make(chan struct{}, 1)}
	s.mu.Lock()
	s.member = m
	s.setTimeout()
	for id, w := range s.waits {
		m.wait(id, &w.filter)
	}
	s.mu.Unlock()

	ctx, cancel := context.WithCancel(s.life)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	var wg sync.WaitGroup
	wg.Go(func() { s.write(ctx, m) })
	for {
		msg, err := c.Read(0)
		if err == nil {
			err = s.take(m, &msg)
			msg.Discard()
		}
		if err != nil {
			if errors.Is(err, errMessage) || ownsock.Malformed(err) || errors.Is(err, ownsock.ErrNoDescriptors) {
				s.tell(fmt.Errorf("vitcp: the process that has the port: %w", err))
			}
			break
		}
	}
	cancel()
	wg.Wait()
	stop()
	_ = c.Close()
	s.mu.Lock()
	s.member = nil
	s.mu.Unlock()
}

// write writes what there is, until ctx ends.
func (s *shared) write(ctx context.Context, m *member) {
	for {
		select {
		case <-m.wake:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		out := m.out
		m.out = nil
		s.mu.Unlock()
		for _, o := range out {
			if m.c.Write(o.kind, o.body, nil) != nil {
				return // Read ends too
			}
		}
	}
}

// take does what a message says.
func (s *shared) take(m *member, msg *ownsock.Message) error {
	id, rest, err := parseNumber(msg.Body)
	switch {
	case err != nil:
		return err
	case msg.Type == msgLeft && len(rest) == 0 && msg.File == nil:
		return s.isLeft(m, id)
	case msg.Type == msgRequest && msg.File != nil:
		return s.request(m, id, rest, msg)
	}
	return malformed("a message of no type")
}

// isLeft has the number be free.
func (s *shared) isLeft(m *member, id uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.left(id) {
		return malformed("an answer to no leave")
	}
	delete(m.leaving, id)
	return nil
}

// request has a connection for a Wait of this process, or for one that is over: then another one may want it. After an
// error the session ends, and the Wait is for the next one.
func (s *shared) request(m *member, id uint32, octets []byte, msg *ownsock.Message) (err error) {
	s.mu.Lock()
	w := s.waits[id]
	asked := w != nil || m.left(id)
	delete(s.waits, id)
	delete(m.leaving, id)
	s.mu.Unlock()
	if !asked {
		return malformed("a connection that nobody waits for")
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && w != nil && !w.over {
			s.waits[id] = w
		}
	}()
	nc, err := net.FileConn(msg.File)
	if err != nil {
		return fmt.Errorf("%w: %w", errMessage, tcpsock.Lack(err))
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		_ = nc.Close()
		return malformed("a connection that is not of TCP")
	}
	var to *vitcp.Waiter
	if w != nil {
		to = w.waiter
	}
	if err := s.l.Offer(tcp, octets, to); err != nil && s.life.Err() == nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	return nil
}
