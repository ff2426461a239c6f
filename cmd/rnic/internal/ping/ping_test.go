package ping

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/dissect"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/internal/rping"
	"github.com/softrnic/softrnic/lab/trace"
)

// pingOnce runs a client against s, and returns its result.
func pingOnce(t *testing.T, s *clitest.Server, flags string) clitest.Result {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	return clitest.Run(t.Context(), append([]string{"ping", "-c", "-a", host, "-p", port}, strings.Fields(flags)...)...)
}

func TestPing(t *testing.T) {
	tests := []struct {
		name           string
		server, client string // further flags
		rounds         int
		size           uint64
	}{
		{"defaults", "", "", 3, 64},
		{"one octet", "", "-S 1", 3, 1},
		{"odd size", "", "-S 4097", 3, 4097},
		{"rping's largest", "-S 65535", "-S 65535", 2, 65535},
		{"largest", "", "-S 1M", 2, 1 << 20},
		{"no CRC", "--crc off", "--crc off -S 100K", 2, 100 << 10},
		{"CRC wanted by the client alone", "--crc off", "-S 100K", 2, 100 << 10},
		{"markers one way", "--markers", "-S 100K", 2, 100 << 10},
		{"markers both ways", "--markers", "--markers -S 100K", 2, 100 << 10},
		{"revision 1", "--mpa-rev 1", "--mpa-rev 1", 3, 64},
		{"peer-to-peer", "--p2p", "--p2p", 3, 64},
		{"more reads", "--ird 4 --ord 4", "--ird 8 --ord 8", 3, 64},
		{"server counts", "-C 3", "", 3, 64},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := clitest.StartServer(t, append([]string{"ping", "-s", "-a", "127.0.0.1", "-p", "0", "-V", "--json"}, strings.Fields(tt.server)...)...)
			c := pingOnce(t, s, "-V --json -C "+itoa(tt.rounds)+" "+tt.client)
			require.Zero(t, c.Status, c.Stderr)
			served := <-s.Done
			require.Zero(t, served.Status, served.Stderr)

			for role, r := range map[string]clitest.Result{"client": c, "server": served} {
				var got pingSummary
				clitest.Decode(t, r.Stdout, &got)
				assert.Positive(t, got.Seconds, role)
				assert.NotEmpty(t, got.Peer, role)
				assert.Equal(t, role == "client", got.Times != nil)
				got.Seconds, got.Peer, got.Times = 0, "", nil
				assert.Equal(t, pingSummary{Role: role, Rounds: tt.rounds, Bytes: uint64(tt.rounds) * tt.size, Validated: true}, got)
			}
		})
	}
}

func TestPingPrintsData(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-a", "127.0.0.1", "-p", "0", "-v")
	c := pingOnce(t, s, "-v -C 2 -S 30")
	require.Zero(t, c.Status, c.Stderr)
	served := <-s.Done
	require.Zero(t, served.Status, served.Stderr)

	// As rping prints it.
	want := []string{"ping data: rdma-ping-0: ABCDEFGHIJKLMNOP", "ping data: rdma-ping-1: BCDEFGHIJKLMNOPQ"}
	assert.Equal(t, want, strings.Split(c.Stdout, "\n")[:2])
	assert.Regexp(t, regexp.MustCompile(`(?m)^2 rounds with .*, 60 octets each way in [^,]*$`), c.Stdout)
	for _, line := range want {
		assert.Contains(t, served.Stdout, "server "+line+"\n")
	}
}

func TestPingPersistentServer(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0")
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 3 {
				c := pingOnce(t, s, "-V -C 5 -S 5000")
				assert.Zero(t, c.Status, c.Stderr)
			}
		})
	}
	clients.Wait()
	s.Stop()
	served := <-s.Done
	assert.Zero(t, served.Status, served.Stderr)
	assert.Equal(t, 12, strings.Count(served.Stdout, "5 rounds with"))
}

func TestPingServerStopsAfterItsCount(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-C", "2", "-a", "127.0.0.1", "-p", "0")
	c := pingOnce(t, s, "-C 3")
	assert.Equal(t, 1, c.Status)
	assert.Contains(t, c.Stderr, "ended the connection")
	served := <-s.Done
	assert.Zero(t, served.Status, served.Stderr)
	assert.Contains(t, served.Stdout, "2 rounds with")
}

func TestPingTooLargeForServer(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-S", "100", "-a", "127.0.0.1", "-p", "0")
	c := pingOnce(t, s, "-C 1 -S 101")
	assert.Equal(t, 1, c.Status)
	served := <-s.Done
	assert.Equal(t, 1, served.Status)
	assert.Contains(t, served.Stderr, "has 101 octets, at most 100 are taken; use a larger -S here")
}

// A server that does not return the data is found out by -V.
func TestCompare(t *testing.T) {
	want := make([]byte, 40)
	rping.Fill(want, 2)
	got := append([]byte(nil), want...)
	require.NoError(t, compare(2, want, got))
	for i := range got {
		got[i] ^= 1
		assert.ErrorContains(t, compare(2, want, got), "data mismatch in round 2 at octet "+itoa(i)+":")
		got[i] ^= 1
	}
}

func TestPingHostPort(t *testing.T) {
	for addr, want := range map[string]string{"": ":7", "host": "host:7", "::1": "[::1]:7", "[::1]": "[::1]:7"} {
		p := ping{addr: addr, port: 7}
		assert.Equal(t, want, p.hostPort())
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// siw keeps one RDMA Read at a time for rping, and MPA revision 1 cannot agree
// on a number: so neither side may count on more by itself.
func TestPingLimits(t *testing.T) {
	p := ping{flags: cli.DefaultConnFlags()}
	assert.Equal(t, endpoint.Limits{SendDepth: 16, RecvDepth: 2, IRD: 1, ORD: 1}, p.limits())
	p.flags.IRD, p.flags.ORD = 3, 4
	assert.Equal(t, endpoint.Limits{SendDepth: 16, RecvDepth: 2, IRD: 3, ORD: 4}, p.limits())
}

// TestLab: a fault that strikes is told, and what went over is in the capture.
func TestLab(t *testing.T) {
	dir := t.TempDir()
	plan, pcap, records := filepath.Join(dir, "plan"), filepath.Join(dir, "c.pcapng"), filepath.Join(dir, "t")
	require.NoError(t, os.WriteFile(plan, []byte("message 2 out: flip behind crc"), 0o600))
	s := clitest.StartServer(t, "ping", "-s", "-a", "127.0.0.1", "-p", "0")
	c := pingOnce(t, s, "-C 3 --faults "+plan+" --pcap "+pcap+" --trace "+records)
	assert.Equal(t, 1, c.Status)
	assert.Contains(t, c.Stderr, "rnic: fault: line 1: message 2 out: flip behind crc (connection 1, qp ")
	<-s.Done
	f, err := os.Open(pcap)
	require.NoError(t, err)
	defer f.Close()
	r, err := dissect.Read(f, nil)
	require.NoError(t, err)
	require.Len(t, r.Connections, 1)
	assert.Equal(t, 1, r.Connections[0].Streams[0].CRC.Bad)
	text, err := os.Open(records)
	require.NoError(t, err)
	defer text.Close()
	list, err := trace.Read(text)
	require.NoError(t, err)
	assert.True(t, slices.ContainsFunc(list, func(r trace.Record) bool {
		return r.Kind == trace.Fault && strings.HasPrefix(r.Name, "line 1: message 2 out: flip behind crc")
	}), "the fault is in the trace")
}
