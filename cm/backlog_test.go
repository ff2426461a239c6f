package cm_test

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
)

// dialFrom connects from a loopback address.
func dialFrom(t testing.TB, ip string, l *cm.Listener) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	nc, err := d.DialContext(bounded(t), "tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	return nc
}

// ask sends a Request whose private data is from.
func ask(t testing.TB, nc net.Conn, from string) {
	require.NoError(t, rawpeer.WriteStartup(nc, mpa.Startup{CRC: true, Rev: 1, PrivateData: []byte(from)}))
}

// While the program does not accept, one host's complete Requests leave places
// for those of others, and silent peers drive none of them out.
func TestBacklogIsShared(t *testing.T) {
	failed := make(chan error, 100)
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{
		Backlog: 8, MaxStartups: 2, Timeout: time.Hour,
		OnStartupError: func(_ net.Addr, err error) { failed <- err },
	})
	require.NoError(t, err)
	defer l.Close()
	for i := range 9 {
		nc := dialFrom(t, "127.0.0.9", l)
		ask(t, nc, "hostile")
		if i < 4 {
			cm.AwaitBacklog(l, i+1)
			continue
		}
		rep, err := rawpeer.ReadStartup(nc)
		require.NoError(t, err)
		assert.True(t, rep.Reject)
		told := failing{want: cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepBacklog, Cause: cm.CauseCrowded, Err: cm.ErrCrowded}}
		told.failed(t, <-failed)
	}
	honest := dialFrom(t, "127.0.0.8", l)
	ask(t, honest, "honest")
	cm.AwaitBacklog(l, 5)
	for range 6 {
		dialFrom(t, "127.0.0.8", l)
	}
	for range 4 {
		told := failing{want: cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepReadRequest, Cause: cm.CauseCrowded, Err: cm.ErrCrowded}}
		told.failed(t, <-failed)
	}
	for _, want := range []string{"hostile", "hostile", "hostile", "hostile", "honest"} {
		r, err := l.Accept(bounded(t))
		require.NoError(t, err)
		assert.Equal(t, want, string(r.PrivateData()))
		require.NoError(t, r.Reject(nil))
	}
	rep, err := rawpeer.ReadStartup(honest)
	require.NoError(t, err)
	assert.True(t, rep.Reject)
}

// A backlog of Requests is closed with the Listener.
func TestCloseWithABacklog(t *testing.T) {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	nc := dialFrom(t, "127.0.0.1", l)
	ask(t, nc, "x")
	cm.AwaitBacklog(l, 1)
	require.NoError(t, l.Close())
	_, err = rawpeer.ReadStartup(nc)
	require.Error(t, err)
	_, err = l.Accept(bounded(t))
	require.ErrorIs(t, err, net.ErrClosed)
}

// The log has ten failures a second, and says how many it leaves out.
func TestFailureLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		pl := newPipeListener()
		l := cm.NewListener(pl, cm.ListenConfig{
			MaxStartups: 1, Logger: slog.New(slog.NewTextHandler(&out, nil)),
		})
		fail := func() {
			pl.dial().Close()
			synctest.Wait()
		}
		for range 13 {
			fail()
		}
		assert.Equal(t, 10, strings.Count(out.String(), "\n"))
		assert.NotContains(t, out.String(), "left_out")
		time.Sleep(time.Second)
		out.Reset()
		fail()
		assert.Contains(t, out.String(), `level=WARN msg="a connection failed in its startup" remote=pipe error=`)
		assert.Contains(t, out.String(), " left_out=3\n")
		out.Reset()
		fail()
		assert.NotContains(t, out.String(), "left_out")
		require.NoError(t, l.Close())
	})
}

func TestFailureLogOfTheSystem(t *testing.T) {
	var out bytes.Buffer
	nl := &shortListener{errs: []error{syscall.EPERM}, done: make(chan struct{})}
	told := make(chan error, 1)
	l := cm.NewListener(nl, cm.ListenConfig{
		Logger:         slog.New(slog.NewTextHandler(&out, nil)),
		OnStartupError: func(_ net.Addr, err error) { told <- err },
	})
	require.ErrorIs(t, <-told, syscall.EPERM)
	require.NoError(t, l.Close())
	assert.Contains(t, out.String(), `msg="accepting a connection failed" error=`)
	assert.NotContains(t, out.String(), "remote")
}
