package proxy

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
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
	c, p := through(t, "segment every 2: split 5\nmessage 2 in: late 10ms", "--pcap", pcap)
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
		"segment 5: expl":                    "line 1: behind the colon of segment",
		"segment 1: drop\npost 1: fail":      "line 2: post 1: fail: that is inside an RNIC",
		"segment 1 qp 3: drop":               "a proxy knows no queue pairs",
		"segment 1 in of write: lose stag\n": "that is inside an RNIC",
	} {
		require.NoError(t, os.WriteFile(file, []byte(plan), 0o600))
		r := clitest.Run(t.Context(), "proxy", "--faults", file, "127.0.0.1:1")
		assert.Equal(t, 2, r.Status)
		assert.Contains(t, r.Stderr, says)
	}
	r := clitest.Run(t.Context(), "proxy", "--faults", file+".none", "127.0.0.1:1")
	assert.Equal(t, 2, r.Status)
	r = clitest.Run(t.Context(), "proxy", "nowhere")
	assert.Equal(t, 2, r.Status)
	r = clitest.Run(t.Context(), "proxy", "--pcap-payload", "127.0.0.1:1")
	assert.Contains(t, r.Stderr, "--pcap-payload needs --pcap")
}
