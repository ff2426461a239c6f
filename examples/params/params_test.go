package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// relay is a path to addr that may be lost: then it carries nothing more, and neither end hears of that.
type relay struct {
	net.Listener
	mu    sync.Mutex
	stood sync.Cond
	stuck bool
}

func newRelay(t *testing.T, addr string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{Listener: l}
	r.stood.L = &r.mu
	var carriers sync.WaitGroup
	var conns []net.Conn
	carriers.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				_ = in.Close()
				continue
			}
			r.mu.Lock()
			conns = append(conns, in, out)
			r.mu.Unlock()
			carriers.Go(func() { r.carry(in, out) })
			carriers.Go(func() { r.carry(out, in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.set(false)
		r.mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		r.mu.Unlock()
		carriers.Wait()
	})
	return r
}

func (r *relay) carry(from, to net.Conn) {
	defer to.Close()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		r.mu.Lock()
		for r.stuck {
			r.stood.Wait()
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (r *relay) set(stuck bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stuck = stuck
	r.stood.Broadcast()
}

// TestPathLost: a path that stands still in the middle of the work costs no push and doubles none.
func TestPathLost(t *testing.T) {
	const workers, steps = 3, 400
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	where, tells := io.Pipe()
	all.Go(func() error {
		err := serve(ctx, workers, []string{"127.0.0.1:0"}, tells)
		return errors.Join(err, tells.CloseWithError(err))
	})
	var addr string
	_, err := fmt.Fscanf(where, "serving at %s\n", &addr)
	require.NoError(t, err)
	lossy := newRelay(t, addr)
	for id := range workers {
		all.Go(func() error {
			said, tell := io.Pipe()
			go func() {
				b := make([]byte, 4096)
				for {
					n, err := said.Read(b)
					if err != nil {
						return
					}
					if id == 0 && strings.Contains(string(b[:n]), "by "+lossy.Addr().String()) {
						lossy.set(true) // somewhere in the steps that follow
					}
				}
			}()
			defer tell.Close()
			return work(ctx, id, steps, []string{lossy.Addr().String(), addr}, tell)
		})
	}
	require.NoError(t, all.Wait())
}

// TestTwice: a push that comes again is not counted again, and one that skips a step is refused.
func TestTwice(t *testing.T) {
	push := make([]byte, pushSize)
	push[4] = 2
	s := &server{workers: map[int]*worker{0: {step: 2}}}
	require.NoError(t, s.add(push, nil))
	assert.Equal(t, 1, s.again)
	push[4] = 4
	assert.ErrorContains(t, s.add(push, nil), "worker 0 pushes step 4 behind 2")
}

func TestUsage(t *testing.T) {
	for _, args := range []string{"", "serve", "serve 0 a", "work 1 a", "work 1 0 a"} {
		assert.ErrorContains(t, run(t.Context(), strings.Fields(args)), "usage")
	}
}
