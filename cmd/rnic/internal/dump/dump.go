// Package dump is `rnic dump`, which decodes captures.
package dump

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/dissect"
)

// Command makes `rnic dump`, which decodes captures. Its exit status is
// 1 if a protocol rule was broken and 2 if the file cannot be read.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Decode the iWARP connections of a packet capture and check protocol rules",
		Long: `dump finds every MPA connection in a pcap or pcapng file, decodes it, checks
CRCs, and names each MUST of RFC 5040, 5041, 5044, 6581 and 7306 that the
capture proves broken. FILE is - for standard input.

What the capture does not have is said: packets that are missing in the middle,
or were not captured whole. Behind them the next FPDU is looked for.

--frames lists each FPDU with its time, packet, fields and payload; with --json
as one JSON object a line, and a last one with the report. --follow shows each
FPDU as it comes, and goes on when a file ends, for what is written to it, until
it is stopped.

Exit status: 0 no rule is broken, 1 at least one is, 2 the file cannot be read.`,
		Args: cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := cli.OpenInput(cmd, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			if file, ok := in.(*os.File); ok && o.follow {
				if info, err := file.Stat(); err == nil && info.Mode().IsRegular() { // the end of a pipe is its end
					in = following{in, cmd.Context()}
				}
			}
			return dump(cmd.OutOrStdout(), args[0], in, o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&o.frames, "frames", false, "list each FPDU with its time, packet, fields and payload")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "go on when the file ends, until stopped")
	return cmd
}

// options are the flags.
type options struct{ json, frames, follow bool }

// following reads a file that grows: at its end it waits for more, until the context ends.
type following struct {
	io.ReadCloser
	ctx context.Context
}

// followEvery is how often it looks.
const followEvery = 100 * time.Millisecond

func (f following) Read(b []byte) (int, error) {
	for {
		n, err := f.ReadCloser.Read(b)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		select {
		case <-f.ctx.Done():
			return 0, io.EOF
		case <-time.After(followEvery):
		}
	}
}

func dump(w io.Writer, name string, in io.Reader, o options) error {
	out := bufio.NewWriter(w)
	asJSON := o.json
	var visit func(dissect.FPDU)
	switch {
	case o.frames && asJSON:
		visit = func(f dissect.FPDU) { _ = json.NewEncoder(out).Encode(frameOf(f)) }
	case o.frames:
		visit = func(f dissect.FPDU) { printFrame(out, f) }
	case !asJSON:
		visit = func(f dissect.FPDU) { fmt.Fprintln(out, fpduLine(f)) }
	}
	if show := visit; o.follow && visit != nil {
		visit = func(f dissect.FPDU) {
			show(f)
			_ = out.Flush() // an error comes again at the end
		}
	}
	report, err := dissect.Read(in, visit)
	switch {
	case !asJSON && (err == nil || len(report.Connections) > 0):
		printReport(out, report)
	case asJSON && o.frames && err == nil:
		if err := json.NewEncoder(out).Encode(report); err != nil { // on one line, as the frames
			return err
		}
	case asJSON && err == nil:
		if err := cli.PrintJSON(out, report); err != nil {
			return err
		}
	}
	if flushErr := out.Flush(); flushErr != nil {
		return flushErr
	}
	if err != nil {
		return cli.WithStatus(2, fmt.Errorf("%s: %w", name, err))
	}
	if report.Violations() > 0 {
		return cli.WithStatus(1, nil)
	}
	return nil
}

// fpduLine is an FPDU on one line: connection, direction, number, what it is,
// and the verdict on its CRC.
func fpduLine(f dissect.FPDU) string {
	arrow, last := "->", ""
	if !f.FromClient {
		arrow = "<-"
	}
	if f.Last {
		last = " L"
	}
	return fmt.Sprintf("%d %s #%-5d %-16s %s, %d octets%s, crc %s",
		f.Connection, arrow, f.Number, f.Op, f.Detail, f.Octets, last, f.CRC)
}

// printReport writes a summary of each connection, and what rules it broke.
func printReport(w io.Writer, r *dissect.Report) {
	for i, c := range r.Connections {
		fmt.Fprintf(w, "\nconnection %d: client %s, server %s\n", i+1, c.Client, c.Server)
		fmt.Fprintf(w, "  request: %s\n  reply:   %s\n", startupText(c.MPA.Request), startupText(c.MPA.Reply))
		for _, s := range c.Streams {
			fmt.Fprintf(w, "  from %s: %d FPDUs%s; crc %d ok, %d zero, %d bad",
				s.From, s.FPDUs, opsText(s.Ops), s.CRC.OK, s.CRC.Zero, s.CRC.Bad)
			if s.Incomplete > 0 {
				fmt.Fprintf(w, "; %d octets of a partial FPDU", s.Incomplete)
			}
			fmt.Fprintln(w)
			for _, g := range s.Gaps {
				fmt.Fprintf(w, "    %s\n", gapText(g))
			}
			for _, t := range s.Terminates {
				fmt.Fprintf(w, "    #%d Terminate 0x%s: %s\n", t.FPDU, t.Raw, t.Text)
			}
			for _, v := range s.Violations {
				fmt.Fprintf(w, "    %s VIOLATION %s: %s\n", placeText(v.FPDU), v.Rule, v.Text)
			}
		}
	}
	if r.Short > 0 {
		fmt.Fprintf(w, "%d packets were not captured whole, %d octets of them at most: what is behind them is missing; "+
			"capture with a longer snap length (tcpdump -s 0)\n", r.Short, r.Snap)
	}
	if r.Lost > 0 {
		fmt.Fprintf(w, "the capture says that %d packets are missing from it\n", r.Lost)
	}
	if r.Cut {
		fmt.Fprintln(w, "the file ends within a packet")
	}
	fmt.Fprintf(w, "\n%d MPA connections, %d violations\n", len(r.Connections), r.Violations())
}

func placeText(fpdu int) string {
	if fpdu == 0 {
		return "startup"
	}
	return fmt.Sprintf("#%d", fpdu)
}

// opsText is the counts by opcode, in the order of their names.
func opsText(ops map[string]int) string {
	var parts []string
	for op, n := range ops {
		parts = append(parts, fmt.Sprintf("%s %d", op, n))
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return " (" + strings.Join(parts, ", ") + ")"
}

func startupText(s *dissect.Startup) string {
	if s == nil {
		return "not in the capture, or malformed"
	}
	parts := []string{fmt.Sprintf("rev %d", s.Rev)}
	for _, flag := range []struct {
		set  bool
		text string
	}{{s.Reject, "rejected"}, {s.CRC, "CRC"}, {s.Markers, "markers"}, {s.P2P, "peer-to-peer"}} {
		if flag.set {
			parts = append(parts, flag.text)
		}
	}
	if s.Enhanced {
		parts = append(parts, "IRD "+depthText(*s.IRD), "ORD "+depthText(*s.ORD))
	}
	if len(s.RTR) > 0 {
		parts = append(parts, "RTR "+strings.Join(s.RTR, "|"))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d octets of private data", s.PrivateDataLen)), ", ")
}

// depthText is an IRD or ORD; 0x3FFF leaves it open (RFC 6581 9.1).
func depthText(depth uint16) string {
	if depth == 0x3FFF {
		return "open"
	}
	return fmt.Sprint(depth)
}
