package relay

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/brokenconn"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/lab/fault"
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
	in, err := fault.New(&fault.Plan{}, nil)
	require.NoError(t, err)
	s := New(target.Addr().String(), in)
	c, err := net.Dial("tcp", front.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.ErrorIs(t, s.Serve(t.Context(), &once{Listener: front}), errNoMore)
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
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
	in, err := fault.New(&fault.Plan{}, nil)
	require.NoError(t, err)
	for name, target := range map[string]string{"accepted": l.Addr().String(), "nobody listens": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			front, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			p := New(target, in)
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- p.Serve(ctx, front) }()
			s := brokenconn.MPA(nil)
			s.Refused = name != "accepted"
			brokenconn.Leave(t, front.Addr().String(), s, brokenconn.RNIC(nic), func() map[string]int {
				return map[string]int{"places": p.Carried()}
			})
			stop()
			require.NoError(t, <-ended)
		})
	}
	require.NoError(t, l.Close())
	all.Wait()
}
