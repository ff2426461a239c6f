package trace_test

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"

	"github.com/softrnic/softrnic/lab/trace"
	"github.com/softrnic/softrnic/verbs"
)

// The last records of an RNIC, for when something has failed: ring.Dump(os.Stderr) has them with their times.
func ExampleRing() {
	ring := trace.NewRing(10_000)
	nic, err := verbs.Open(verbs.Config{Trace: ring.Add})
	if err != nil {
		log.Fatal(err)
	}
	pd, err := nic.AllocatePD()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pd.Register(make([]byte, 64), verbs.LocalRead); err != nil {
		log.Fatal(err)
	}
	if err := nic.Close(); err != nil {
		log.Fatal(err)
	}
	records, _ := ring.Records()
	for _, r := range records {
		fmt.Println(r.Kind, r.Name, r.Octets)
	}
	// Output: verb Register Memory Region 64
}

// A file, as the option --trace of rnic writes it, and what comes of it.
func ExampleRead() {
	var file strings.Builder
	w := trace.NewWriter(&file)
	w.Add(trace.Record{Kind: trace.Sent, QP: 3, Name: "Send", MSN: 1, Octets: 64, Last: true})
	w.Add(trace.Record{Kind: trace.State, QP: 3, Name: "close", From: verbs.StateRTS, Next: verbs.StateClosing})
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	records, err := trace.Read(io.Reader(strings.NewReader(file.String())))
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range records {
		fmt.Println(r.String())
	}
	// Output:
	// sent       Send msn=1 octets=64 last
	// state      close: RTS -> Closing
}

// Records beside a program's own log.
func ExampleSlog() {
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	l := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime}))
	nic, err := verbs.Open(verbs.Config{Trace: trace.Slog(l, slog.LevelInfo)})
	if err != nil {
		log.Fatal(err)
	}
	defer nic.Close()
	if _, err := nic.CreateCQ(verbs.CQConfig{}); err != nil {
		log.Fatal(err)
	}
	// Output: level=INFO msg="rnic verb" name="Create CQ" cq=1
}
