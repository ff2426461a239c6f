// Package cli is how the commands of rnic meet their user: running a command line, the flags that several
// have, tables, JSON and progress, and another process of the program.
package cli

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

// Main executes the command line of this process and returns the exit status. An interrupt (^C) or a SIGTERM ends
// the command, a second one the process.
func Main(root *cobra.Command) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals, caught := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		sig := <-signals
		signal.Stop(signals)
		caught <- sig
		cancel()
	}()
	status, final := execute(ctx, root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	select {
	case sig := <-caught:
		if !final {
			return stopped(status, sig)
		}
	default:
	}
	return status
}

// stopped is the status of a command that sig ended: as a shell has it, 128 and the number of the signal. SIGTERM is
// the way to end a server: if it ended without an error, that is success.
func stopped(status int, sig os.Signal) int {
	switch {
	case sig == os.Interrupt:
		return 128 + int(syscall.SIGINT)
	case status == 0:
		return 0
	}
	return 128 + int(syscall.SIGTERM)
}

// Run executes one command line of root and returns the exit status.
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	status, _ := execute(ctx, root, args, stdin, stdout, stderr)
	return status
}

// execute is Run, which also returns whether the status is final: see ExitStatus.
func execute(
	ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer,
) (status int, final bool) {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	var stray error // --help of an unknown command
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if stray = strayWord(cmd, cmd.Flags().Args()); stray == nil {
			help(cmd, args)
		}
	})
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = stray
	}
	if err == nil {
		return 0, false
	}
	var usage *usageError
	if errors.As(err, &usage) {
		report(cmd, args, err, stdout, stderr)
		return 2, false
	}
	status = 1
	var withStatus *statusError
	if errors.As(err, &withStatus) {
		status, final = withStatus.status, withStatus.final
		err = withStatus.err
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errInterrupted
	}
	if err != nil {
		report(cmd, args, err, stdout, stderr)
	}
	return status, final
}

var errInterrupted = errors.New("interrupted")

// Root makes the program of these commands, of completion and version, and of the help topics.
func Root(commands ...*cobra.Command) *cobra.Command {
	root := Group("rnic", "An RDMA NIC in software: show, try and measure it", append(commands, completionCommand(), versionCommand())...)
	root.AddCommand(environmentTopic())
	// Run prints errors, on one line; help is printed on demand only.
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.Version = thisVersion().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(helpCommand())
	return root
}

// helpCommand is `rnic help COMMAND`, which is --help of that command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return Usagef("%w", err)
			}
			if err := strayWord(about, rest); err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// strayWord is the usage error of a call for help with words behind cmd that cmd does not take; nil if there is none.
func strayWord(cmd *cobra.Command, words []string) error {
	switch {
	case len(words) == 0: // the help is about the missing ones
		return nil
	case cmd.HasSubCommands():
		return cmd.RunE(cmd, words)
	}
	return cmd.ValidateArgs(words)
}

// usageTemplate changes cobra's template, which all commands inherit: for a
// group, which is an error by itself, only the usage with a command is shown.
func usageTemplate(cobras string) string {
	return strings.NewReplacer(
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}",
		"[command]", "COMMAND",
	).Replace(cobras)
}

// Group makes a command that only holds others. Without one of them it is a
// usage error, not a help page with status 0.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
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
			return Usagef("%s, want one of %s", what, strings.Join(names, ", "))
		},
	}
	group.AddCommand(commands...)
	return group
}

// usageError is a command line that cannot be run: exit status 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usagef makes the error of a command line that cannot be run.
func Usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// statusError is an error with an exit status of its own. Without an err
// inside, nothing is printed for it.
type statusError struct {
	status int
	err    error
	final  bool
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// WithStatus gives err, which may be nil, an exit status of its own.
func WithStatus(status int, err error) error { return &statusError{status: status, err: err} }

// ExitStatus ends with the status of another program that ran instead, and which got the signals, too: no signal
// changes it.
func ExitStatus(status int) error { return &statusError{status: status, final: true} }

// Status is the exit status that err asks for, and whether it does.
func Status(err error) (int, bool) {
	var withStatus *statusError
	if errors.As(err, &withStatus) {
		return withStatus.status, true
	}
	return 0, false
}

// ExactArgs accepts exactly the arguments that are named, and says which one
// is missing or too many.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return Usagef("argument %s is missing", names[len(args)])
		case len(args) > len(names):
			return Usagef("argument %q is one too many", args[len(names)])
		}
		return nil
	}
}

// AtMostArgs accepts n arguments or fewer.
func AtMostArgs(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return Usagef("argument %q is one too many", args[n])
		}
		return nil
	}
}

// OpenInput opens the file of that name, or the standard input for "-".
func OpenInput(cmd *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, WithStatus(2, err)
	}
	return f, nil
}
