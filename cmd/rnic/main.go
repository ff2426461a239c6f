// Command rnic shows, tries and measures the RDMA NIC of this module: a tool
// for people who set up or debug a connection, and a set of worked examples
// of packages verbs and cm.
//
// Each command has a file of its own, and the longer ones a file for each
// side of the connection. Results go to standard output, as text or with
// --json as one JSON value; progress and logs go to standard error. The exit
// status is 0 if all went well, 1 if something failed, 2 for a wrong command
// line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "rnic: %s; see %s --help\n", oneLine(err), cmd.CommandPath())
		return 2
	}
	status := 1
	var withStatus *statusError
	if errors.As(err, &withStatus) {
		status = withStatus.status
		err = withStatus.err
	}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, "rnic: interrupted")
	case err != nil:
		fmt.Fprintf(stderr, "rnic: %s\n", oneLine(err))
	}
	return status
}

func newRoot() *cobra.Command {
	root := newGroup("rnic", "An RDMA NIC in software: show, try and measure it",
		newInfoCommand(),
		newPingCommand(),
		newDemoCommand(),
		newPerfCommand(),
		newConformCommand(),
		newDumpCommand(),
		newViCommand(),
	)
	// run prints errors, on one line; help is for who asks for it.
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	return root
}

// usageTemplate changes cobra's template, which all commands inherit: for a
// group, which is an error by itself, only the usage with a command is shown.
func usageTemplate(cobras string) string {
	return strings.NewReplacer(
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}",
		"[command]", "COMMAND",
	).Replace(cobras)
}

// newGroup makes a command that only holds others. Without one of them it is a
// usage error, not a help page with status 0.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			names := make([]string, len(commands))
			for i, c := range commands {
				names[i] = c.Name()
			}
			what := "no command given"
			if len(args) > 0 {
				what = fmt.Sprintf("unknown command %q", args[0])
			}
			return usagef("%s, want one of %s", what, strings.Join(names, ", "))
		},
	}
	group.AddCommand(commands...)
	return group
}

// usageError is a command line that cannot be run: exit status 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// statusError is an error with an exit status of its own. Without an err
// inside, nothing is printed for it.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

func withStatus(status int, err error) error { return &statusError{status, err} }

// exactArgs accepts exactly the arguments that are named, and says which one
// is missing or too many.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("argument %s is missing", names[len(args)])
		case len(args) > len(names):
			return usagef("argument %q is one too many", args[len(names)])
		}
		return nil
	}
}

// oneLine is the text of err, which may have several lines if it joins errors.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
}
