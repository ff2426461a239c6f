package relay

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// once is a listener that fails behind its first connection.
type once struct {
	net.Listener
	taken bool
}

var errNoMore = errors.New("no more")

func (o *once) Accept() (net.Conn, error) {
	if o.taken {
		return nil, errNoMore
	}
	o.taken = true
	return o.Listener.Accept()
}

// TestListenerFails: a proxy that can take nobody any more ends what it carries, and itself.
func TestListenerFails(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	target, front := listen(), listen()
	s := New(target.Addr().String(), Config{})
	c, err := net.Dial("tcp", front.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.ErrorIs(t, s.Serve(t.Context(), &once{Listener: front}), errNoMore)
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
}

// TestLogIsLimited: of connections that come to nothing, ten lines a second are logged.
func TestLogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := New("127.0.0.1:1", Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		for range 12 {
			s.failed(&net.TCPAddr{}, errNoMore)
		}
		time.Sleep(time.Second)
		s.failed(nil, errNoMore)
		assert.Equal(t, 10, strings.Count(out.String(), `msg="proxy: a connection came to nothing" remote=:0 error="no more"`))
		assert.Contains(t, out.String(), `msg="proxy: accepting a connection failed" error="no more" left_out=2`)
	})
}

// serve accepts what comes to a Listener.
func serve(t *testing.T, nic *verbs.RNIC, l *cm.Listener, all *sync.WaitGroup) {
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		all.Go(func() {
			qp, err := nic.CreateEndpoint(verbs.QPConfig{SendDepth: 4, RecvDepth: 4})
			if !assert.NoError(t, err) {
				return
			}
			if c, err := r.Accept(context.Background(), qp, cm.Config{}); err == nil {
				<-c.Done()
			}
			assert.NoError(t, qp.Destroy())
		})
	}
}

// Of connections that end while they are made, a proxy keeps nothing, and its target neither.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() { serve(t, nic, l, &all) })
	// The target is reached first: its goroutines, which are counted too, run by then.
	for _, target := range []string{l.Addr().String(), "127.0.0.1:1"} {
		accepts := target == l.Addr().String()
		t.Run(map[bool]string{true: "accepted", false: "nobody listens"}[accepts], func(t *testing.T) {
			front, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			p := New(target, Config{})
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- p.Serve(ctx, front) }()
			s := droppedpeer.MPA(nil)
			s.Refused = !accepts
			droppedpeer.Leave(t, front.Addr().String(), s, droppedpeer.RNIC(nic), func() map[string]int {
				return map[string]int{"places": p.Carried()}
			})
			stop()
			require.NoError(t, <-ended)
		})
	}
	require.NoError(t, l.Close())
	all.Wait()
}
