// Package greet is a project to try examples/ci/go.yml with: it greets its peer over RDMA.
package greet

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// Greet sends the peer of the queue pair a greeting for the name, and returns when it is sent. The peer needs a receive of
// 7 octets and the name's.
func Greet(ctx context.Context, qp *verbs.QP, name string) error {
	mr, err := qp.PD().Register([]byte("hello, "+name), verbs.LocalRead)
	if err != nil {
		return fmt.Errorf("greeting %s: %w", name, err)
	}
	if _, err = qp.PostSend(verbs.Request{SGL: mr.All()}); err == nil {
		_, err = qp.SendCQ().WaitOne(ctx)
	}
	if err = errors.Join(err, mr.Deregister()); err != nil {
		return fmt.Errorf("greeting %s: %w", name, err)
	}
	return nil
}
