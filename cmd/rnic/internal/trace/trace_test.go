package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/lab/trace"
)

func TestTrace(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "t"), filepath.Join(dir, "t.html")
	w, err := trace.Create(file)
	require.NoError(t, err)
	w.Add(trace.Record{Time: 2000, Kind: trace.Completed, QP: 5, Name: "Recv"})
	w.Add(trace.Record{Time: 1000, Kind: trace.Received, QP: 4, Name: "Send"})
	w.Add(trace.Record{Time: 3000, Kind: trace.Lost, Name: "7 records"})
	require.NoError(t, w.Close())

	r := clitest.Run(t.Context(), "trace", file)
	require.Zero(t, r.Status, r.Stderr)
	assert.Less(t, strings.Index(r.Stdout, "received"), strings.Index(r.Stdout, "completed"), "in the order of time")
	r = clitest.Run(t.Context(), "trace", "--qp", "5", file)
	require.Zero(t, r.Status, r.Stderr)
	assert.NotContains(t, r.Stdout, "received")
	r = clitest.Run(t.Context(), "trace", "--op", "sEn", file)
	require.Zero(t, r.Status, r.Stderr)
	assert.Contains(t, r.Stdout, "received")
	assert.NotContains(t, r.Stdout, "completed")
	assert.Contains(t, r.Stdout, "lost       7 records")
	r = clitest.Run(t.Context(), "trace", "--html", page, file)
	require.Zero(t, r.Status, r.Stderr)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"name":"Recv"`)

	r = clitest.Run(t.Context(), "trace", page)
	assert.Contains(t, r.Stderr, "line 1 is no record")
	r = clitest.Run(t.Context(), "trace", file+".none")
	assert.Equal(t, 2, r.Status)
	assert.Contains(t, r.Stderr, "no such file")
}

// TestTwoTraces: the records of two files stand by the clock, each with the name of its file, also where that is the same.
func TestTwoTraces(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i, at := range []int64{2000, 1000} {
		file := filepath.Join(dir, string(rune('a'+i))) + "/t\x1b"
		require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
		w, err := trace.Create(file)
		require.NoError(t, err)
		w.Add(trace.Record{Time: at, Kind: trace.Sent, QP: 5, Name: "Send"})
		w.Add(trace.Record{Time: at + 5000, Kind: trace.Placed, QP: 5, Name: "Send"})
		require.NoError(t, w.Close())
		files = append(files, file)
	}
	r := clitest.Run(t.Context(), "trace", files[0], files[1])
	require.Zero(t, r.Status, r.Stderr)
	assert.Regexp(t, `(?s)  t\? \(2\)  5 +sent.*  t\?      5 +sent.*  t\? \(2\)  5 +placed.*  t\?      5 +placed`, r.Stdout)
	page := filepath.Join(dir, "page")
	r = clitest.Run(t.Context(), "trace", "--html", page, files[0], files[1])
	require.Zero(t, r.Status, r.Stderr)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"end":"t? (2)"`)
	assert.Contains(t, string(text), "<title>Trace t? t? (2)</title>")

	r = clitest.Run(t.Context(), "trace")
	assert.Equal(t, 2, r.Status)
	assert.Contains(t, r.Stderr, "argument FILE is missing")
}

// TestHostileTrace: a file does nothing to the terminal, makes no lines of its own, and its times may be any.
func TestHostileTrace(t *testing.T) {
	r := clitest.RunInput(t.Context(), `{"kind":"sent","name":"\u001b[2Jevil\nline","note":"\u0007","from":"\u009b","next":"\r"}
{"kind":"state","time":9223372036854775807,"from":"Idle","next":"RTS"}
{"kind":"placed","time":-9223372036854775808}
`, "trace", "-")
	require.Zero(t, r.Status, r.Stderr)
	assert.Equal(t, 5, strings.Count(r.Stdout, "\n"), r.Stdout)
	for _, c := range r.Stdout {
		assert.False(t, c != '\n' && (c < ' ' || c >= 0x7f && c < 0xa0), "%q", r.Stdout)
	}
	assert.Less(t, strings.Index(r.Stdout, "placed"), strings.Index(r.Stdout, "sent"))
	assert.Less(t, strings.Index(r.Stdout, "sent"), strings.Index(r.Stdout, "state"))

	r = clitest.RunInput(t.Context(), `{"kind":"state","from":"\u001b","next":"RTS"}`+"\n", "trace", "-")
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, `line 1 is no record: no state "\x1b"`)
}
