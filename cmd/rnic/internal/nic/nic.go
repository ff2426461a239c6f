// Package nic is `rnic nic`: what becomes of the NICs of programs that run.
package nic

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/stats"
)

// Command makes `rnic nic`.
func Command() *cobra.Command {
	simple := func(do, short, long, example string) *cobra.Command {
		return &cobra.Command{
			Use: do + " NIC...", Short: short, Long: long + named, Example: "  rnic nic " + do + " " + example,
			Args: atLeast("NIC"),
			RunE: func(cmd *cobra.Command, args []string) error { return order(cmd, args, stats.Command{Do: do}) },
		}
	}
	return cli.Group("nic", "List the NICs of programs that run, and break them",
		lsCommand(),
		simple("down", "Take the port of a NIC down", `down takes the port down: PORT_ERR, and nothing goes through, either way. Connections stall, and end
when they have waited as long as their attributes say. What queries and /sys say is DOWN.`, "softrnic0"),
		simple("up", "Bring the port of a NIC up", `up brings the port up again: PORT_ACTIVE, and what has waited goes on.`, "softrnic0"),
		degradeCommand(),
		simple("move-gid", "Move the GID of a NIC", `move-gid moves the GIDs one place further in the port's table, or back: GID_CHANGE.`, "softrnic0"),
		simple("fatal", "Have a NIC fail for good", `fatal has the device fail as by an internal error: DEVICE_FATAL, and verbs end with EIO.`, "4711"),
		simple("unplug", "Take a NIC away", `unplug takes the device away: DEVICE_FATAL, and each command of those that have it open is EIO. Nobody can
open it, until rnic nic quiet. A Go program's RNIC fails, and it can open none in its place.`, "4711/softrnic0"),
		planCommand(),
		quietCommand(),
	)
}

// named is what is said of the arguments of all commands.
const named = `

NIC is a process, by its id, a device, by the name that its program has for it, or both, as in 4711/softrnic0. A name
that several processes have means all of them. They are programs of this user that offer their counters:
rnic run, ping, perf and others with --stats. docs/nic.md says what a program sees.`

// atLeast wants one argument or more.
func atLeast(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cli.Usagef("argument %s is missing", name)
		}
		return nil
	}
}

func degradeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "degrade NIC WHAT...", Short: "Make the port of a NIC slow",
		Long: `degrade bounds what goes through the port: by a rate such as 10g or 300m, in bits a second, each way; by a delay
such as 5ms, which what has come waits; by a loss such as 1% of the arriving packets, below TCP. WHAT is one or
several of them, and replaces those before. rnic nic quiet takes all back.` + named,
		Example: "  rnic nic degrade softrnic0 10g 2ms 0.1%",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("argument %s is missing", []string{"NIC", "WHAT"}[len(args)])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[1:], " ")
			if _, err := fault.ParseDegradation(text); err != nil {
				return cli.Usagef("WHAT: %v", err)
			}
			return order(cmd, args[:1], stats.Command{Do: "degrade", Text: text})
		},
	}
}

func planCommand() *cobra.Command {
	return &cobra.Command{
		Use: "plan [NIC] FILE", Short: "Have a NIC carry out a fault plan",
		Long: `plan has the programs carry out the fault plan in FILE, - for standard input, from now on, in place of the one
before (docs/lab.md). Rules of streams hold for those that begin from here on. Without NIC it is for all.` + named,
		Example: "  echo 'verb reg_mr chance 0.1: errno ENOMEM' | rnic nic plan softrnic0 -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return cli.Usagef("plan takes a NIC, or none, and a file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			last := len(args) - 1
			text, err := readPlan(cmd, args[last])
			if err != nil {
				return err
			}
			return order(cmd, args[:last], stats.Command{Do: "plan", Text: text})
		},
	}
}

// readPlan is the text of a plan that Parse takes.
func readPlan(cmd *cobra.Command, name string) (string, error) {
	in, err := cli.OpenInput(cmd, name)
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, stats.MaxText+1))
	switch {
	case err != nil:
		return "", cli.WithStatus(2, err)
	case len(text) > stats.MaxText:
		return "", cli.WithStatus(2, fmt.Errorf("%s: a plan is of %d octets at most", name, stats.MaxText))
	}
	if _, err := fault.Parse(string(text)); err != nil {
		return "", cli.WithStatus(2, fmt.Errorf("%s, %w", name, err))
	}
	return string(text), nil
}

func quietCommand() *cobra.Command {
	return &cobra.Command{
		Use: "quiet [NIC...]", Short: "Take back what was done to a NIC",
		Long: `quiet takes everything back: the port is up and as fast as it goes, the GIDs are at their places, no fault plan is carried
out, and what was unplugged can be opened. What has failed stays so, and so do connections that have ended.
Without NIC it is for all.` + named,
		Example: "  rnic nic quiet",
		Args:    func(*cobra.Command, []string) error { return nil },
		RunE:    func(cmd *cobra.Command, args []string) error { return order(cmd, args, stats.Command{Do: "quiet"}) },
	}
}
