package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/verbs"
)

// demoServer is the side of the demo that is connected to.
type demoServer struct {
	*demoEnd
	window *verbs.MW
	bound  verbs.TaggedBuffer // the slots, through the window
}

// serveDemo serves one client of the demo, and says through announce where it
// listens.
func serveDemo(ctx context.Context, f *cli.ConnFlags, announce func(address string) error) error {
	s, err := acceptDemo(ctx, f, announce)
	if err != nil {
		return err
	}
	return errors.Join(s.serve(ctx, s.steps()), s.Close(ctx))
}

// acceptDemo listens for one client, and connects to it.
func acceptDemo(ctx context.Context, f *cli.ConnFlags, announce func(address string) error) (*demoServer, error) {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{Rev: f.Config().Rev, Timeout: f.Config().Timeout})
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	defer l.Close()
	if err := announce(l.Addr().String()); err != nil {
		return nil, err
	}
	req, err := l.Accept(ctx)
	if err != nil {
		return nil, fmt.Errorf("waiting for the client: %w", err)
	}
	var plan demoPlan
	if err := json.Unmarshal(req.PrivateData(), &plan); err != nil {
		return nil, errors.Join(fmt.Errorf("the client's private data: %w", err), req.Reject([]byte("not a demo plan")))
	}
	s, err := openDemoServer(f)
	if err != nil {
		return nil, errors.Join(err, req.Reject([]byte("no resources")))
	}
	s.plan = plan
	if err := s.Accept(ctx, req, f.Config()); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func openDemoServer(f *cli.ConnFlags) (*demoServer, error) {
	d, err := openDemo(f, demoServerRole)
	if err != nil {
		return nil, err
	}
	window, err := d.PD.AllocateWindow()
	if err != nil {
		_ = d.Abort()
		return nil, fmt.Errorf("allocating a memory window: %w", err)
	}
	return &demoServer{demoEnd: d, window: window}, nil
}

// demoServerStep is the server's part in a step of the demo.
type demoServerStep func(context.Context) error

// steps are the server's parts in the client's steps, in the same order.
func (s *demoServer) steps() []demoServerStep {
	return []demoServerStep{
		func(ctx context.Context) error { return s.take(ctx, sendTransfer) },
		func(context.Context) error { return s.openWindow() },
		func(ctx context.Context) error { return s.take(ctx, writeTransfer) },
		func(ctx context.Context) error { return s.offer(ctx, readTransfer) },
		s.letInvalidate,
		s.refuse,
	}
}

func (s *demoServer) serve(ctx context.Context, steps []demoServerStep) error {
	ctx, cancel := s.WhileConnected(ctx)
	defer cancel()
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take verifies the messages of a Send or Write transfer.
func (s *demoServer) take(ctx context.Context, transfer int) error {
	for expected := s.plan.messages(transfer); expected.more(); {
		m := expected.next()
		wc, err := s.NextRecv(ctx)
		if err != nil {
			return err
		}
		data := s.received(wc)
		if transfer == writeTransfer {
			data = s.slot(m)
		}
		if err := s.verify(transfer, m, data); err != nil {
			return s.fail(ctx, err)
		}
		if err := s.postSlot(wc.ID); err != nil {
			return err
		}
		if err := s.sendCredit(); err != nil {
			return err
		}
	}
	return nil
}

// offer fills slots for the client to read, each again when it was read.
func (s *demoServer) offer(ctx context.Context, transfer int) error {
	_, _, err := s.deliver(ctx, transfer,
		func(message) error { return s.sendCredit() },
		func() int { return s.credits })
	return err
}

// sendNote sends a note, from memory of its own.
func (s *demoServer) sendNote(note []byte) error {
	buf, mr, err := s.Register(len(note), verbs.LocalRead)
	if err != nil {
		return err
	}
	copy(buf, note)
	return s.PostSend(verbs.Request{Flags: verbs.Unsignaled, SGL: mr.SGL(0, len(note))})
}

// fail sends the client the error, and waits for it to leave.
func (s *demoServer) fail(ctx context.Context, cause error) error {
	if err := s.sendNote(newDemoNote(nil, cause.Error())); err != nil {
		return errors.Join(cause, err)
	}
	return errors.Join(cause, s.UntilDisconnected(ctx))
}
