package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// report collects outcomes and prints them as one table with the causes below.
type report struct {
	outcomes map[cell]outcome
	causes   []string // in the order of their first use; the note of causes[i] is i+1
}

func newReport() *report {
	return &report{outcomes: make(map[cell]outcome)}
}

// add notes the outcome of a cell. Its cause becomes one line, as notes are.
func (r *report) add(c cell, o outcome) {
	o.cause = strings.Join(strings.Split(strings.TrimSpace(o.cause), "\n"), "; ")
	r.outcomes[c] = o
}

// count returns how many cells have verdict v.
func (r *report) count(v verdict) int {
	n := 0
	for _, o := range r.outcomes {
		if o.verdict == v {
			n++
		}
	}
	return n
}

func (r *report) summary() string {
	return fmt.Sprintf("%d cells: %d pass, %d fail, %d beyond siw, %d not in the protocol",
		len(r.outcomes), r.count(passed), r.count(failed), r.count(siwFailed), r.count(impossible))
}

// entry is the text of one cell: its verdict, with the number of its cause.
func (r *report) entry(c cell) string {
	o, ok := r.outcomes[c]
	if !ok {
		return "not run"
	}
	if o.cause == "" {
		return o.verdict.String()
	}
	if !slices.Contains(r.causes, o.cause) {
		r.causes = append(r.causes, o.cause)
	}
	return fmt.Sprintf("%v [%d]", o.verdict, 1+slices.Index(r.causes, o.cause))
}

// rows returns the table, headings first.
func (r *report) rows() [][]string {
	head := []string{"roles", "MPA rev", "p2p", "CRC"}
	for _, size := range sizes {
		head = append(head, fmt.Sprintf("%d octets", size))
	}
	rows := [][]string{head}
	for _, dir := range []direction{ourClient, ourServer} {
		for _, s := range allSettings() {
			row := []string{dir.String(), fmt.Sprint(s.rev), onOff(s.p2p), onOff(s.crc)}
			for _, size := range sizes {
				row = append(row, r.entry(cell{dir: dir, settings: s, size: size}))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// writeText prints the table for a terminal.
func (r *report) writeText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range r.rows() {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for i, cause := range r.causes {
		fmt.Fprintf(w, "[%d] %s\n", i+1, cause)
	}
	_, err := fmt.Fprintln(w, r.summary())
	return err
}

// markdown returns the table for docs/interop.md. versions says what was run.
func (r *report) markdown(versions string) string {
	var b strings.Builder
	rows := r.rows()
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	b.WriteString("\n")
	for i, cause := range r.causes {
		fmt.Fprintf(&b, "- [%d] %s\n", i+1, cause)
	}
	fmt.Fprintf(&b, "\n%s. Peer: %s.\n", r.summary(), versions)
	return b.String()
}
