package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

func records(n int) (list []Record) {
	for i := range n {
		list = append(list, Record{Time: int64(1e18) + int64(i)*2000, Kind: Sent, QP: 4, Name: "Write", STag: 0x100, TO: uint64(i) * 10, Octets: 10, Last: i == n-1})
	}
	return list
}

func TestRing(t *testing.T) {
	g := NewRing(3)
	for i, r := range records(5) {
		g.Add(r)
		kept, gone := g.Records()
		require.Len(t, kept, min(i+1, 3))
		require.Equal(t, r, kept[len(kept)-1])
		require.EqualValues(t, max(i-2, 0), gone)
	}
	var text bytes.Buffer
	require.NoError(t, g.Dump(&text))
	require.Equal(t, `(2 records before these are gone)
2001-09-09T01:46:40.000004Z
     seconds      since  qp     what
    0.000000             4      sent       Write stag=0x00000100 to=0x14 octets=10
    0.000002        2µs  4      sent       Write stag=0x00000100 to=0x1e octets=10
    0.000004        2µs  4      sent       Write stag=0x00000100 to=0x28 octets=10 last
`, strings.ReplaceAll(text.String(), "+00:00", "Z"))
	require.Zero(t, testing.AllocsPerRun(100, func() { g.Add(Record{}) }))
}

// A line of a file is as it always was, zeros left out but for the time.
func TestLine(t *testing.T) {
	const text = `{"time":5,"kind":"state","qp":1,"name":"close","from":"Idle","next":"RTS","code":4608}` + "\n" +
		`{"time":6,"kind":"sent","qp":1,"name":"Write","stag":256,"to":16,"octets":10,"last":true}` + "\n" +
		`{"time":7,"kind":"completed","qp":1,"cq":2,"name":"Recv","id":3,"octets":8,"note":"Success"}` + "\n"
	list, err := Read(strings.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, []Record{
		{Time: 5, Kind: State, QP: 1, Name: "close", Next: wr.StateRTS, Code: 0x1200},
		{Time: 6, Kind: Sent, QP: 1, Name: "Write", STag: 0x100, TO: 16, Octets: 10, Last: true},
		{Time: 7, Kind: Completed, QP: 1, CQ: 2, Name: "Recv", ID: 3, Octets: 8, Note: "Success"},
	}, list)
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, r := range list {
		w.Add(r)
	}
	require.NoError(t, w.Close())
	require.Equal(t, text, b.String())
	_, err = Read(strings.NewReader(`{"time":5,"kind":"state","from":"Idle","next":"Gone"}` + "\n"))
	require.ErrorContains(t, err, `line 1 is no record: no state "Gone"`)
}

// Every field comes back from a file; and a file whose last line was cut is read up to there.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t")
	w, err := Create(path)
	require.NoError(t, err)
	all := append(records(3), Record{
		Time: 1, Kind: State, QP: 1, CQ: 2, Name: "n", ID: 3, STag: 4, TO: 5, MSN: 6, MO: 7, Octets: 8, Last: true, From: wr.StateClosing, Next: wr.StateIdle, Code: 9, Note: "<x>",
	})
	for _, r := range all {
		w.Add(r)
	}
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "twice")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, st.Mode().Perm())
	got, err := Read(bytes.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, all, got)

	got, err = Read(bytes.NewReader(text[:len(text)-9]))
	require.NoError(t, err)
	require.Equal(t, all[:3], got)
	_, err = Read(strings.NewReader("{\"kind\":\"sent\"}\n{\"kind\":\"nonsense\"}\n"))
	require.ErrorContains(t, err, "line 2 is no record")

	_, err = Read(strings.NewReader("{}\n"))
	require.ErrorContains(t, err, "line 1 is no record: it has no kind")
	_, err = Read(strings.NewReader("[[[["))
	require.ErrorContains(t, err, "there is no record in it")
	got, err = Read(strings.NewReader(""))
	require.NoError(t, err, "of a program that did nothing")
	require.Empty(t, got)

	w, err = Append(path)
	require.NoError(t, err)
	w.Add(all[0])
	require.NoError(t, w.Close())
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	got, err = Read(bytes.NewReader(text))
	require.NoError(t, err)
	require.Len(t, got, 5)
}

// blocked is a file that takes nothing until a signal, or fails by it.
type blocked chan error

func (b blocked) Write(p []byte) (int, error) {
	if err := <-b; err != nil {
		return 0, err
	}
	return len(p), nil
}

// A file that blocks, and then fails, costs records, which are counted, and Add does not wait for it.
func TestFileThatBlocks(t *testing.T) {
	b := make(blocked)
	w := NewWriter(b)
	for range 2 * queued {
		w.Add(Record{Kind: Sent})
	}
	b <- errors.New("disk full")
	err := w.Close()
	require.ErrorContains(t, err, "disk full")
	require.ErrorContains(t, err, "records were lost")
}

func TestSlog(t *testing.T) {
	var text bytes.Buffer
	l := slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelInfo}))
	Slog(l, slog.LevelDebug)(records(1)[0])
	require.Empty(t, text.String())
	Slog(l, slog.LevelInfo)(Record{Kind: State, QP: 4, Name: "error", From: wr.StateRTS, Next: wr.StateTerminate, Code: 0x1202})
	var got map[string]any
	require.NoError(t, json.Unmarshal(text.Bytes(), &got))
	delete(got, "time")
	require.Equal(t, map[string]any{"level": "INFO", "msg": "rnic state", "qp": 4.0, "name": "error", "from": "RTS", "next": "Terminate", "terminate": 4610.0}, got)
}

func TestHTML(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, HTML(&text, "a <title>", []Record{{Kind: Fault, Name: "</script><script>"}}))
	require.Contains(t, text.String(), "a &lt;title&gt;")
	require.Equal(t, 1, strings.Count(text.String(), "</script>"))
	text.Reset()
	most := []Record{{Time: 1e18 + 1}, {Time: 1e18 + 124, Kind: Posted, ID: 1<<64 - 1, STag: 7, TO: 1<<63 + 1}, {Kind: Completed}}
	require.NoError(t, HTML(&text, "beyond a script's numbers", most))
	for _, want := range []string{`"since":123`, `"id":"18446744073709551615"`, `"to":"0x8000000000000001"`, `"time":"2001-09-09T01:46:40.000000124Z"`, `"id":"0"`} {
		require.Contains(t, text.String(), want)
	}
	text.Reset()
	require.NoError(t, HTML(&text, "none", nil))
}

// TestEnds: records of several ends stand by their time, each with its end; those of the same time in the order of the ends.
func TestEnds(t *testing.T) {
	a := []Record{{Time: 1000, Kind: Sent, QP: 3, Name: "Send"}, {Time: 3000, Kind: Completed, QP: 3, Name: "Send"}}
	b := []Record{{Time: 2000, Kind: Received, QP: 3, Name: "Send"}, {Time: 3000, Kind: Completed, QP: 3, Name: "Recv"}}
	var text bytes.Buffer
	require.NoError(t, Ends{{"client", a}, {"srv", b}}.Timeline(&text))
	lines := strings.Split(text.String(), "\n")
	require.Regexp(t, `seconds +since  end     qp     what$`, lines[1])
	for i, want := range []string{`0.000000 +client  3 +sent +Send`, `0.000001 +1µs  srv     3 +received +Send`, `0.000002 +1µs  client  3 +completed +Send`, `0.000002 +0s  srv     3 +completed +Recv`} {
		require.Regexp(t, want, lines[2+i])
	}
	text.Reset()
	require.NoError(t, Ends{{"client", a}, {"</script>", b}}.HTML(&text, "both"))
	require.Contains(t, text.String(), `"end":"client","time":"1970-01-01T00:00:00.000003Z"`)
	require.Equal(t, 1, strings.Count(text.String(), "</script>"))
	text.Reset()
	require.NoError(t, Ends{{"client", a}}.HTML(&text, "one"))
	require.NotContains(t, text.String(), `"end"`)
	require.NoError(t, Ends{}.HTML(&text, "none"))
	require.NoError(t, Ends{}.Timeline(&text))
}

func TestKinds(t *testing.T) {
	for k := Verb; k <= Lost; k++ {
		text, err := k.MarshalText()
		require.NoError(t, err)
		var got Kind
		require.NoError(t, got.UnmarshalText(text))
		require.Equal(t, k, got)
	}
	require.Equal(t, "Kind(99)", Kind(99).String())
}

// endless is a file without an end, or a line's.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	e.n += len(b)
	if e.n > 1<<30 {
		return 0, io.EOF
	}
	return len(b), nil
}

// TestEndlessLine: what has no lines is refused before it is all in memory.
func TestEndlessLine(t *testing.T) {
	e := &endless{}
	_, err := Read(e)
	require.ErrorContains(t, err, "line 1 is no record: it has more than")
	require.Less(t, e.n, 4<<20)
}

func FuzzRead(f *testing.F) {
	var text bytes.Buffer
	w := NewWriter(&text)
	w.Add(records(1)[0])
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		require.NoError(t, Timeline(&bytes.Buffer{}, list))
		require.NoError(t, HTML(&bytes.Buffer{}, "x", list))
	})
}
