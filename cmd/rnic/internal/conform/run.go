package conform

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/report"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/cases"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// conformRun holds the flags of `rnic conform run`.
type conformRun struct {
	options conformance.Options
	out     conformOutputs
	target  string
	role    string
	rping   bool
}

func newConformRunCommand() *cobra.Command {
	var r conformRun
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the cases, and print a verdict for each requirement",
		Long: `run executes the cases against an RNIC of this program, or against a target:

  --target HOST:PORT          an RNIC with "rnic conform serve" beside it
  --target HOST:PORT --rping  any iWARP endpoint that runs rping -s -P there, or,
                              with --role responder, rping -c to HOST:PORT, an
                              address of this machine

First it goes through the MPA startup once, and says what is wrong with it. If no
stream begins, the cases that need one fail by that, and are not run.

A case that fails is named on standard error at once, and said more about in the
report at the end. Cases that a target cannot support are skipped. --run and --skip take a key
(RV-7.2-M3) or the beginning of one (RV-7.2, R5044), a section (7.2), a case's
name, or a shell pattern over keys and names ("*window*"). Of a key that no case
can show (rnic conform list) the note is printed. A pattern has to match something.

Exit status: 0 all cases passed, 1 at least one failed, 2 a wrong command line or
a target that cannot be reached.`,
		Example: `  rnic conform run
  rnic conform run --run RV-7.10 --html report.html
  rnic conform run --target 192.0.2.2:7174 --rping --pcap-dir failed`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), cli.Logger(cmd))
		},
	}
	o, f := &r.options, cmd.Flags()
	o.Timeout, o.Parallel, o.Seed = conformance.DefaultTimeout, 4*runtime.NumCPU(), 1
	f.SortFlags = false
	f.StringSliceVar(&o.Select.Run, "run", nil, "run only what matches one of these `PATTERNs`")
	f.StringSliceVar(&o.Select.Skip, "skip", nil, "leave out what matches one of these `PATTERNs`")
	f.BoolVar(&o.Select.Strict, "strict", false, "run the cases of SHOULDs too")
	f.Var(cli.DurationRange(&o.Timeout, time.Millisecond, time.Hour), "timeout", "`time` that a case may take")
	f.Var(cli.IntRange(&o.Parallel, 1, 1024), "parallel", "`cases` at a time")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "the same `number` gives the same run")
	f.StringVar(&r.target, "target", "", "`HOST:PORT` of another RNIC (default: one of this program)")
	f.StringVar(&r.role, "role", "", "which side of MPA's startup cases play where they may choose: `initiator|responder`")
	f.BoolVar(&r.rping, "rping", false, "the target runs rping, there is no upper tester")
	r.out.addTo(f)
	f.StringVar(&r.out.record, "record", "", "save the run in `FILE` for rnic conform report, with the octets of cases that did not pass")
	f.BoolVar(&o.Traces, "record-all", false, "keep the octets of cases that passed too, for --record and --html (100 MB)")
	return cmd
}

func (r *conformRun) run(ctx context.Context, stdout, stderr io.Writer, log *slog.Logger) error {
	if err := r.check(); err != nil {
		return err
	}
	all := cases.All()
	if err := answerable(r.options.Select, all); err != nil {
		return err
	}
	target, err := r.open(ctx)
	if err != nil {
		return cli.WithStatus(2, err)
	}
	defer target.Close()
	files, err := r.out.open(stdout)
	if err != nil {
		return err
	}
	startup := r.probe(ctx, target, log)
	if startup.Broken {
		r.options.Barred = startup.Trouble
	}
	p := cli.NewProgress(stderr)
	failed := 0
	r.options.Progress = func(done, of int, res conformance.Result) {
		if res.Verdict == conformance.Fail {
			failed++
			if !res.Barred { // why is in the report; a run of much that hangs may be long in coming to it
				p.Clear()
				fmt.Fprintln(stderr, report.Headline(res))
			}
		}
		p.Cases(done, of, failed)
	}
	run := report.Run{
		Target: target.Name(), Started: time.Now(), Seed: r.options.Seed,
		Strict: r.options.Select.Strict, Selection: r.options.Select, Startup: startup,
	}
	var stopped error
	run.Results, stopped = conformance.Run(ctx, all, target, r.options)
	run.Took = time.Since(run.Started)
	p.Clear()
	if err := files.write(report.New(run)); stopped == nil {
		return err
	}
	return stopped
}

// probe looks at another RNIC's MPA startup before the cases, and says at once what is wrong with it.
func (r *conformRun) probe(ctx context.Context, target conformance.Target, log *slog.Logger) (s conformance.Startup) {
	if r.target == "" {
		return s
	}
	s = conformance.Probe(ctx, target, min(r.options.Timeout, reachTime))
	switch {
	case s.Broken:
		log.Error("no stream to the target begins: " + s.Trouble + "; the cases that need one are not run, and fail")
	case s.Trouble != "":
		log.Warn("in the target's MPA startup: " + s.Trouble)
	}
	return s
}

// check reports flags that do not go together.
func (r *conformRun) check() error {
	if err := r.options.Select.Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	switch {
	case r.role != "" && r.role != string(conformance.Initiator) && r.role != string(conformance.Responder):
		return cli.Usagef("--role %s: want initiator or responder", r.role)
	case r.target == "" && r.role != "":
		return cli.Usagef("--role is for a --target")
	case r.target == "" && r.rping:
		return cli.Usagef("--rping is for a --target")
	}
	if r.target != "" {
		if _, _, err := net.SplitHostPort(r.target); err != nil {
			return cli.Usagef("--target %s: want HOST:PORT", r.target)
		}
	}
	return nil
}

// answerable reports a pattern of a selection that takes nothing, and a selection of
// nothing.
func answerable(s conformance.Selection, all []conformance.Case) error {
	const hint = "rnic conform list shows what there is"
	for _, p := range s.Run {
		one := conformance.Selection{Run: []string{p}, Strict: s.Strict}
		switch {
		case answers(one, all):
		case len(conformance.Selection{Run: []string{p}, Strict: true}.Cases(all)) > 0:
			return cli.Usagef("--run %s matches cases of SHOULDs only: add --strict", p)
		case len(keys(one)) > 0:
			return cli.Usagef("--run %s: there is such a key, and no case that asserts it; %s", p, hint)
		default:
			return cli.Usagef("--run %s: no case matches, and no key; %s", p, hint)
		}
	}
	for _, p := range s.Skip {
		one := conformance.Selection{Run: []string{p}, Strict: true}
		if len(one.Cases(all)) == 0 && len(keys(one)) == 0 {
			return cli.Usagef("--skip %s: no case matches, and no key; %s", p, hint)
		}
	}
	if !answers(s, all) {
		return cli.Usagef("no case matches, --skip leaves none; %s", hint)
	}
	return nil
}

// answers reports whether a selection takes a case, or a key that no case can show.
func answers(s conformance.Selection, all []conformance.Case) bool {
	return len(s.Cases(all)) > 0 || slices.ContainsFunc(keys(s), func(k string) bool {
		return requirements.ByKey()[k].Class != requirements.Test
	})
}

// keys are those that a selection takes.
func keys(s conformance.Selection) (taken []string) {
	for _, req := range requirements.All() {
		if s.Takes(req.Key) {
			taken = append(taken, req.Key)
		}
	}
	return taken
}

// reachTime is how long a target may take to answer at all.
const reachTime = 10 * time.Second

// open finds the target, and fails if it is not there.
func (r *conformRun) open(ctx context.Context) (conformance.Target, error) {
	if r.target == "" {
		return conformance.InProcess{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, min(r.options.Timeout, reachTime))
	defer cancel()
	if r.rping {
		t, err := conformance.NewRping(ctx, r.target, conformance.Role(r.role))
		if err != nil {
			return nil, fmt.Errorf("reaching the target: %w", err)
		}
		return t, nil
	}
	t, err := conformance.NewRemote(ctx, r.target, conformance.Role(r.role))
	if err != nil {
		return nil, fmt.Errorf("reaching the target: %w", err)
	}
	return t, nil
}
