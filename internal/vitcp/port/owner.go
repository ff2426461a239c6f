package port

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/admission"
	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/internal/vitcp"
)

// Bounds of what other processes may cost the one that accepts.
const (
	// maxSessions is how many have a session.
	maxSessions = 64
	// maxKnocks is how many connections may be there that have not said hello. One more drives out the oldest.
	maxKnocks = 64
)

// own accepts at the port until it is closed here, and lets other processes in.
func (s *shared) own(p place) {
	o := &owner{s: s, nl: p.nl, sessions: make(map[*session]struct{})}
	o.ctx, o.cancel = context.WithCancel(s.life)
	s.mu.Lock()
	s.member, s.owner = nil, o
	s.setTimeout()
	s.mu.Unlock()
	o.open(p)
	_ = s.l.Serve(p.nl) // nobody else closes it
	select {
	case <-s.life.Done():
	case <-s.l.Context().Done(): // accept has failed for good: others may fare better
		s.tell(context.Cause(s.l.Context()))
	}
	_ = s.l.Close() // first: the next one is to accept, and not both
	o.close(p.path)
	<-s.life.Done()
}

// owner lets other processes in.
type owner struct {
	s      *shared // constant, as all up to in
	nl     *net.TCPListener
	ctx    context.Context // ends when the port is closed here
	cancel context.CancelFunc
	in     *admission.Listener // nil if the port is not shared
	made   os.FileInfo         // of its socket

	mu       sync.Mutex
	sessions map[*session]struct{} // guarded by mu
	wg       sync.WaitGroup        // of sessions; added to with mu
}

// open begins.
func (o *owner) open(p place) {
	if p.door == nil {
		return
	}
	o.made, _ = os.Lstat(p.path)
	o.in = admission.New(p.door, admission.Config{
		MaxStartups: maxKnocks, Backlog: maxSessions, Serve: o.admit,
		Failed: func(remote net.Addr, err error) {
			if remote == nil {
				o.s.tell(err)
			}
		},
	})
}

// close ends all sessions. The file stays if there are any: it tells those who come now that one of them will take
// the port.
func (o *owner) close(path string) {
	if o.in == nil {
		o.cancel()
		return
	}
	_ = o.in.Close()
	o.mu.Lock()
	o.cancel()
	alone := len(o.sessions) == 0
	o.mu.Unlock()
	o.wg.Wait()
	if !alone || o.made == nil {
		return
	}
	if unlock, err := ownsock.Lock(context.Background(), o.s.ports.patience); err == nil { // else it is left behind, which the next one minds
		_ = ownsock.RemoveIf(path, o.made)
		unlock()
	}
}

// timeout is the longest match timeout of a session.
func (o *owner) timeout() (most time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for v := range o.sessions {
		most = max(most, v.within)
	}
	return most
}

// timeouts has those of all sessions count.
func (o *owner) timeouts() {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.setTimeout()
}

// admit reads the hello of a process, and begins a session.
func (o *owner) admit(k *admission.Startup) error {
	defer k.Leave()
	c, err := ownsock.NewConn(k.Conn.(*net.UnixConn), o.s.ports.patience)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(k.Context(), func() { _ = c.Close() }) // it has to go for another
	m, err := c.Read(o.s.ports.patience)
	m.Discard()
	var within time.Duration
	switch {
	case err != nil:
	case m.Type != msgHello || m.File != nil:
		err = malformed("no hello")
	default:
		within, err = parseHello(m.Body)
	}
	if !stop() || err != nil {
		_ = c.Close()
		return fmt.Errorf("vitcp: a process at the port: %w", err)
	}
	v := &session{o: o, c: c, within: within, waits: make(map[uint32]context.CancelFunc)}
	if !o.begin(v) {
		_ = c.Write(msgRefusal, fmt.Appendf(nil, "%d processes share it already: end one of them", maxSessions), nil)
		_ = c.Close()
	}
	return nil
}

// begin runs a session, if there is room for one more.
func (o *owner) begin(v *session) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil || len(o.sessions) >= maxSessions {
		return false
	}
	o.sessions[v] = struct{}{}
	o.wg.Go(v.run)
	return true
}

// session is another process that shares the port.
type session struct {
	o      *owner
	c      *ownsock.Conn
	within time.Duration // its match timeout; guarded by o.mu

	mu    sync.Mutex
	waits map[uint32]context.CancelFunc // guarded by mu
	wg    sync.WaitGroup                // of them
}

// run is a session from the welcome to its end: for whatever reason, it costs the other process nothing but that.
func (v *session) run() {
	ctx, cancel := context.WithCancel(v.o.ctx)
	defer context.AfterFunc(ctx, func() { _ = v.c.Close() })()
	v.o.timeouts()
	err := v.c.Write(msgWelcome, nil, v.o.nl)
	for err == nil {
		var m ownsock.Message
		if m, err = v.c.Read(0); err == nil {
			err = v.take(ctx, &m)
			m.Discard()
		}
	}
	cancel()
	_ = v.c.Close()
	v.wg.Wait()
	v.o.mu.Lock()
	delete(v.o.sessions, v)
	v.o.mu.Unlock()
	v.o.timeouts()
}

// take does what a message says.
func (v *session) take(ctx context.Context, m *ownsock.Message) error {
	if m.File != nil {
		return malformed("a descriptor")
	}
	if m.Type == msgHello {
		return v.hello(m.Body)
	}
	id, rest, err := parseNumber(m.Body)
	switch {
	case err != nil:
		return err
	case m.Type == msgWait:
		return v.wait(ctx, id, rest)
	case m.Type == msgLeave && len(rest) == 0:
		v.mu.Lock()
		defer v.mu.Unlock()
		if cancel := v.waits[id]; cancel != nil { // else its answer is on its way
			cancel()
		}
		return nil
	}
	return malformed("a message of no type")
}

// hello changes the match timeout.
func (v *session) hello(b []byte) error {
	within, err := parseHello(b)
	if err != nil {
		return err
	}
	v.o.mu.Lock()
	v.within = within
	v.o.mu.Unlock()
	v.o.timeouts()
	return nil
}

// wait begins a Wait for the other process.
func (v *session) wait(ctx context.Context, id uint32, filter []byte) error {
	f, err := parseFilter(filter)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waits[id] != nil || len(v.waits) >= maxWaits {
		return malformed("a wait too many")
	}
	w, err := v.o.s.l.Begin(f)
	if err != nil {
		return err
	}
	ctx, v.waits[id] = context.WithCancel(ctx)
	v.wg.Go(func() { v.answer(ctx, id, f, w) })
	return nil
}

// answer passes the connection on that a Wait has found.
func (v *session) answer(ctx context.Context, id uint32, f vitcp.Filter, w *vitcp.Waiter) {
	defer v.done(id)
	number := binary.BigEndian.AppendUint32(nil, id)
	for {
		r, err := w.Wait(ctx)
		if err != nil {
			if ctx.Err() != nil {
				v.done(id)
				_ = v.c.Write(msgLeft, number, nil)
			}
			return
		}
		nc, request, err := r.Release()
		if err == nil {
			v.done(id)
			v.pass(nc, append(number, request...))
			return
		}
		if w, err = v.o.s.l.Begin(f); err != nil { // that peer has gone: there will be others
			return
		}
	}
}

// done forgets a Wait: its number may come again.
func (v *session) done(id uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if cancel := v.waits[id]; cancel != nil {
		cancel()
		delete(v.waits, id)
	}
}

// pass sends a connection to the other process. If that has ended meanwhile the connection ends, upon which its
// active end tries again (figure 4.2).
func (v *session) pass(nc net.Conn, m []byte) {
	tcp, ok := nc.(*net.TCPConn)
	if ok {
		_ = v.c.Write(msgRequest, m, tcp)
	}
	_ = nc.Close()
}
