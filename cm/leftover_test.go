package cm_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/verbs"
)

// acceptor answers the Requests of a Listener, each with a queue pair of its own.
type acceptor struct {
	t   *testing.T
	nic *verbs.RNIC
	all sync.WaitGroup
}

// serve answers until the Listener is closed.
func (a *acceptor) serve(l *cm.Listener, answer func(*cm.Request)) {
	a.all.Go(func() {
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			a.all.Go(func() { answer(r) })
		}
	})
}

// accept serves a connection until its end.
func (a *acceptor) accept(r *cm.Request) {
	qp, err := a.nic.CreateEndpoint(verbs.QPConfig{SendDepth: 4, RecvDepth: 4})
	if !assert.NoError(a.t, err) {
		return
	}
	if c, err := r.Accept(context.Background(), qp, cm.Config{}); err == nil {
		<-c.Done()
	}
	assert.NoError(a.t, qp.Destroy())
}

// over accepts with a context that has ended: the Request stands, and is rejected.
func (a *acceptor) over(r *cm.Request) {
	qp, err := a.nic.CreateEndpoint(verbs.QPConfig{SendDepth: 4, RecvDepth: 4})
	if !assert.NoError(a.t, err) {
		return
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = r.Accept(over, qp, cm.Config{})
	assert.ErrorIs(a.t, err, context.Canceled)
	assert.NoError(a.t, qp.Destroy())
	_ = r.Reject(nil)
}

// Of connections that end while they are made, a Listener and an RNIC keep nothing.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	for name, refused := range map[string]bool{"accepted": false, "rejected": true, "the context has ended": true} {
		t.Run(name, func(t *testing.T) {
			nic := newHost(t, verbs.QPConfig{}).nic
			l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
			require.NoError(t, err)
			a := &acceptor{t: t, nic: nic}
			answer := map[string]func(*cm.Request){
				"accepted": a.accept, "rejected": func(r *cm.Request) { _ = r.Reject(nil) }, "the context has ended": a.over,
			}[name]
			a.serve(l, answer)
			s := droppedpeer.MPA(nil)
			s.Refused = refused
			droppedpeer.Leave(t, l.Addr().String(), s, droppedpeer.RNIC(nic), func() map[string]int {
				return map[string]int{"places": cm.Held(l)}
			})
			require.NoError(t, l.Close())
			a.all.Wait()
		})
	}
}

// A close that races Accept leaves no connection open, and no peer waiting.
func TestNothingStaysOfACloseAmidAccept(t *testing.T) {
	nic := newHost(t, verbs.QPConfig{}).nic
	a := &acceptor{t: t, nic: nic}
	request := droppedpeer.MPA(nil).Request
	var book *leakcheck.Ledger
	for i := range 31 {
		if i == 1 {
			book = leakcheck.Open(t, droppedpeer.RNIC(nic))
		}
		l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
		require.NoError(t, err)
		a.serve(l, a.accept)
		var peers sync.WaitGroup
		first := make(chan struct{}, 10)
		for range 10 {
			peers.Go(func() {
				defer func() { first <- struct{}{} }()
				nc, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					return // the Listener was faster
				}
				defer nc.Close()
				_, _ = nc.Write(request)
				_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
				if n, _ := nc.Read(make([]byte, 512)); n > 0 {
					return // accepted
				}
				_, err = io.Copy(io.Discard, nc)
				assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the peer is left waiting")
			})
		}
		<-first
		require.NoError(t, l.Close())
		peers.Wait()
		a.all.Wait()
	}
	book.Settle()
}
