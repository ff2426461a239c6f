package proxy

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/lab/relay"
)

// through runs a ping of three rounds through a proxy with further flags.
func through(t *testing.T, plan string, flags ...string) (client, proxy clitest.Result) {
	s := clitest.StartServer(t, "ping", "-s", "-a", "127.0.0.1", "-p", "0")
	file := filepath.Join(t.TempDir(), "plan")
	require.NoError(t, os.WriteFile(file, []byte(plan), 0o600))
	p := clitest.StartServer(t, append([]string{"proxy", "--faults", file, s.Addr}, flags...)...)
	host, port, err := net.SplitHostPort(p.Addr)
	require.NoError(t, err)
	client = clitest.Run(t.Context(), "ping", "-c", "-a", host, "-p", port, "-V", "-C", "3")
	<-s.Done
	p.Stop()
	proxy = <-p.Done
	return client, proxy
}

func TestProxy(t *testing.T) {
	pcap := filepath.Join(t.TempDir(), "c.pcapng")
	c, p := through(t, "segment every 2: split 5\nmessage 2 in: delay 10ms", "--pcap", pcap)
	assert.Zero(t, c.Status, c.Stderr)
	assert.Zero(t, p.Status, p.Stderr)
	d := clitest.Run(t.Context(), "dump", pcap)
	assert.Zero(t, d.Status, d.Stdout)
	assert.Contains(t, d.Stdout, "1 MPA connections, 0 violations")
	assert.Contains(t, d.Stdout, "ReadResponse 3")

	c, p = through(t, "message 2 out: flip behind crc")
	assert.NotZero(t, c.Status)
	assert.Contains(t, c.Stderr, "CRC")
	assert.Zero(t, p.Status)
}

func TestRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan")
	for plan, says := range map[string]string{
		"segment 5: expl":                          "line 1: behind the colon of segment",
		"segment 1: drop\npost 1: fail":            "line 2: post 1: fail: that is inside an RNIC",
		"segment 1 qp 3: drop":                     "a proxy knows no queue pairs",
		"segment 1 in of write: invalidate stag\n": "that is inside an RNIC",
	} {
		require.NoError(t, os.WriteFile(file, []byte(plan), 0o600))
		r := clitest.Run(t.Context(), "proxy", "--faults", file, "127.0.0.1:1")
		assert.Equal(t, 2, r.Status)
		assert.Contains(t, r.Stderr, says)
	}
	r := clitest.Run(t.Context(), "proxy", "--trace", file, "127.0.0.1:1")
	assert.Equal(t, 2, r.Status, "there is no RNIC to trace")
	r = clitest.Run(t.Context(), "proxy", "--faults", file+".none", "127.0.0.1:1")
	assert.Equal(t, 2, r.Status)
	r = clitest.Run(t.Context(), "proxy", "nowhere")
	assert.Equal(t, 2, r.Status)
	r = clitest.Run(t.Context(), "proxy", "--pcap-payload", "127.0.0.1:1")
	assert.Contains(t, r.Stderr, "--pcap-payload needs --pcap")
}

// TestLoopback: without --listen nobody from elsewhere gets to the target.
func TestLoopback(t *testing.T) {
	p := clitest.StartServer(t, "proxy", "127.0.0.1:1")
	host, _, err := net.SplitHostPort(p.Addr)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", host)
	p.Stop()
	assert.Zero(t, (<-p.Done).Status)
}

// TestBound: more clients than a proxy carries at once wait, and reach the target when one has gone.
func TestBound(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer target.Close()
	var mu sync.Mutex
	now, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		most = max(most, now)
	}
	go func() {
		for {
			c, err := target.Accept()
			if err != nil {
				return
			}
			count(1)
			go func() {
				_, _ = io.Copy(c, c)
				count(-1)
				_ = c.Close()
			}()
		}
	}()
	p := clitest.StartServer(t, "proxy", target.Addr().String())
	request := droppedpeer.MPA(nil).Request
	var clients [relay.MaxConnections + 1]net.Conn
	echoed := make(chan int)
	for i := range clients {
		clients[i], err = net.Dial("tcp", p.Addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = clients[i].Close() })
		go func() {
			_, err := clients[i].Write(request)
			assert.NoError(t, err)
			_, err = io.ReadFull(clients[i], make([]byte, len(request))) // its echo
			assert.NoError(t, err)
			echoed <- i
		}()
	}
	for i := range clients {
		one := <-echoed
		if i == relay.MaxConnections-1 { // its place is the last one's, whichever that is
			_ = clients[one].Close()
		}
	}
	mu.Lock()
	assert.Equal(t, relay.MaxConnections, most)
	mu.Unlock()
	p.Stop()
	assert.Zero(t, (<-p.Done).Status)
}

// TestSilentClients: however many connect and say nothing, an honest one is carried.
func TestSilentClients(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer target.Close()
	go func() {
		for {
			c, err := target.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	p := clitest.StartServer(t, "proxy", target.Addr().String())
	for range relay.MaxConnections + 100 {
		nc, err := net.Dial("tcp", p.Addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = nc.Close() })
	}
	nc, err := net.Dial("tcp", p.Addr)
	require.NoError(t, err)
	defer nc.Close()
	_, err = nc.Write(droppedpeer.MPA(nil).Request)
	require.NoError(t, err)
	_ = nc.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, err = nc.Read(make([]byte, 1)) // its echo
	require.NoError(t, err)
	p.Stop()
	assert.Zero(t, (<-p.Done).Status)
}
