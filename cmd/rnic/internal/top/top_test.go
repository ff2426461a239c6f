//go:build unix

package top

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// offering is a process, this one, with a queue pair that has sent 64 octets.
func offering(t *testing.T, path string) *stats.Server {
	x, y := rnictest.Pair(t, rnictest.Config{Loopback: true})
	_, sink := y.Memory(64)
	_, source := x.Memory(64)
	_, err := y.QP.PostRecv(verbs.Recv{SGL: sink.All()})
	require.NoError(t, err)
	x.Post(verbs.Request{SGL: source.All()})
	x.Wait()
	y.Wait()
	s, err := stats.Offer(path, func() []*verbs.RNIC { return []*verbs.RNIC{x.NIC} })
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func command(t *testing.T, args ...string) (string, error) {
	return clitest.Execute(t.Context(), Command(), args...)
}

// TestTop finds the socket of a process, or takes the one it is given, and prints one table where there is no terminal.
func TestTop(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	_, err := command(t)
	require.ErrorContains(t, err, "--stats")
	offering(t, "")
	other := offering(t, filepath.Join(t.TempDir(), "s"))
	for _, args := range [][]string{nil, {other.Path()}} {
		text, err := command(t, append(args, "--interval", "10ms")...)
		require.NoError(t, err)
		assert.Contains(t, text, "1 QPs, 1 streams")
		assert.Contains(t, text, "RTS")
		assert.Equal(t, 4, strings.Count(text, "\n"), text)
	}
	text, err := command(t, "--counters")
	require.NoError(t, err)
	assert.Contains(t, text, "  out_octets[send] 64\n")
	text, err = command(t, "--json")
	require.NoError(t, err)
	var all []stats.Snapshot
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	assert.Len(t, all, 1)
	_, err = command(t, "--json", "--counters")
	require.Error(t, err)
	_, err = command(t, "/nowhere")
	require.Error(t, err)
}

func snapshot(at time.Time, state string, out, in, failed uint64) stats.Snapshot {
	q := stats.QP{ID: 5, State: state, Remote: "192.0.2.1:7174", Values: stats.Values{
		Counters: map[string]uint64{"send_queue": 3, "out_reads": 2},
		By: map[string]map[string]uint64{
			"out_octets": {"write": out}, "out_messages": {"write": out / 1000}, "in_octets": {"send": in}, "in_messages": {"send": in / 1000},
			"completions": {"Success": 10, "Flushed": failed},
		},
	}}
	return stats.Snapshot{Program: "p\x1b[2J", PID: 7, Time: at, RNICs: []stats.RNIC{{ID: "x", QPs: []stats.QP{q}}}}
}

// TestRates: what has happened between two looks, in a second.
func TestRates(t *testing.T) {
	begin := time.Unix(1000, 0)
	before := []stats.Snapshot{snapshot(begin, "RTS", 1e6, 5000, 0)}
	now := []stats.Snapshot{snapshot(begin.Add(2*time.Second), "RTS", 5e6, 9000, 4)}
	rows := rates(before, now)
	require.Len(t, rows, 1)
	assert.Equal(t, rate{2000, 2e6}, rows[0].out)
	assert.Equal(t, rate{2, 2000}, rows[0].in)
	assert.EqualValues(t, 4, rows[0].failed)
	text := table(rows, now, 0)
	assert.Contains(t, text, "192.0.2.1:7174")
	assert.NotContains(t, text, "\x1b", "what another process says does nothing to the terminal")
	assert.Equal(t, rate{}, rates(now, before)[0].out, "another queue pair of that name")
	assert.Equal(t, rate{}, rates(nil, now)[0].out, "nothing to compare with")
}

// TestNames: NICs that have names are told apart by them, also by what each has counted in all.
func TestNames(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(at time.Time, first, second uint64) stats.Snapshot {
		p, other := snapshot(at, "RTS", first, 0, 0), snapshot(at, "RTS", second, 0, 0)
		p.RNICs = append(p.RNICs, other.RNICs...)
		p.RNICs[0].Name, p.RNICs[1].ID, p.RNICs[1].Name = "mlx5_0", "y", "mlx5\x1b_1"
		for i, n := range []uint64{first, second} {
			p.RNICs[i].By = map[string]map[string]uint64{"out_octets": {"write": n}}
		}
		return p
	}
	before, now := []stats.Snapshot{at(begin, 1e6, 1e6)}, []stats.Snapshot{at(begin.Add(time.Second), 3e6, 8e6)}
	rows := rates(before, now)
	require.Len(t, rows, 2)
	assert.Equal(t, []float64{7e6, 2e6}, []float64{rows[0].out.octets, rows[1].out.octets}, "the same number of a queue pair on either")
	text := table(rows, now, 0)
	assert.Regexp(t, `(?m)^ +PID +NIC +QP`, text)
	assert.Regexp(t, `(?m)^ +7 +mlx5_0 +5 +RTS`, text)
	assert.Contains(t, text, "[7] mlx5_0: 0 QPs")
	assert.Contains(t, text, "3.0 MB out")
	assert.Contains(t, text, "8.0 MB out")
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, table(rates(nil, []stats.Snapshot{snapshot(begin, "RTS", 1, 1, 0)}), nil, 0), "NIC", "they have none")
}

// TestScreen: it has no more lines and columns than the terminal.
func TestScreen(t *testing.T) {
	assert.Equal(t, "\x1b[Ha\x1b[K\nb\x1b[K\nq quits\x1b[K\x1b[J", screen("a\nb\n", 24, 80))
	assert.Equal(t, "\x1b[Ha\x1b[K\nb\x1b[K\nq quits\x1b[K\x1b[J", screen("a\nb\n", 3, 80))
	assert.Equal(t, "\x1b[Ha\x1b[K\n2 lines more; q quits\x1b[K\x1b[J", screen("a\nb\nc\n", 2, 80))
	assert.Equal(t, "\x1b[Hab\x1b[K\nq \x1b[K\x1b[J", screen("abcd\n", 24, 2))
}

// TestWidth: at each width no line is longer, none is cut, and what is left out is named.
func TestWidth(t *testing.T) {
	begin := time.Unix(1000, 0)
	before := []stats.Snapshot{snapshot(begin, "RTS", 1e6, 5000, 0)}
	now := []stats.Snapshot{snapshot(begin.Add(time.Second), "RTS", 987e9, 876e9, 1234567)}
	rows := rates(before, now)
	wide := table(rows, now, 0)
	words := map[string]bool{}
	for _, w := range strings.Fields(wide) {
		words[w] = true
	}
	for width := 45; width < 200; width++ {
		text := table(rows, now, width)
		head, said := "", strings.Contains(text, "not shown for want of width: ")
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, len(line)-1, width, "%d: %q", width, line)
			if strings.Contains(line, "PID") {
				head = line
			}
			if !strings.Contains(line, "not shown") && !strings.HasPrefix(line, "    ") {
				for _, w := range strings.Fields(line) {
					require.True(t, words[w], "%d: %q is cut: %s", width, w, line)
				}
			}
		}
		require.Contains(t, head, "OUT msg/s", "%d", width)
		require.Equal(t, !strings.Contains(head, "READS out") || !strings.Contains(head, "PEER"), said, "%d: %s", width, text)
	}
	assert.Contains(t, table(rows, now, 80), "1234567", "FAILED is worth more than where the peer is")
}

// TestQuitKey: what ends it, and what does not.
func TestQuitKey(t *testing.T) {
	for keys, want := range map[string]bool{"q": true, "Q": true, "xq": true, "\x03": true, "x": false, "": false, "\x1b[A": false} {
		assert.Equal(t, want, quitKey([]byte(keys)), "%q", keys)
	}
}

// FuzzTable: whatever other processes say of themselves, the terminal gets lines of what can be printed, no longer than it is.
func FuzzTable(f *testing.F) {
	now := time.Unix(1000, 0)
	seed, err := json.Marshal([]stats.Snapshot{snapshot(now, "RTS", 1e6, 5000, 0)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, seed)
	f.Fuzz(func(t *testing.T, was, is []byte) {
		var before, now []stats.Snapshot
		if json.Unmarshal(was, &before) != nil || json.Unmarshal(is, &now) != nil {
			return
		}
		var text bytes.Buffer
		text.WriteString(table(rates(before, now), now, 80))
		require.NoError(t, counters(&text, now))
		for _, r := range text.String() {
			require.False(t, r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0), "%q", text.String())
		}
		for line := range strings.Lines(strings.ReplaceAll(screen(text.String(), 24, 80), "\x1b[K", "")) {
			require.LessOrEqual(t, len([]rune(line)), 80+8)
		}
	})
}
