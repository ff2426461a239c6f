package perf

import (
	"bytes"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
)

func TestPerfRuns(t *testing.T) {
	server, err := cli.StartServer(t.Context(), ownServer...)
	require.NoError(t, err)
	for _, op := range []string{"send", "write", "write-imm", "read"} {
		for what, variants := range map[string][]string{
			"bw":   {"", "--crc off", "--event", "--depth 1", "--depth 5"},
			"rate": {""},
			"lat":  {"--crc off", "--event"},
		} {
			for _, flags := range variants {
				t.Run(op+" "+what+" "+flags, func(t *testing.T) {
					args := append([]string{"perf", strings.TrimSuffix(op, "-imm"), what, server.Address, "--json", "--size", "1,4K,100000", "--duration", "2ms"}, strings.Fields(flags)...)
					if op == "write-imm" {
						args = append(args, "--imm")
					}
					r := clitest.Run(t.Context(), args...)
					require.Zero(t, r.Status, r.Stderr)
					var results []perfResult
					clitest.Decode(t, r.Stdout, &results)
					require.Len(t, results, 3)
					for i, size := range []int{1, 4096, 100000} {
						got := results[i]
						assert.Equal(t, op, got.Op)
						assert.Equal(t, size, got.Size)
						assert.Equal(t, flags != "--crc off", got.CRC)
						assert.Equal(t, flags == "--event", got.Event)
						assert.Positive(t, got.Seconds)
						if what == "lat" {
							checkLatency(t, got)
						} else {
							assert.GreaterOrEqual(t, got.Messages, uint64(2))
							assert.Positive(t, got.GBps)
							assert.Positive(t, got.Mps)
							assert.Nil(t, got.Latency)
						}
					}
				})
			}
		}
	}
	require.NoError(t, server.Stop())
	assert.Empty(t, server.Said(), "no client was a problem")
}

// TestPerfAtomic: each FetchAdd is told what the one before it left.
func TestPerfAtomic(t *testing.T) {
	server, err := cli.StartServer(t.Context(), ownServer...)
	require.NoError(t, err)
	for _, args := range []string{"rate", "rate --crc off --depth 5", "rate --event", "lat", "lat --event --crc off"} {
		t.Run(args, func(t *testing.T) {
			words := append([]string{"perf", "atomic"}, strings.Fields(args)...)
			r := clitest.Run(t.Context(), append(words, server.Address, "--json", "--duration", "2ms")...)
			require.Zero(t, r.Status, r.Stderr)
			var results []perfResult
			clitest.Decode(t, r.Stdout, &results)
			require.Len(t, results, 1)
			assert.Equal(t, "atomic", results[0].Op)
			assert.Equal(t, 8, results[0].Size)
			assert.Positive(t, results[0].Messages)
			if results[0].Latency != nil {
				checkLatency(t, results[0])
			}
		})
	}
	require.NoError(t, server.Stop())
	assert.Empty(t, server.Said(), "no client was a problem")
	_, err = parsePerfRun([]byte(`{"op":"atomic","size":64,"depth":1}`))
	require.ErrorContains(t, err, "8 octets")
}

func checkLatency(t *testing.T, got perfResult) {
	t.Helper()
	l := got.Latency
	require.NotNil(t, l)
	assert.Positive(t, got.Messages)
	assert.Equal(t, got.Op != "read" && got.Op != "atomic", l.HalfRoundTrip)
	assert.Positive(t, l.Min)
	assert.LessOrEqual(t, l.Min, l.P50)
	assert.LessOrEqual(t, l.P50, l.P90)
	assert.LessOrEqual(t, l.P90, l.P99)
	assert.LessOrEqual(t, l.P99, l.P999)
	assert.LessOrEqual(t, l.P999, l.Max)
	assert.LessOrEqual(t, l.Min, l.Mean)
	assert.LessOrEqual(t, l.Mean, l.Max)
}

func TestWithPort(t *testing.T) {
	for addr, want := range map[string]string{
		"":             ":7175",
		"host":         "host:7175",
		"host:1":       "host:1",
		"127.0.0.1":    "127.0.0.1:7175",
		"::1":          "[::1]:7175",
		"[::1]":        "[::1]:7175",
		"[::1]:1":      "[::1]:1",
		"[fe80::1%lo]": "[fe80::1%lo]:7175",
		"[::1":         "[[::1]:7175", // left for net to refuse
	} {
		assert.Equal(t, want, cli.WithPort(addr, perfPort), addr)
	}
}

func TestPerfPrintsTable(t *testing.T) {
	s := clitest.StartServer(t, "perf", "server", "127.0.0.1:0")
	for what, head := range map[string]string{
		"bw":  `octets +messages +seconds +GB/s +M/s`,
		"lat": `octets +round trips +min +mean +p50 +p90 +p99 +p99.9 +max`,
	} {
		r := clitest.Run(t.Context(), "perf", "send", what, s.Addr, "--size", "64,65", "--duration", "2ms", "--event")
		require.Zero(t, r.Status, r.Stderr)
		assert.Regexp(t, head, r.Stdout)
		assert.Equal(t, 4, strings.Count(r.Stdout, "\n"), r.Stdout)
	}
}

func TestPerfServerRefuses(t *testing.T) {
	s := clitest.StartServer(t, "perf", "server", "127.0.0.1:0")
	f := cli.DefaultConnFlags()
	_, err := measure(t.Context(), s.Addr, &f, perfRun{Op: "dance", Size: 1, Depth: 1})
	assert.ErrorContains(t, err, `unknown operation "dance"`)
}

func TestParsePerfRun(t *testing.T) {
	good := perfRun{Op: "write", Latency: true, Size: 64, Depth: 1, Memory: &endpoint.RemoteBuffer{STag: 1, TO: 2}, Duration: time.Second}
	got, err := parsePerfRun(endpoint.Marshal(good))
	require.NoError(t, err)
	assert.Equal(t, good, got)

	for name, change := range map[string]func(*perfRun){
		"unknown operation": func(r *perfRun) { r.Op = "" },
		"out of range":      func(r *perfRun) { r.Size = 0 },
		"or depth":          func(r *perfRun) { r.Depth = maxPerfDepth + 1 },
		"no memory":         func(r *perfRun) { r.Memory = nil },
	} {
		bad := good
		change(&bad)
		_, err := parsePerfRun(endpoint.Marshal(bad))
		assert.ErrorContains(t, err, name)
	}
	_, err = parsePerfRun([]byte("hello"))
	assert.ErrorContains(t, err, "not that of rnic perf")
}

// Neither a wrong first nor a wrong last message goes unnoticed.
func TestVerifyStream(t *testing.T) {
	const size = 100
	m := perfMemory{buf: make([]byte, 4*size), size: size}
	firstPattern.Fill(m.buf[m.sinkFirst():][:size], 0)
	lastPattern.Fill(m.buf[m.sinkRest():][:size], 0)
	require.NoError(t, m.verifyStream())
	m.buf[m.sinkFirst()+3]++
	assert.ErrorContains(t, m.verifyStream(), "the first message differs from what was sent at octet 3 of 100")
	m.buf[m.sinkFirst()+3]--
	m.buf[m.sinkRest()+99]++
	assert.ErrorContains(t, m.verifyStream(), "the last message differs from what was sent at octet 99 of 100")
}

func TestPerfSuite(t *testing.T) {
	r := clitest.Run(t.Context(), "perf", "suite", "--lines", "--duration", "2ms", "--qps", "1,3")
	require.Zero(t, r.Status, r.Stderr)
	want := []string{
		"lat64_p50 us", "lat64_p99 us", "lat64_event_p50 us", "rate64 M/s",
		"bw4096 GB/s", "bw65536 GB/s", "bw1048576 GB/s",
		"rdma_write_rate64 M/s", "rdma_write_bw4096 GB/s", "rdma_write_bw65536 GB/s", "rdma_write_bw1048576 GB/s",
		"rdma_write_lat64 us",
		"rdma_read_rate64 M/s", "rdma_read_bw4096 GB/s", "rdma_read_bw65536 GB/s", "rdma_read_bw1048576 GB/s",
		"rdma_read_lat64_rtt us",
	}
	many := []string{"many1_rate k/s", "many1_cpu us", "many3_rate k/s", "many3_cpu us"}
	if runtime.GOOS == "windows" {
		many = []string{"many1_rate k/s", "many3_rate k/s"}
	}
	want = append(want, many...)
	got := map[string][]string{}
	for line := range strings.Lines(r.Stdout) {
		word := strings.Fields(line)
		require.Len(t, word, 4, line)
		assert.Regexp(t, `^[0-9]+\.[0-9]+$`, word[2])
		got[word[1]] = append(got[word[1]], word[0]+" "+word[3])
	}
	assert.Len(t, got, 3)
	assert.ElementsMatch(t, want, got["ours"])
	assert.ElementsMatch(t, want, got["ours-crc"])
	assert.ElementsMatch(t, many, got["ours-poll"])
}

// Either part can be left out.
func TestPerfSuiteOnly(t *testing.T) {
	for only, first := range map[string]string{"one": "lat64_p50", "many": "many2_rate"} {
		r := clitest.Run(t.Context(), "perf", "suite", "--json", "--duration", "1ms", "--qps", "2", "--only", only)
		require.Zero(t, r.Status, r.Stderr)
		var values []suiteValue
		clitest.Decode(t, r.Stdout, &values)
		require.NotEmpty(t, values)
		assert.Equal(t, first, values[0].Metric)
		for _, v := range values {
			assert.Equal(t, only == "many", strings.HasPrefix(v.Metric, "many2_"), v.Metric)
		}
	}
}

func TestPrintSuite(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printSuite(&out, []suiteValue{
		{Metric: "rate64", Value: 1.5, Unit: "M/s"},
		{Metric: "rate64", CRC: true, Value: 0.5, Unit: "M/s"},
		{Metric: "many1_cpu", Poll: true, Value: 25, Unit: "us"},
	}))
	assert.Regexp(t, `many1_cpu, polling +25\.000 +- +us`, out.String())
	assert.Regexp(t, `rate64 +1\.500 +0\.500 +M/s`, out.String())
}

func TestPerfBaseline(t *testing.T) {
	r := clitest.Run(t.Context(), "perf", "baseline", "--json", "--rounds", "2", "--duration", "20ms")
	require.Zero(t, r.Status, r.Stderr)
	var rows []baselineRow
	clitest.Decode(t, r.Stdout, &rows)
	require.Len(t, rows, len(baselineRuns))
	for _, row := range rows {
		assert.False(t, row.CRC)
		assert.Positive(t, row.Ours, row.What)
		assert.Positive(t, row.Plain, row.What)
		assert.InEpsilon(t, row.Ours/row.Plain, row.Ratio, 1e-9)
	}

	var out bytes.Buffer
	require.NoError(t, printBaseline(&out, rows))
	assert.Equal(t, 1+len(rows), strings.Count(out.String(), "\n"))
}

func TestServePlainRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host := openHost(t, 2, time.Minute) // the first may still be leaving when the second comes
	var log clitest.LockedBuffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		servePlain(l, host, cli.NewLogger(&log))
	}()
	for _, run := range []plainRun{{Size: 0}, {Size: maxPerfSize + 1}} {
		_, err := dialPlain(t.Context(), l.Addr().String(), run)
		assert.Error(t, err)
	}
	l.Close()
	<-done
	assert.Equal(t, 2, strings.Count(log.String(), "out of range"))
}
