// Command mutants shows that the conformance cases, and the tests of what they do not see,
// can fail. Each mutant is a small
// fault in the product, and names the cases that must notice it: the command builds
// itself once more with the fault in it, runs just those cases, and says which
// were caught.
//
//	go run ./conformance/mutants [-run PATTERN] [-faults FILE] [-jobs N] [-v]
//
// The mutants are the tab-separated files beside this one, a mutant a line: its
// name, a file, text that occurs in the file exactly once, what to put in its place,
// and the cases, with commas between; a test is "package.TestName". Where the fault breaks a
// requirement and nothing besides, a sixth field has the requirement's key. Cases of "*" stand for
// whichever case it is: all run until one fails. So faults that somebody has thought of without a look at the
// cases, in a file of theirs (-faults), show what the cases miss. In the texts \n
// is a newline, \t a tab and \\ a backslash. No file is changed: the fault is in an overlay of the build (go help
// build, -overlay).
//
// Exit status: 0 all were caught, 1 one was not, 2 there is nothing to run.
//
//	mutant.go  reading them
//	forge.go   building one
//	ask.go     running one
//	bench.go   both, where tests are to notice
//	hunt.go    all of them, and the verdicts
//	judge.go   inside a mutant: one case
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == judgeWord {
		os.Exit(judge(context.Background(), os.Args[2], os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "*", "run only those whose name, or \"file/name\", matches this shell `pattern`, or one of several with commas between")
	faults := flags.String("faults", "", "try those of this `file`, in place of those beside the command")
	jobs := flags.Int("jobs", runtime.NumCPU(), "how many to build at a `time`")
	verbose := flags.Bool("v", false, "tell what each case has seen, not only the first")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return 2
	}
	read := func() ([]mutant, error) { return readAll(root + "/" + home) }
	if *faults != "" {
		read = func() ([]mutant, error) { return readFile(*faults) }
	}
	mutants, err := read()
	if err == nil {
		mutants, err = choose(mutants, *pattern)
	}
	if err == nil && len(mutants) == 0 {
		err = fmt.Errorf("no mutant matches %q", *pattern)
	}
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return 2
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return 2
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	var byTests, byCases []mutant
	for _, m := range mutants {
		if m.ofTests() {
			byTests = append(byTests, m)
		} else {
			byCases = append(byCases, m)
		}
	}
	more := io.Discard
	if *verbose {
		more = stdout
	}
	f, caught := forge{root: root, dir: dir}, 0
	if len(byCases) > 0 {
		caught += hunt(ctx, &f, byCases, max(*jobs, 1), stdout, more)
	}
	if len(byTests) > 0 {
		f.dir += "/tests" // programs of the same names are in the other
		if err := os.Mkdir(f.dir, 0o755); err != nil {
			fmt.Fprintln(stderr, "mutants:", err)
			return 2
		}
		caught += hunt(ctx, &bench{f, packagesOf(byTests...)}, byTests, max(*jobs, 1), stdout, more)
	}
	fmt.Fprintf(stdout, "%d of %d mutants caught in %v\n", caught, len(mutants), time.Since(start).Round(time.Second))
	if caught < len(mutants) {
		return 1
	}
	return 0
}
