package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// server holds the parameters.
type server struct {
	nic    *verbs.RNIC
	pd     *verbs.PD
	values *verbs.MR // workers read it whenever they like

	mu       sync.Mutex
	workers  map[int]*worker // guarded by mu, as is what is written to values
	left     int             // workers that have steps to do
	again    int             // pushes that came a second time
	finished context.CancelFunc
}

// worker is what the server knows of one.
type worker struct {
	step int      // the last that counts
	conn *cm.Conn // the newest
}

// serve ends when all workers have pushed all they have, and says whether the sum is right. It tells where it serves.
func serve(ctx context.Context, workers int, addrs []string, tell io.Writer) error {
	all, finished := context.WithCancel(ctx)
	defer finished()
	s := &server{workers: map[int]*worker{}, left: workers, finished: finished}
	var err error
	if s.nic, err = verbs.Open(verbs.Config{}); err != nil {
		return err
	}
	defer s.nic.Close()
	if s.pd, err = s.nic.AllocatePD(); err != nil {
		return err
	}
	if s.values, err = s.pd.Register(make([]byte, octets), verbs.LocalRead|verbs.RemoteRead); err != nil {
		return err
	}
	var accepting sync.WaitGroup
	for _, addr := range addrs {
		l, err := cm.Listen(addr, cm.ListenConfig{})
		if err != nil {
			return err
		}
		fmt.Fprintln(tell, "serving at", l.Addr())
		accepting.Go(func() {
			s.accept(all, l)
			stop, cancel := context.WithCancel(ctx)
			cancel()
			_ = l.Shutdown(stop) // connections that are left are aborted
		})
	}
	<-all.Done()
	accepting.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.check()
}

// accept serves the workers that come by one address.
func (s *server) accept(ctx context.Context, l *cm.Listener) {
	where, err := s.values.Remote(0).MarshalBinary()
	if err != nil {
		return
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			return
		}
		serving.Go(func() {
			if err := s.one(ctx, req, where); err != nil && ctx.Err() == nil {
				fmt.Println("a connection has ended:", err)
			}
		})
	}
}

// one serves a connection.
func (s *server) one(ctx context.Context, req *cm.Request, where []byte) error {
	cq, err := s.nic.CreateCQ(verbs.CQConfig{Entries: 16})
	if err != nil {
		return err
	}
	qp, err := s.nic.CreateQP(verbs.QPConfig{PD: s.pd, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		return errors.Join(err, cq.Destroy())
	}
	defer func() { // of what has been answered nothing is lost
		_ = qp.Destroy()
		_ = cq.Destroy()
	}()
	push, err := s.pd.Register(make([]byte, pushSize), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return err
	}
	defer func() { _ = push.Deregister() }()
	if _, err := qp.PostRecv(verbs.Recv{SGL: push.SGL(0, pushSize)}); err != nil {
		return err
	}
	conn, err := req.Accept(ctx, qp, cm.Config{PrivateData: where})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Abort() }()
	for {
		c, err := cq.WaitOne(ctx)
		if err != nil {
			return err
		}
		switch {
		case c.Err() != nil:
			return c.Err()
		case c.Op != verbs.OpRecv:
			continue
		case c.Bytes != pushSize:
			return fmt.Errorf("a push of %d octets, and not %d", c.Bytes, pushSize)
		}
		if err := s.add(push.Bytes(), conn); err != nil {
			return err
		}
		if _, err := qp.PostRecv(verbs.Recv{SGL: push.SGL(0, pushSize)}); err != nil {
			return err
		}
		if _, err := qp.PostSend(verbs.Request{}); err != nil {
			return err
		}
	}
}

// add counts a push, unless it has been counted: its answer was lost with the path.
func (s *server) add(push []byte, conn *cm.Conn) error {
	id, step, steps := int(binary.LittleEndian.Uint32(push)), int(binary.LittleEndian.Uint32(push[4:])), int(binary.LittleEndian.Uint32(push[8:]))
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.workers[id]
	if w == nil {
		w = &worker{}
		s.workers[id] = w
	}
	if w.conn != nil && w.conn != conn {
		_ = w.conn.Abort() // the worker has left it
	}
	w.conn = conn
	switch step {
	case w.step:
		s.again++
		return nil
	case w.step + 1:
	default:
		return fmt.Errorf("worker %d pushes step %d behind %d", id, step, w.step)
	}
	values := s.values.Bytes()
	for i := range parameters {
		setValue(values, i, value(values, i)+value(push[header:], i))
	}
	if w.step = step; step == steps {
		if s.left--; s.left == 0 {
			defer s.finished()
		}
	}
	return nil
}

// check compares each parameter with the sum of what all have pushed.
func (s *server) check() error {
	pushes := 0
	for i := range parameters {
		want := 0.0
		for id, w := range s.workers {
			want += float64(w.step) * share(id, i)
		}
		if got := value(s.values.Bytes(), i); got != want {
			return fmt.Errorf("parameter %d is %v, not %v", i, got, want)
		}
	}
	for _, w := range s.workers {
		pushes += w.step
	}
	fmt.Printf("all %d parameters are right after %d pushes of %d workers; %d pushes came twice\n", parameters, pushes, len(s.workers), s.again)
	return nil
}
