package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/cases"
)

// judgeWord makes this program run one case.
const judgeWord = "judge"

// Exit statuses of judge. Go's runtime uses 2 for a crash.
const (
	statusPass  = 0
	statusFail  = 1
	statusUnfit = 3 // there is no such case, or it was skipped
)

// anyCase stands for whichever case fails first.
const anyCase = "*"

// caseTime bounds a case: many a fault makes one wait until half of it is over. Where all run it is caseTimeOfAll,
// for some of them are long.
const (
	caseTime      = 10 * time.Second
	caseTimeOfAll = 45 * time.Second
)

// judge runs one case against the RNIC that this program was built with, and says in
// a line why it did not pass.
func judge(ctx context.Context, name string, out io.Writer) int {
	if name == anyCase {
		return judgeAll(ctx, cases.All(), out)
	}
	for _, c := range cases.All() {
		if c.Name != name {
			continue
		}
		results, err := conformance.Run(ctx, []conformance.Case{c}, conformance.InProcess{},
			conformance.Options{Seed: 1, Timeout: caseTime, Select: conformance.Selection{Strict: true}})
		switch {
		case err != nil:
			fmt.Fprintln(out, err)
			return statusUnfit
		case results[0].Verdict == conformance.Pass:
			return statusPass
		case results[0].Verdict == conformance.Fail:
			fmt.Fprintln(out, reason(results[0].Detail))
			return statusFail
		}
		fmt.Fprintf(out, "case %s: %s %s\n", name, results[0].Verdict, results[0].Detail)
		return statusUnfit
	}
	fmt.Fprintf(out, "there is no case %s\n", name)
	return statusUnfit
}

// judgeAll runs all cases until one fails, and says in a line which, and why.
func judgeAll(ctx context.Context, all []conformance.Case, out io.Writer) int {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var first string
	_, err := conformance.Run(ctx, all, conformance.InProcess{}, conformance.Options{
		Seed: 1, Timeout: caseTimeOfAll, Select: conformance.Selection{Strict: true},
		Progress: func(_, _ int, r conformance.Result) {
			if r.Verdict == conformance.Fail && first == "" {
				first = r.Case + ": " + reason(r.Detail)
				enough()
			}
		},
	})
	if first == "" && err == nil {
		return statusPass
	}
	if first == "" {
		first = err.Error()
	}
	fmt.Fprintln(out, first)
	return statusFail
}

// reason is what a failure says, in a line: of testify's report the message, if there
// is one, and the error.
func reason(detail string) string {
	var message string
	var said []string
	label := ""
	for line := range strings.Lines(detail) {
		text := strings.TrimSpace(line)
		if first, rest, ok := strings.Cut(text, ":"); ok && (first == "Error" || first == "Messages" || first == "Error Trace") {
			label, text = first, strings.TrimSpace(rest)
		}
		switch label {
		case "Error":
			if len(said) < 3 && text != "" && text != "Not equal:" {
				said = append(said, clip(text, 70))
			}
		case "Messages":
			if message == "" {
				message = clip(text, 70) + ": "
			}
			label = ""
		}
		if message != "" {
			break // what follows is of the next failure
		}
	}
	if len(said) == 0 {
		return clip(firstLine(detail), 160)
	}
	return strings.Join(strings.Fields(message+strings.Join(said, " ")), " ")
}

// clip bounds a text.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
