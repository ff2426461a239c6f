package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// failure is an error as --json has it: the one object {"error": failure}, on a line of standard output. What is not known is left out.
type failure struct {
	Message   string `json:"message"`             // as on standard error
	Remedy    string `json:"remedy,omitempty"`    // what to do
	Step      string `json:"step,omitempty"`      // of connecting: cm.ConnectError
	Cause     string `json:"cause,omitempty"`     // likewise
	Remote    string `json:"remote,omitempty"`    // likewise
	Operation string `json:"operation,omitempty"` // that was refused: verbs.Reason
	Rule      string `json:"rule,omitempty"`      // which decides it
}

func failureOf(err error) failure {
	f := failure{Message: OneLine(err)}
	var why *verbs.Reason
	if errors.As(err, &why) {
		f.Operation, f.Rule, f.Remedy = why.Operation, why.Rule, why.Remedy
	}
	var unconnected *cm.ConnectError
	if errors.As(err, &unconnected) {
		f.Step, f.Cause, f.Remote = unconnected.Step.String(), unconnected.Cause.String(), unconnected.Remote
		if unconnected.Remedy != "" {
			f.Remedy = unconnected.Remedy
		}
	}
	return f
}

// write writes f.
func (f failure) write(w io.Writer) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]failure{"error": f}) // standard error has it too
}

// report tells the user of err: in a line of stderr, and on stdout if the results were to be JSON.
func report(cmd *cobra.Command, args []string, err error, stdout, stderr io.Writer) {
	f := failureOf(err)
	line := f.Message
	var usage *usageError
	if errors.As(err, &usage) {
		f.Remedy = fmt.Sprintf("see %s --help", cmd.CommandPath())
		line += "; " + f.Remedy
	}
	fmt.Fprintf(stderr, "rnic: %s\n", line)
	if wantsJSON(cmd, args) {
		f.write(stdout)
	}
}

// wantsJSON reports whether the command line has --json for standard output: if reading it came that far, or by its words.
func wantsJSON(cmd *cobra.Command, args []string) bool {
	f := cmd.Flags().Lookup("json")
	switch {
	case f == nil:
		return false
	case f.Changed:
		return f.Value.String() == "true" || f.Value.String() == "-" // which stands for standard output
	}
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	if f.Value.Type() == "bool" {
		return slices.Contains(args, "--json")
	}
	return strings.Contains(strings.Join(args, " ")+" ", "--json - ") || slices.Contains(args, "--json=-")
}
