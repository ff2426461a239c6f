package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/cases"
)

// fakeGuest has softrnic's stand-in for rping in place of siw's guest.
type fakeGuest struct {
	t       *testing.T
	l       net.Listener // of the server
	wg      sync.WaitGroup
	clients sync.WaitGroup
	cancel  context.CancelFunc // ends the clients
	starts  int
	boots   int
	console []string // what crashed says, one after the other
}

func newFakeGuest(t *testing.T) *fakeGuest {
	f := &fakeGuest{t: t, cancel: func() {}}
	f.listen()
	t.Cleanup(func() {
		f.cancel()
		f.clients.Wait()
		_ = f.l.Close()
		f.wg.Wait()
	})
	return f
}

// listen serves clients at a new port.
func (f *fakeGuest) listen() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f.t, err)
	f.l = l
	f.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.wg.Go(func() { f.couple(f.t.Context(), c, conformance.Initiator) })
		}
	})
}

// couple joins a connection with a program that talks as rping does, until one ends.
func (f *fakeGuest) couple(ctx context.Context, c net.Conn, play conformance.Role) {
	defer func() { _ = c.Close() }()
	s, err := conformance.InProcess{}.Stream(ctx, play)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	var wg sync.WaitGroup
	for _, x := range [2][2]net.Conn{{c, s}, {s, c}} {
		wg.Go(func() {
			_, err := io.Copy(x[0], x[1])
			if err != nil {
				_, _ = x[0].Close(), x[1].Close()
				return
			}
			_ = x[0].(interface{ CloseWrite() error }).CloseWrite()
		})
	}
	wg.Wait()
}

func (f *fakeGuest) start(ctx context.Context, role conformance.Role, port int) error {
	f.starts++
	f.cancel()
	f.clients.Wait() // a connection of theirs that ended later would be one of the new clients'
	if role == conformance.Initiator {
		return nil
	}
	ctx, f.cancel = context.WithCancel(ctx)
	for range 2 {
		f.clients.Go(func() {
			for ctx.Err() == nil {
				var d net.Dialer
				c, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
				if err != nil {
					return
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				f.couple(ctx, c, conformance.Responder)
				stop()
			}
		})
	}
	return nil
}

func (f *fakeGuest) crashed() (string, error) {
	if len(f.console) == 0 {
		return "", nil
	}
	said := f.console[0]
	f.console = f.console[1:]
	return said, nil
}

func (f *fakeGuest) reboot() error {
	f.boots++
	_ = f.l.Close()
	f.listen()
	return nil
}

func (f *fakeGuest) addr() string { return f.l.Addr().String() }

func suiteOn(f *fakeGuest, role conformance.Role) *suite {
	return &suite{guest: f, role: role, only: regexp.MustCompile(""), found: newFindings(), log: f.t.Logf}
}

// Both roles work with a target that is moved, and cases of other needs stay out.
func TestConform(t *testing.T) {
	all := conformance.Selection{Run: []string{"*/blind-terminate*", "*/blind-reads*", "5.1"}}.Cases(cases.All())
	for _, role := range bothRoles {
		f := newFakeGuest(t)
		f.console = []string{"", "kernel BUG at drivers/x.c:1!"}
		s := suiteOn(f, role)
		require.NoError(t, s.conform(t.Context(), all))
		assert.Empty(t, s.found.total[role][conformance.Fail], "%v", s.found.rows())
		assert.Greater(t, s.found.total[role][conformance.Pass], 4)
		assert.Equal(t, 1, f.boots)
		assert.Equal(t, 2, f.starts, "at first, and in the new guest")
		require.NotEmpty(t, s.found.rows())
		assert.Contains(t, s.found.rows()[0].did, "kernel BUG at drivers/x.c:1!")
		for _, name := range s.found.order {
			assert.Contains(t, name, "/blind-", "needs the wire only")
		}
	}
}

// TestTries: a case is tried up to three times if the target was silent, each time with
// another rping.
func TestTries(t *testing.T) {
	tests := []struct {
		name    string
		fails   []string // try by try; "" passes
		verdict conformance.Verdict
		tries   int
		starts  int // beyond the first
	}{
		{"at once", []string{""}, conformance.Pass, 1, 0},
		{"a wrong answer", []string{"Terminate 1/2/02", ""}, conformance.Fail, 1, 0},
		{"silent each time", []string{"no Terminate Message: the stream ended", "not done within 30s", "EOF"}, conformance.Fail, 3, 2},
		{"hangs", []string{"instead of an FPDU: nothing came in time", ""}, conformance.Pass, 2, 1},
		{"gone", []string{"the Request got no Reply: the stream was reset", "read: i/o timeout", "a"}, conformance.Fail, 3, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			f := newFakeGuest(t)
			s := suiteOn(f, conformance.Initiator)
			require.NoError(t, s.conform(t.Context(), []conformance.Case{{
				Name: "1/x", Keys: []string{"R5044-8-M2"}, Need: conformance.NeedWire,
				Run: func(t *conformance.T) {
					calls++
					if tt.fails[calls-1] != "" {
						t.Fatalf("%s", tt.fails[calls-1])
					}
				},
			}}))
			o := s.found.by["1/x"][conformance.Initiator]
			assert.Equal(t, tt.verdict, o.Verdict)
			assert.Equal(t, tt.tries, o.tries)
			assert.Equal(t, tt.tries, calls)
			assert.Equal(t, 1+tt.starts, f.starts)
		})
	}
}

func TestConformEnds(t *testing.T) {
	f := newFakeGuest(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := suiteOn(f, conformance.Initiator).conform(ctx, []conformance.Case{
		{Name: "1/x", Need: conformance.NeedWire, Run: func(*conformance.T) { cancel() }},
		{Name: "1/y", Need: conformance.NeedWire, Run: func(*conformance.T) { panic("not reached") }},
	})
	require.True(t, errors.Is(err, context.Canceled), "%v", err)
}

func TestCrashIn(t *testing.T) {
	assert.Empty(t, crashIn("GUEST-READY up 54.60\n[ 1107.172148] eth0 speed is unknown, defaulting to 1000\n"))
	assert.Equal(t, "kernel BUG at drivers/infiniband/core/iwcm.c:969!",
		crashIn("x\r\n[ 1105.513868] kernel BUG at drivers/infiniband/core/iwcm.c:969!\r\n[ 1105.516070] invalid opcode: 0000 [#1]\r\n"))
	assert.Equal(t, "BUG: kernel NULL pointer dereference, address: 0000000000000008",
		crashIn("[    9.5] BUG: kernel NULL pointer dereference, address: 0000000000000008\n"))
}

func TestPeersScript(t *testing.T) {
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	for _, s := range []string{peersScript(conformance.Initiator, 0), peersScript(conformance.Responder, 26111)} {
		cmd := exec.Command(sh, "-n")
		cmd.Stdin = strings.NewReader(s)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s\n%s", s, out)
		assert.NotContains(t, s, "%!")
	}
	assert.Contains(t, peersScript(conformance.Initiator, 0), ":1C06 ")
	assert.Contains(t, peersScript(conformance.Responder, 26111), "-p 26111 ")
}
