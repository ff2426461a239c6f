package conformance

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/softrnic/softrnic/conformance/uppertester"
)

// noStream begins the Detail of a case that was barred.
const noStream = "no stream to the target begins: "

// barredTarget is a target to which no stream begins, for one case. What needs none works.
type barredTarget struct {
	Target
	why   string
	asked atomic.Bool // the case wanted a stream
}

// Stream fails. A role that the target has not is told first: such a case is skipped.
func (b *barredTarget) Stream(ctx context.Context, play Role) (net.Conn, error) {
	if b.Lacks(NeedUpper) != "" && play != Either && play != b.Role() {
		return b.Target.Stream(ctx, play)
	}
	return nil, b.refuse()
}

// Upper begins a session, of which nothing connects.
func (b *barredTarget) Upper(ctx context.Context) (uppertester.Tester, error) {
	u, err := b.Target.Upper(ctx)
	if err != nil {
		return nil, err
	}
	return &barredTester{u, b}, nil
}

func (b *barredTarget) refuse() error {
	b.asked.Store(true)
	return errors.New(noStream + b.why)
}

type barredTester struct {
	uppertester.Tester
	bar *barredTarget
}

// Listen fails.
func (u *barredTester) Listen(uppertester.ConnectArgs, *uppertester.Listening) error {
	return u.bar.refuse()
}

// Dial fails.
func (u *barredTester) Dial(uppertester.ConnectArgs, *uppertester.None) error {
	return u.bar.refuse()
}

// Ping fails.
func (u *barredTester) Ping(uppertester.ConnectArgs, *uppertester.Listening) error {
	return u.bar.refuse()
}
