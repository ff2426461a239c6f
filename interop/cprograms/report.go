//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// markdown is the table of docs/c-programs.md. with says what was run on what.
func markdown(done []outcome, joined bool, with string) string {
	var b strings.Builder
	lost := ""
	if joined {
		lost = " packets lost |"
	}
	fmt.Fprintf(&b, "| package | command | result |%s seconds |\n|---|---|---|%s---|\n", lost, strings.Repeat("---|", strings.Count(lost, "|")))
	good, cannot, bad := 0, 0, 0
	for i, o := range done {
		pkg := o.pkg
		if i > 0 && done[i-1].pkg == pkg {
			pkg = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", pkg, o.commands(), cell(o.verdict()))
		if joined {
			fmt.Fprintf(&b, " %d |", o.lost)
		}
		fmt.Fprintf(&b, " %.1f |\n", o.took.Seconds())
		switch {
		case !o.good():
			bad++
		case o.cannot != "":
			cannot++
		default:
			good++
		}
	}
	fmt.Fprintf(&b, "\n%d rows: %d ran, %d cannot, %d failed. %s.\n", len(done), good, cannot, bad, with)
	return b.String()
}

// commands are a row's programs as the table shows them.
func (r row) commands() string {
	show := func(s side, command string) string {
		command = strings.NewReplacer("RNIC", "rnic", "HERE/", "").Replace(command)
		var notes []string
		if r.plain == s {
			notes = append(notes, "not under `rnic run`")
		}
		if r.flags != "" {
			notes = append(notes, "`"+r.flags+"`")
		}
		if r.user {
			notes = append(notes, "as nobody")
		}
		shown := "`" + cell(command) + "`"
		if len(notes) > 0 {
			shown += " (" + strings.Join(notes, ", ") + ")"
		}
		return shown
	}
	if r.server == "" {
		return show(client, r.client)
	}
	return show(server, r.server) + "<br>" + show(client, r.client)
}

// cell fits text into a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// versions says which packages were run on which machine.
func (o options) versions(ctx context.Context) (string, error) {
	names := []string{"libibverbs1", "rdmacm-utils", "perftest"}
	if o.root == "" {
		names = append(names, "qperf", "libfabric1", "openmpi-bin", "libucx0")
	}
	query := append([]string{"--admindir=" + o.packageData(), "-W", "-f", "${Package} ${Version}\n"}, names...)
	packages, err := exec.CommandContext(ctx, "dpkg-query", query...).Output()
	if err != nil {
		return "", fmt.Errorf("asking for the packages' versions: %w; install them with interop/cprograms/packages", err)
	}
	kernel, err := exec.CommandContext(ctx, "uname", "-r").Output()
	if err != nil {
		return "", err
	}
	list := strings.Join(strings.Split(strings.TrimSpace(string(packages)), "\n"), ", ")
	return fmt.Sprintf("Linux %s on %s, %d CPUs, which had other work too; %s", strings.TrimSpace(string(kernel)), runtime.GOARCH, runtime.NumCPU(), list), nil
}
