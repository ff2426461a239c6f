package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

// demoRows are the rows of every demo.
var demoRows = []string{
	"Send S-RQ verified ",
	"Bind window valid ",
	"Write window verified ",
	"Read window verified ",
	"SendInvalidate window invalid ",
	"Write window refused 0x1100 (DDP invalid STag)",
}

// rowsOf is what does not differ from run to run.
func rowsOf(results []demoResult) []string {
	var rows []string
	for _, r := range results {
		rows = append(rows, fmt.Sprint(r.Op, " ", r.Target, " ", r.Outcome, " ", r.Terminate))
	}
	return rows
}

func TestDemo(t *testing.T) {
	tests := []struct {
		name  string
		bytes uint64
		flags string
	}{
		{"default flags", 9<<20 + 5, ""},
		{"least", 3, ""},
		{"no CRC", 5 << 20, "--crc off"},
		{"markers, revision 1", 3 << 20, "--markers --mpa-rev 1"},
		{"peer-to-peer, one read at a time", 3 << 20, "--p2p --ird 1 --ord 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"demo", "--json", "--bytes", fmt.Sprint(tt.bytes)}, strings.Fields(tt.flags)...)
			r := clitest.Run(t.Context(), args...)
			require.Zero(t, r.Status, r.Stderr)
			assert.Empty(t, r.Stderr)
			var report demoReport
			clitest.Decode(t, r.Stdout, &report)
			assert.Equal(t, tt.bytes, report.Bytes)
			assert.Equal(t, tt.bytes, report.Verified)
			assert.Equal(t, !strings.Contains(tt.flags, "--crc off"), report.CRC)
			assert.Equal(t, demoRows, rowsOf(report.Ops))
			for _, op := range report.Ops {
				assert.Equal(t, op.Bytes, op.Verified)
				assert.Positive(t, op.Messages)
				assert.Positive(t, op.Seconds)
				assert.Equal(t, op.Bytes > 0, op.GBps > 0)
			}
		})
	}
}

func TestDemoPrintsTable(t *testing.T) {
	r := clitest.Run(t.Context(), "demo", "--bytes", "300")
	require.Zero(t, r.Status, r.Stderr)
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	want := []string{
		`operation +target +octets +messages +seconds +GB/s +outcome`,
		` *Send +S-RQ +100 +1 .* verified`,
		` *Bind +window +- +1 .* - +valid`,
		` *Write +window +100 +1 .* verified`,
		` *Read +window +100 +1 .* verified`,
		` *SendInvalidate +window +- +1 .* - +invalid`,
		` *Write +window +- +1 .* - +refused`,
		``,
		`300 octets between two processes in .* s, CRC on; all verified`,
		`The last Write was refused as it should be: Terminate 0x1100 \(DDP invalid STag\)`,
		`RDMA Write of [0-9]+ octets at TO 0x[0-9a-f]+ of STag 0x[0-9a-f]{8} refused: the peer says 0x1100 .*: write to memory .*`,
	}
	require.Len(t, lines, len(want), r.Stdout)
	for i := range want {
		assert.Regexp(t, "^ *"+want[i]+"$", lines[i])
	}
}

// The table fits a terminal of 80 columns also when there is much to move.
func TestDemoTableIsNarrow(t *testing.T) {
	var results []demoResult
	for _, s := range (&demoClient{}).steps() {
		results = append(results, demoResult{
			Op: s.op.String(), Target: s.target, Bytes: 100e9, Messages: 508_000, Seconds: 160.123, GBps: 0.62,
			Outcome: "verified", Terminate: demoRefusal.String(),
		})
	}
	var b strings.Builder
	require.NoError(t, newDemoReport(results, 8*time.Minute, true).print(&b))
	for line := range strings.Lines(b.String()) {
		assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 80, line)
	}
}

// The messages of a transfer cover it without a gap, and the shares add up.
func TestDemoPlan(t *testing.T) {
	for _, total := range []uint64{3, 4, 5, 1 << 20, 10<<20 + 1} {
		plan := demoPlan{Bytes: total, Seed: 1}
		var sum uint64
		for i := range demoOps {
			var next uint64
			count := 0
			for m := plan.messages(i); m.more(); count++ {
				got := m.next()
				assert.Equal(t, message{count, next, got.length}, got)
				assert.Positive(t, got.length)
				assert.LessOrEqual(t, got.length, demoSlotSize)
				next += uint64(got.length)
			}
			assert.Equal(t, plan.share(i), next)
			sum += next
		}
		assert.Equal(t, total, sum)
	}
}

// Each transfer has data of its own, so that what the one before left behind
// does not pass.
func TestDemoVerify(t *testing.T) {
	d := &demoEnd{plan: demoPlan{Bytes: 3000, Seed: 99}}
	m := message{index: 2, offset: 7, length: 100}
	data := make([]byte, 100)
	d.plan.pattern(1).Fill(data, 7)
	require.NoError(t, d.verify(1, m, data))
	assert.ErrorContains(t, d.verify(0, m, data), "Send 2 differs")
	assert.ErrorContains(t, d.verify(1, m, data[:99]), "Write 2 has 99 octets, want 100")
	data[55]++
	assert.ErrorContains(t, d.verify(1, m, data), "at octet 55 of 100")
}

// A server may begin the next transfer before the client has seen the end of
// the last: with transfers of one message this happens now and then.
func TestDemoTransfersFollowClosely(t *testing.T) {
	f := cli.DefaultConnFlags()
	for range 100 {
		address := make(chan string, 1)
		served := make(chan error, 1)
		go func() {
			served <- serveDemo(t.Context(), &f, func(a string) error {
				address <- a
				return nil
			})
		}()
		results, err := runDemoClient(t.Context(), <-address, &f, demoPlan{Bytes: 3, Seed: 5}, &cli.Progress{})
		require.NoError(t, err)
		require.Equal(t, demoRows, rowsOf(results))
		require.NoError(t, <-served)
	}
}
