package rsocket_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/ulp/rsocket"
)

// TestHTTPClient: a client of HTTP over TCP reads what the port is, the log has the client, and the Listener goes on.
func TestHTTPClient(t *testing.T) {
	logged := make(logLines, 10)
	l, err := rsocket.Config{Logger: slog.New(slog.NewTextHandler(logged, nil))}.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if assert.NoError(t, err) {
			accepted <- c
		}
	}()

	var from string
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		if err == nil {
			from = c.LocalAddr().String()
		}
		return c, err
	}}}
	for _, body := range []string{"", strings.Repeat("x", 30_000)} {
		res, err := client.Post("http://"+l.Addr().String()+"/index.html", "text/plain", strings.NewReader(body))
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, http.StatusBadRequest, res.StatusCode)
		assert.Equal(t, "This port speaks iWARP (rsocket), not HTTP over TCP.\n", string(text))
		line := <-logged
		assert.Contains(t, line, "remote="+from)
		assert.Contains(t, line, "the peer speaks HTTP, and this port iWARP")
		assert.Equal(t, 1, strings.Count(line, "\n"))
	}

	c, err := rsocket.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, (<-accepted).Close())
}

// TestHTTPServer: Dial says what answered.
func TestHTTPServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	_, err := rsocket.Dial("tcp", s.Listener.Addr().String())
	require.ErrorContains(t, err, "the peer answered with HTTP: it is no RDMA listener: find the port on which the iWARP program listens")
	var failed *cm.ConnectError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, cm.CauseIncompatible, failed.Cause)
	assert.Equal(t, 1, strings.Count(err.Error(), s.Listener.Addr().String()), "whom is said once: %v", err)
}

// logLines takes what a slog.Handler writes, a line at a time.
type logLines chan string

func (l logLines) Write(b []byte) (int, error) {
	l <- string(bytes.Clone(b))
	return len(b), nil
}
