// Package man is `rnic man`: the manual pages, one for each command, made from its help.
package man

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/verbs"
)

// Command is `rnic man`.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages",
		Long: `Write the manual pages of rnic to FOLDER, which is made if it is not there: rnic.1,
and one for each command.`,
		Example: "  rnic man ~/.local/share/man/man1\n  man rnic-perf",
		Args:    cli.ExactArgs("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // for everybody to read
				return cli.WithStatus(2, err)
			}
			return write(cmd.Root(), args[0])
		},
	}
}

// write writes the page of cmd, and of all below it.
func write(cmd *cobra.Command, folder string) error {
	file := filepath.Join(folder, name(cmd)+".1")
	if err := os.WriteFile(file, page(cmd), 0o644); err != nil { //nolint:gosec // for everybody to read
		return cli.WithStatus(2, err)
	}
	for _, below := range children(cmd) {
		if err := write(below, folder); err != nil {
			return err
		}
	}
	return nil
}

// children are the commands below cmd that have a page.
func children(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			list = append(list, c)
		}
	}
	return list
}

// name is that of a page: the words of the command.
func name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is the page of a command, in the macros of man(7).
func page(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	p := &printer{b: &b}
	p.printf(".TH %s 1 \"%s\" \"%s\" \"softrnic\"\n", strings.ToUpper(text(name(cmd))), date(), text(verbs.Version().Release))
	p.section("NAME")
	p.printf("%s \\- %s\n", text(name(cmd)), text(cmd.Short))
	p.section("SYNOPSIS")
	usage := cmd.UseLine()
	below := children(cmd)
	if len(below) > 0 {
		usage = cmd.CommandPath() + " COMMAND"
	}
	p.printf(".B %s\n", text(usage))
	if long := strings.TrimSpace(cmd.Long); long != "" {
		p.section("DESCRIPTION")
		p.body(long)
	}
	if len(below) > 0 {
		p.section("COMMANDS")
		for _, c := range below {
			p.item("\\fB"+text(name(c))+"\\fR(1)", c.Short)
		}
	}
	p.options(cmd)
	if cmd.Example != "" {
		p.section("EXAMPLES")
		p.verbatim(cmd.Example)
	}
	if !cmd.HasParent() {
		p.program()
	}
	p.also(cmd, below)
	return b.Bytes()
}

// date is that of the commit that rnic was built of, if the build knows it, else today.
func date() string {
	date := verbs.Version().Date
	if date.IsZero() {
		date = time.Now()
	}
	return date.Format(time.DateOnly)
}

// program is what all commands have in common.
func (p *printer) program() {
	p.section("EXIT STATUS")
	p.item("0", "all went well.")
	p.item("1", "something failed, which standard error names; with --json standard output does too.")
	p.item("2", "the command line cannot be run, or a file that it names not be opened.")
	p.item("130, 143", "interrupted by SIGINT, or by SIGTERM where that left something undone.")
	p.section("ENVIRONMENT")
	for _, v := range cli.Variables {
		p.item("\\fB"+text(v.Name)+"\\fR", v.Means+".")
	}
}

// also names the pages above and below.
func (p *printer) also(cmd *cobra.Command, below []*cobra.Command) {
	var names []string
	for c := cmd.Parent(); c != nil; c = c.Parent() {
		names = append(names, name(c))
	}
	for _, c := range below {
		names = append(names, name(c))
	}
	if len(names) == 0 {
		return
	}
	p.section("SEE ALSO")
	for i, n := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		p.printf(".BR %s (1)%s\n", text(n), end)
	}
}

// printer writes roff to memory.
type printer struct {
	b     *bytes.Buffer
	begun bool // there is something in this section
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p.b, format, args...) }

func (p *printer) section(name string) {
	p.printf(".SH %s\n", name)
	p.begun = false
}

// paragraph begins one.
func (p *printer) paragraph() {
	if p.begun {
		p.printf(".PP\n")
	}
	p.begun = true
}

// item is a name, in roff, and what it means.
func (p *printer) item(name, means string) { p.printf(".TP\n%s\n%s\n", name, text(means)) }

// body is paragraphs. Those that are indented stay as they are.
func (p *printer) body(s string) {
	for par := range strings.SplitSeq(s, "\n\n") {
		if strings.HasPrefix(par, "  ") {
			p.verbatim(par)
			continue
		}
		p.paragraph()
		for line := range strings.Lines(par) {
			p.printf("%s\n", text(strings.TrimSpace(line)))
		}
	}
}

func (p *printer) verbatim(s string) {
	p.paragraph()
	p.printf(".nf\n.RS 4\n")
	for line := range strings.Lines(s) {
		p.printf("%s\n", text(strings.TrimSuffix(strings.TrimPrefix(line, "  "), "\n")))
	}
	p.printf(".RE\n.fi\n")
}

// options are the flags of a command.
func (p *printer) options(cmd *cobra.Command) {
	flags := cmd.LocalFlags()
	if !flags.HasAvailableFlags() {
		return
	}
	p.section("OPTIONS")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		of, means := pflag.UnquoteUsage(f)
		head := "\\fB" + text("--"+f.Name) + "\\fR"
		if f.Shorthand != "" {
			head = "\\fB" + text("-"+f.Shorthand) + "\\fR, " + head
		}
		if of != "" {
			head += " \\fI" + text(of) + "\\fR"
		}
		switch f.DefValue {
		case "", "0", "false", "[]", "0s":
		default:
			means += " (default " + f.DefValue + ")"
		}
		p.item(head, means)
	})
}

// text is s as roff prints it: neither an escape nor, at the beginning of a line, a macro.
func text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
