package cm_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
)

// shortListener fails each Accept with the next of errs, then waits for Close.
type shortListener struct {
	net.Listener
	errs []error
	done chan struct{}
}

func (l *shortListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: err}
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *shortListener) Close() error { close(l.done); return nil }

func (l *shortListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestListenerSurvivesErrorsThatPass(t *testing.T) {
	told := make(chan error, 3)
	nl := &shortListener{errs: []error{syscall.EMFILE, syscall.EPROTO}, done: make(chan struct{})}
	l := cm.NewListener(nl, cm.ListenConfig{OnStartupError: func(_ net.Addr, err error) { told <- err }})
	require.ErrorIs(t, <-told, syscall.EMFILE)
	require.ErrorIs(t, <-told, syscall.EPROTO)
	require.NoError(t, l.Close())
	_, err := l.Accept(context.Background())
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestListenerEndsWithItsNetListener(t *testing.T) {
	broken := errors.New("broken")
	nl := &shortListener{errs: []error{broken}, done: make(chan struct{})}
	l := cm.NewListener(nl, cm.ListenConfig{})
	_, err := l.Accept(context.Background())
	require.ErrorIs(t, err, broken)
	require.NoError(t, l.Close())
}
