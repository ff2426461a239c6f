package ping

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/internal/rping"
	"github.com/softrnic/softrnic/verbs"
)

// accepting is a server that takes one client, and does with the connection what then does.
func accepting(t *testing.T, then func(*pingEnd)) (s *clitest.Server, done <-chan struct{}) {
	t.Helper()
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		p := ping{flags: cli.DefaultConnFlags()}
		e, err := open(endpoint.Open(p.limits()))
		if !assert.NoError(t, err) || !assert.NoError(t, e.Accept(context.Background(), req, p.flags.Config())) {
			return
		}
		then(e)
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return &clitest.Server{Addr: l.Addr().String()}, ended
}

// dialed is a client of s that is connected and does no more.
func dialed(t *testing.T, s *clitest.Server) *pingEnd {
	t.Helper()
	p := ping{flags: cli.DefaultConnFlags()}
	e, err := open(endpoint.Open(p.limits()))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Abort()) })
	require.NoError(t, e.Dial(t.Context(), s.Addr, p.flags.Config()))
	return e
}

func TestPingServerStalls(t *testing.T) {
	over := make(chan struct{})
	s, done := accepting(t, func(e *pingEnd) {
		<-over
		assert.NoError(t, e.Abort())
	})
	c := pingOnce(t, s, "-C 1 --timeout 2s")
	close(over)
	<-done
	assert.Equal(t, 1, c.Status)
	assert.Equal(t, "rnic: ping: the server is connected but did not answer within 2s; a slow path needs a longer --timeout\n", c.Stderr)
}

// However a connection is lost, the error is about the peer.
func TestPingServerVanishes(t *testing.T) {
	s, done := accepting(t, func(e *pingEnd) {
		_, err := e.recvBuffer(context.Background())
		assert.NoError(t, err)
		assert.NoError(t, e.Abort())
	})
	c := pingOnce(t, s, "-C 1")
	<-done
	assert.Equal(t, 1, c.Status)
	assert.Regexp(t, `^rnic: ping: the peer ended the connection[^\n]*\n$`, c.Stderr)
	assert.NotContains(t, c.Stderr, "closed network connection")
	assert.NotContains(t, c.Stderr, "QP ")
}

// What the client refused is known when the stream is over, which is after its requests were flushed.
func TestPingServerIsRefused(t *testing.T) {
	s, done := accepting(t, func(e *pingEnd) {
		b, err := e.recvBuffer(context.Background())
		assert.NoError(t, err)
		b.Remote.STag ^= 0xff
		assert.NoError(t, e.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: e.outMR.SGL(0, rping.MessageSize), Remote: b.Remote}))
		<-e.Conn.Done()
		assert.NoError(t, e.Abort())
	})
	c := pingOnce(t, s, "-C 1")
	<-done
	assert.Equal(t, 1, c.Status)
	assert.Regexp(t, `^rnic: ping: this side ended the connection: RDMA Write of 16 octets at TO 0x[0-9a-f]+ of STag 0x[0-9a-f]{8} refused: `+
		`the region has another key, 0x[0-9a-f]+: use the STag that it has now; sent Terminate 0x1100 \(RV-7.2.2-M1\)\n$`, c.Stderr)
}

func TestPingServerDisconnectsIdleClients(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--idle", "20ms")
	e := dialed(t, s)
	assert.Contains(t, <-s.Log, "it did nothing for 20ms, more than a client may")
	<-e.Conn.Done()
}

// A server with -P refuses who is one too many, says why, and takes clients again when there is room.
func TestPingServerRefuses(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--clients", "1")
	first := dialed(t, s)
	c := pingOnce(t, s, "-C 1")
	assert.Equal(t, 1, c.Status)
	assert.Contains(t, c.Stderr, "refused: the server has 1 clients already: try again later")
	assert.Contains(t, <-s.Log, "refused: the server has 1 clients already")
	require.NoError(t, first.Abort())
	assert.Contains(t, <-s.Log, "rnic: ping: client")
	for {
		// What the first client had is given back behind its line in the log.
		if c = pingOnce(t, s, "-C 1"); c.Status == 0 || !strings.Contains(c.Stderr, "try again later") {
			break
		}
	}
	assert.Zero(t, c.Status, c.Stderr)
}

// A server that serves one client keeps no other waiting for an answer that will not come.
func TestPingServerOfOne(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-a", "127.0.0.1", "-p", "0")
	first := dialed(t, s)
	c := pingOnce(t, s, "-C 1")
	assert.Equal(t, 1, c.Status)
	assert.Contains(t, c.Stderr, "connection refused")
	require.NoError(t, first.Abort())
}

func TestPingTimes(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-a", "127.0.0.1", "-p", "0")
	c := pingOnce(t, s, "-C 4")
	require.Zero(t, c.Status, c.Stderr)
	assert.Regexp(t, `(?m)^round trip min/avg/p50/p99/max = \d+\.\d/\d+\.\d/\d+\.\d/\d+\.\d/\d+\.\d us$`, c.Stdout)
	served := <-s.Done
	assert.NotContains(t, served.Stdout, "min/avg", "a server has none")
	assert.Nil(t, newTimes(&histogram.Histogram{}), "without a round")
}

// TestPingServerMemory: what a server reads a client's data into is no client's to write to.
func TestPingServerMemory(t *testing.T) {
	p := ping{flags: cli.DefaultConnFlags()}
	e, err := open(endpoint.Open(p.limits()))
	require.NoError(t, err)
	defer func() { assert.NoError(t, e.Abort()) }()
	data := pingData{limit: 100}
	require.NoError(t, data.grow(e, 100))
	region, err := data.mr.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.LocalRead|verbs.LocalWrite, region.Access)
}
