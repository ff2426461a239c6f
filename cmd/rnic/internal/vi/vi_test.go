package vi

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/vipl"
)

func startViServer(t *testing.T) *clitest.Server {
	t.Helper()
	return clitest.StartServer(t, "vi", "ping", "-s", "127.0.0.1:0", "--json")
}

// viPingOnce runs a client against a server at addr.
func viPingOnce(t *testing.T, addr, flags string) clitest.Result {
	t.Helper()
	return clitest.Run(t.Context(), append([]string{"vi", "ping", "-c", addr}, strings.Fields(flags)...)...)
}

// viRows are the rows of a table, without times.
func viRows(p *viPing) (rows []viRow) {
	for _, k := range p.cases() {
		plan := viPlan{Count: p.count, Sizes: p.sizes}
		for _, s := range plan.series(k.level) {
			rows = append(rows, viRow{
				Level: k.level.String(), CRC: k.crc, Op: s.op.String(), Size: s.size, Count: p.count,
				Verified: s.size * uint64(p.count),
			})
		}
	}
	return rows
}

func TestViPing(t *testing.T) {
	tests := []struct {
		name  string
		flags string
		want  viPing
	}{
		{"all", "-C 2 -S 1,64,64K", viPing{count: 2, sizes: []uint64{1, 64, 64 << 10}, levels: allViLevels, crcs: []bool{false, true}}},
		{"odd rounds", "-C 3 -S 3 --level delivery --crc off", viPing{count: 3, sizes: []uint64{3}, levels: allViLevels[1:2], crcs: []bool{false}}},
		{"one round", "-C 1 -S 65536,1 --level reception --crc on", viPing{count: 1, sizes: []uint64{65536, 1}, levels: allViLevels[2:], crcs: []bool{true}}},
		{"many segments", "-C 2 -S 3M --level unreliable,reception", viPing{count: 2, sizes: []uint64{3 << 20}, levels: []vipl.ReliabilityLevel{0, 2}, crcs: []bool{false, true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startViServer(t)
			c := viPingOnce(t, s.Addr, "--json "+tt.flags)
			require.Zero(t, c.Status, c.Stderr)
			assert.Empty(t, c.Stderr)
			served := <-s.Done
			require.Zero(t, served.Status, served.Stderr)

			var got viReport
			clitest.Decode(t, c.Stdout, &got)
			want := viReport{Server: s.Addr, Connections: len(tt.want.cases()), Rows: viRows(&tt.want)}
			assert.Positive(t, got.Seconds)
			got.Seconds = 0
			for i := range got.Rows {
				assert.Positive(t, got.Rows[i].P50)
				got.Rows[i].P50 = 0
			}
			assert.Equal(t, want, got)

			var summary viSummary
			clitest.Decode(t, served.Stdout, &summary)
			assert.Positive(t, summary.Seconds)
			wantSummary := viSummary{Client: "127.0.0.1", Connections: len(tt.want.cases()), Seconds: summary.Seconds}
			for _, k := range tt.want.cases() {
				if k.crc {
					wantSummary.CRC++
				}
			}
			for _, row := range want.Rows {
				if row.Op != viRead.String() {
					wantSummary.Rounds += row.Count
					wantSummary.Verified += row.Verified
				}
			}
			assert.Equal(t, wantSummary, summary)
		})
	}
}

// The two ends are processes, as a user starts them.
func TestViPingTwoProcesses(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "vi", "ping", "-s", "127.0.0.1:0") // see package clitest
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	require.True(t, lines.Scan())
	_, addr, found := strings.Cut(lines.Text(), "listening on ")
	require.True(t, found, lines.Text())

	c := viPingOnce(t, addr, "-C 3 -S 100,70000")
	require.Zero(t, c.Status, c.Stderr)
	assert.False(t, lines.Scan(), lines.Text())
	require.NoError(t, cmd.Wait())
	assert.Regexp(t, `^72 rounds with 127\.0\.0\.1 over 6 connections \(3 with CRC\) in .*, 2,523,600 octets verified\n$`, stdout.String())

	table := strings.Split(strings.TrimSpace(c.Stdout), "\n")
	require.Len(t, table, 1+32+2, c.Stdout)
	assert.Equal(t, strings.Fields("level CRC operation size count p50 us verified"), strings.Fields(table[0]))
	assert.Regexp(t, `^ *Unreliable Delivery +off +Send +100 +3 +[0-9.]+ +300 *$`, table[1])
	assert.Regexp(t, `^ *Reliable Reception +on +RDMA Read +70000 +3 +[0-9.]+ +210,000 *$`, table[32])
	assert.Regexp(t, `^3,364,800 octets there and back over 6 connections in .* s; all verified$`, table[34])
	for _, line := range table {
		assert.LessOrEqual(t, len(line), 80, line)
	}
}

func TestViPingStops(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		s := startViServer(t)
		s.Stop()
		r := <-s.Done
		assert.Equal(t, 1, r.Status)
		assert.True(t, strings.HasSuffix(r.Stderr, "\nrnic: interrupted\n"), r.Stderr)
	})
	t.Run("client", func(t *testing.T) {
		s := startViServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan clitest.Result, 1)
		p := newViProxy(t, s.Addr, func(seg *segment.Segment, _ []byte, _ bool) bool {
			if seg.Type == segment.Send && seg.Number == 20 { // in the midst of the first series
				cancel()
			}
			return true
		})
		go func() { ended <- clitest.Run(ctx, "vi", "ping", "-c", p.addr, "-C", strconv.Itoa(maxViCount)) }()
		r := <-ended
		assert.Equal(t, clitest.Result{Status: 1, Stderr: "rnic: interrupted\n"}, r)
		served := <-s.Done
		assert.Equal(t, 1, served.Status)
		assert.Contains(t, served.Stderr, "the peer ended the connection")
	})
}

func TestViUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"vi":                                  "no command given",
		"vi pong":                             "unknown command",
		"vi ping":                             "choose one of -s",
		"vi ping -s -c":                       "choose one of -s",
		"vi ping -c a b":                      `"b" is one too many`,
		"vi ping -s -C 3":                     "--count is for the client",
		"vi ping -s --crc on":                 "--crc is for the client",
		"vi ping -s --level delivery":         "--level is for the client",
		"vi ping -s -S 4K":                    "--size is for the client",
		"vi ping -c -C 0":                     "from 1 to",
		"vi ping -c -S 64,0":                  "want 1 to 16M",
		"vi ping -c -S 17M":                   "want 1 to 16M",
		"vi ping -c --crc maybe":              "want on, off or both",
		"vi ping -c --level best":             "want one or more of unreliable,delivery,reception",
		"vi ping -c --level delivery,":        "want one or more of",
		"vi ping -c --timeout 0s":             "want a time",
		"vi ping -c -S " + manySizes(65):      "65 sizes, want 64 at most",
		"vi ping -c 127.0.0.1:0 -S 1,2,three": "such as 4096",
	} {
		t.Run(args[:min(len(args), 40)], func(t *testing.T) {
			r := clitest.Run(t.Context(), strings.Fields(args)...)
			assert.Equal(t, 2, r.Status)
			assert.Contains(t, r.Stderr, want)
			assert.Regexp(t, `^rnic: .*; see rnic.* --help\n$`, r.Stderr)
			assert.Empty(t, r.Stdout)
		})
	}
}

func manySizes(n int) string { return strings.Repeat("16777216,", n-1) + "16777216" }

// Each failure to connect is one line that ends in what to do.
func TestViPingCannotConnect(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer silent.Close()
	other, err := vipl.OpenNic("127.0.0.1:0", vipl.Config{MatchTimeout: -1}) // a NIC without a ping
	require.NoError(t, err)
	defer func() { assert.NoError(t, other.CloseNic()) }()
	attributes, err := other.QueryNic()
	require.NoError(t, err)
	at, err := (&vipl.NetAddress{HostAddress: attributes.LocalNicAddress}).AddrPort()
	require.NoError(t, err)
	for args, want := range map[string]string{
		"-c 127.0.0.1:1": "; start rnic vi ping -s there first",
		"-c " + silent.Addr().String() + " --timeout 20ms": "needs a longer --timeout",
		"-c " + at.String(): "has that --discriminator, or it serves another client: try again later",
		"-c 127.0.0.1:0":    "port 0 is for the server",
		"-s 192.0.2.1:0":    "; choose another ADDR",
	} {
		t.Run(want, func(t *testing.T) {
			r := clitest.Run(t.Context(), append([]string{"vi", "ping"}, strings.Fields(args)...)...)
			assert.Equal(t, 1, r.Status)
			assert.Contains(t, r.Stderr, want)
			assert.Regexp(t, `^rnic: vi ping: [^\n]+\n$`, r.Stderr)
			assert.Empty(t, r.Stdout)
		})
	}
}

func TestViAddress(t *testing.T) {
	for arg, want := range map[string]string{
		"": ":22089", ":": ":22089", ":5": ":5", "host": "host:22089", "host:": "host:22089", "host:5": "host:5",
		"::1": "[::1]:22089", "[::1]": "[::1]:22089", "[::1]:5": "[::1]:5",
	} {
		assert.Equal(t, want, viAddress([]string{arg}), arg)
	}
	assert.Equal(t, ":22089", viAddress(nil))
	p := viPing{called: "blue"}
	at, err := p.resolveVi(t.Context(), ":22089")
	require.NoError(t, err)
	require.Len(t, at, 1)
	assert.Equal(t, `127.0.0.1/"blue"`, at[0].String())
	assert.Equal(t, "127.0.0.1:22089", viServerAt(at[0]))
}

// What goes over the wire fits its place, and a server takes nothing else.
func TestViPlan(t *testing.T) {
	good := viPlan{
		Session: viService + " 0123456789abcdef", Left: 1 << 30, Seed: 1<<64 - 1, Count: maxViCount,
		Sizes: make([]uint64, maxViSeries), Sink: viBuffer{1<<64 - 1, 1<<32 - 1},
	}
	for i := range good.Sizes {
		good.Sizes[i] = maxViSize
	}
	note := endpoint.Marshal(good)
	assert.LessOrEqual(t, len(note), viNoteSize)
	got, err := parseViPlan(note)
	require.NoError(t, err)
	assert.Equal(t, good, got)

	_, err = parseViPlan(note[1:])
	require.ErrorContains(t, err, "does not speak")
	for name, spoil := range map[string]func(*viPlan){
		"no rounds":       func(p *viPlan) { p.Count = 0 },
		"too many rounds": func(p *viPlan) { p.Count = maxViCount + 1 },
		"negative left":   func(p *viPlan) { p.Left = -1 },
		"no sizes":        func(p *viPlan) { p.Sizes = nil },
		"too many sizes":  func(p *viPlan) { p.Sizes = make([]uint64, maxViSeries+1) },
		"no session":      func(p *viPlan) { p.Session = "" },
		"long session":    func(p *viPlan) { p.Session = strings.Repeat("x", 65) },
		"no octets":       func(p *viPlan) { p.Sizes = []uint64{64, 0} },
		"too long":        func(p *viPlan) { p.Sizes = []uint64{maxViSize + 1} },
	} {
		bad := good
		spoil(&bad)
		_, err := parseViPlan(endpoint.Marshal(bad))
		assert.ErrorContains(t, err, "the client asks for", name)
	}
}

// A server ends with an error that says what was wrong if its client is a stranger.
func TestViPingStrangeClient(t *testing.T) {
	plan := viPlan{Session: "s", Count: 1, Sizes: []uint64{8}}
	tests := []struct {
		name string
		act  func(ctx context.Context, e *viEnd) error
		want string
	}{
		{"no plan", func(ctx context.Context, e *viEnd) error { return e.sendNote(ctx, "hello") },
			"the client does not speak the protocol of rnic vi ping"},
		{"Write instead of Send", func(ctx context.Context, e *viEnd) error {
			if err := e.sendNote(ctx, plan); err != nil {
				return err
			}
			d, err := e.recv(ctx, vipl.StatusOpReceive)
			if err != nil {
				return err
			}
			var there viBuffer
			clitest.Decode(t, string(e.note(d)), &there)
			return e.postSend(func(d *vipl.Descriptor) {
				d.SetRdmaWrite(there.at(0), e.notes.segment(viNoteOut, 8))
				d.SetImmediate(1)
			})
		}, "a remote RDMA Write completed where a Receive was to come"},
		{"gone", func(_ context.Context, e *viEnd) error { return e.vi.Disconnect() }, "the peer ended the connection"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startViServer(t)
			at, err := netip.ParseAddrPort(s.Addr)
			require.NoError(t, err)
			nic, err := vipl.OpenNic("127.0.0.1", vipl.Config{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, nic.CloseNic()) }()
			e, err := openViEnd(nic, vipl.ServiceReliableDelivery)
			require.NoError(t, err)
			_, err = e.vi.ConnectRequest(t.Context(), nil, vipl.NewNetAddress(at, []byte(viService)))
			require.NoError(t, err)
			require.NoError(t, tt.act(t.Context(), e))
			r := <-s.Done
			assert.Equal(t, 1, r.Status)
			assert.Contains(t, r.Stderr, tt.want)
		})
	}
}
