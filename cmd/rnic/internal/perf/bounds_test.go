package perf

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

// openHost is a host with 1 MiB.
func openHost(t *testing.T, clients int, idle time.Duration) *endpoint.Host {
	t.Helper()
	host, err := endpoint.OpenHost(verbs.Config{}, clients, 1<<20, idle)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, host.Close()) })
	return host
}

// servePlainTo runs servePlainRun for one connection whose other end gets what is returned.
func servePlainTo(t *testing.T, host *endpoint.Host) (net.Conn, <-chan error) {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- servePlainRun(server, host)
		server.Close()
	}()
	t.Cleanup(func() { client.Close() })
	return client, done
}

// A first line has no end: the server reads no more than it has to.
func TestPlainLineIsBounded(t *testing.T) {
	client, done := servePlainTo(t, openHost(t, 1, time.Minute))
	n, err := io.Copy(client, strings.NewReader(strings.Repeat("x", 4*maxPlainLine)))
	require.Error(t, err)
	assert.EqualValues(t, maxPlainLine, n, "octets read")
	assert.ErrorContains(t, <-done, "its first line has more than 256 octets")
}

func TestPlainClientIsRefused(t *testing.T) {
	client, done := servePlainTo(t, openHost(t, 1, time.Minute))
	require.NoError(t, json.NewEncoder(client).Encode(plainRun{Size: 1<<20 + 1}))
	assert.ErrorContains(t, <-done, "refused: the server has 1 MiB left for clients and this takes 2")
}

// A client that says nothing is sent away, before its line and after.
func TestPlainClientIsIdle(t *testing.T) {
	host := openHost(t, 1, time.Millisecond)
	_, done := servePlainTo(t, host)
	assert.ErrorContains(t, <-done, "it did nothing for 1ms")
	client, done := servePlainTo(t, host)
	// Slow machines: the line itself may come too late, which is the same error.
	_ = json.NewEncoder(client).Encode(plainRun{Size: 64})
	_, _ = io.ReadFull(client, make([]byte, 1))
	assert.ErrorContains(t, <-done, "it did nothing for 1ms")
}

// servePerfOnce accepts one client on host, with this much idle time, and hands over how that ended.
func servePerfOnce(t *testing.T, host *endpoint.Host) (addr string, done <-chan error) {
	t.Helper()
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	ended := make(chan error, 1)
	f := cli.DefaultConnFlags()
	go func() {
		req, err := l.Accept(t.Context())
		if err == nil {
			err = servePerfRun(t.Context(), host, req, &f)
		}
		ended <- err
	}()
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l.Addr().String(), ended
}

// What a client asks for and there is not is refused before anything is made for it, and the client says why.
func TestPerfServerRefusesWhatItHasNot(t *testing.T) {
	full := openHost(t, 0, time.Minute)
	addr, done := servePerfOnce(t, full)
	r := clitest.Run(t.Context(), "perf", "send", "lat", addr)
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "refused: the server has 0 clients already: try again later")
	assert.ErrorContains(t, <-done, "refused: the server has 0 clients already")

	addr, done = servePerfOnce(t, openHost(t, 1, time.Minute))
	r = clitest.Run(t.Context(), "perf", "send", "bw", "--size", "64M", addr)
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "refused: the server has 1 MiB left for clients and this takes 257: try again later, or ask for less")
	assert.ErrorContains(t, <-done, "refused: ")
}

// A client that connects and does nothing is disconnected, whatever it was going to measure.
func TestPerfServerDisconnectsIdleClients(t *testing.T) {
	for _, run := range []perfRun{
		{Op: "send", Size: 64, Depth: 16},
		{Op: "write", Size: 64, Depth: 16, Duration: time.Millisecond},
		{Op: "read", Size: 64, Depth: 16, Duration: time.Millisecond},
		{Op: "atomic", Size: 8, Depth: 16, Duration: time.Millisecond},
		{Op: "send", Size: 64, Depth: 16, Latency: true},
		{Op: "read", Size: 64, Depth: 16, Latency: true, Duration: time.Millisecond},
	} {
		t.Run(run.Op, func(t *testing.T) {
			host := openHost(t, 1, 20*time.Millisecond)
			addr, done := servePerfOnce(t, host)
			f := cli.DefaultConnFlags()
			c, err := openPerf(&f, run)
			require.NoError(t, err)
			defer c.Abort() //nolint:errcheck // it is open
			require.NoError(t, c.connect(t.Context(), addr, &f))
			if run.Op == "send" {
				assert.ErrorContains(t, <-done, "it did nothing for 20ms")
			} else {
				assert.ErrorContains(t, <-done, "it took longer than 41ms")
			}
			<-c.Conn.Done()
			leave, err := host.Admit(1 << 20)
			require.NoError(t, err, "all that it had is free again")
			leave()
		})
	}
}

// A client whose RDMA Writes or Reads are on their way for longer than --idle is not idle: what has been posted when its
// --duration is over has to arrive.
func TestPerfServerSparesDeepRuns(t *testing.T) {
	for _, op := range []string{"write", "read"} {
		host, err := endpoint.OpenHost(verbs.Config{}, 1, perfBudget, time.Millisecond)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, host.Close()) })
		addr, done := servePerfOnce(t, host)
		r := clitest.Run(t.Context(), "perf", op, "bw", "--size", "1M", "--depth", "1024", "--duration", "1ms", addr)
		assert.Zero(t, r.Status, r.Stderr)
		assert.NoError(t, <-done)
	}
	for _, c := range []struct {
		run  perfRun
		want time.Duration
	}{
		{perfRun{Size: 64, Depth: 2048, Duration: time.Second}, 121 * time.Second},
		{perfRun{Size: 1 << 20, Depth: 64, Duration: time.Hour}, time.Hour + 121*time.Second},
		{perfRun{Size: maxPerfSize, Depth: maxPerfDepth, Duration: time.Second}, 121*time.Second + 8192*time.Second},
	} {
		assert.Equal(t, c.want, c.run.longest(time.Minute))
	}
}

// A client whose server stalls says so.
func TestPerfServerStalls(t *testing.T) {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	defer l.Close()
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		req, err := l.Accept(t.Context())
		if !assert.NoError(t, err) {
			return
		}
		e, err := endpoint.Open(endpoint.Limits{SendDepth: 1, RecvDepth: 1})
		if !assert.NoError(t, err) {
			return
		}
		_, mr, err := e.Register(64, verbs.LocalWrite)
		assert.NoError(t, err)
		assert.NoError(t, e.PostRecv(verbs.Recv{SGL: mr.SGL(0, 64)}))
		assert.NoError(t, e.Accept(t.Context(), req, cm.Config{PrivateData: endpoint.Marshal(endpoint.RemoteBuffer{})}))
		<-over
		assert.NoError(t, e.Abort())
	}()
	r := clitest.Run(t.Context(), "perf", "send", "lat", "--timeout", "2s", "--duration", "1h", l.Addr().String())
	close(over)
	<-done
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "the server is connected but did not answer for 2s")
}

// One RNIC serves all clients, and has nothing of them left when they have gone.
func TestPerfServerFreesEverything(t *testing.T) {
	host := openHost(t, 1, time.Minute)
	for range 3 {
		addr, done := servePerfOnce(t, host)
		r := clitest.Run(t.Context(), "perf", "send", "bw", "--size", "64", "--depth", "16", "--duration", "1ms", addr)
		require.Zero(t, r.Status, r.Stderr)
		require.NoError(t, <-done)
	}
	for id := range uint32(100) {
		assert.Nil(t, host.NIC.QP(verbs.QPID(id)))
		assert.Nil(t, host.NIC.CQ(verbs.CQID(id)))
	}
}

func TestParsePerfRunDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Hour, `,"duration":5`: 5, `,"duration":3600000000000`: time.Hour} {
		r, err := parsePerfRun([]byte(`{"op":"send","size":1,"depth":1` + text + `}`))
		require.NoError(t, err)
		assert.Equal(t, want, r.Duration)
	}
	for _, text := range []string{"-1", "3600000000001"} {
		_, err := parsePerfRun([]byte(`{"op":"send","size":1,"depth":1,"duration":` + text + `}`))
		assert.ErrorContains(t, err, "out of range")
	}
	assert.LessOrEqual(t, len(endpoint.Marshal(perfRun{Op: "write", Latency: true, Size: maxPerfSize, Depth: maxPerfDepth,
		CRC: true, Event: true, Memory: &endpoint.RemoteBuffer{STag: 1<<32 - 1, TO: 1<<64 - 1}, Duration: time.Hour})), 512, "private data")
}
