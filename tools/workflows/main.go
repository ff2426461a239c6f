// Workflows runs the steps of a workflow of GitHub's, or of a job of GitLab's, on this machine, as far as the recipes in
// examples/ci go. What it does not know it refuses, so that nothing is passed over in silence.
//
//	workflows packages RECIPE   prints the packages that the recipe asks for
//	workflows run RECIPE        runs its jobs
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

// place is where jobs run.
type place struct {
	tree      string // softrnic's own, with action.yml
	from      string // the folder with a release, in place of its page
	workspace string // the project
	temp      string // RUNNER_TEMP
	goroot    string // what actions/setup-go gives; "": it is refused
}

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "workflows: %v\n", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	var p place
	flags := flag.NewFlagSet("workflows", flag.ContinueOnError)
	flags.StringVar(&p.tree, "tree", ".", "softrnic's tree")
	flags.StringVar(&p.from, "from", "", "a folder with a release")
	flags.StringVar(&p.workspace, "workspace", "", "the project")
	flags.StringVar(&p.temp, "temp", os.TempDir(), "a folder for what is temporary")
	flags.StringVar(&p.goroot, "goroot", "", "Go's folder, for actions/setup-go")
	if len(args) == 0 {
		return fmt.Errorf("want packages or run")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("want one recipe, not %d", flags.NArg())
	}
	recipe, err := read(flags.Arg(0), p.tree)
	if err != nil {
		return err
	}
	switch args[0] {
	case "packages":
		fmt.Println(strings.Join(recipe.packages(), " "))
		return nil
	case "run":
		return recipe.run(p)
	}
	return fmt.Errorf("%s: want packages or run", args[0])
}

// recipe is a workflow of GitHub's or a file of GitLab's.
type recipe interface {
	packages() []string
	run(p place) error
}

// read takes files named gitlab.yml for GitLab's.
func read(path, tree string) (recipe, error) {
	if strings.HasSuffix(path, "gitlab.yml") {
		return readGitLab(path, tree)
	}
	return readWorkflow(path, tree)
}
