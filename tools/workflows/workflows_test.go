package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

const root = "../.."

// files are those that match one of the patterns below the root, of which each has to match one.
func files(t *testing.T, patterns ...string) (list []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(root, p))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", p, found, err)
		}
		list = append(list, found...)
	}
	return list
}

// TestLint: actionlint has nothing to say of our workflows and of the recipes, whose scripts shellcheck reads if it is there.
func TestLint(t *testing.T) {
	list := slices.DeleteFunc(files(t, ".github/workflows/*.yml", "examples/ci/*.yml"), func(name string) bool {
		return filepath.Base(name) == "gitlab.yml"
	})
	var said bytes.Buffer
	l, err := actionlint.NewLinter(&said, &actionlint.LinterOptions{Shellcheck: "shellcheck"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.LintFiles(list, nil); err != nil {
		t.Fatal(err)
	}
	if said.Len() != 0 {
		t.Error(said.String())
	}
}

// TestRecipes: each is read to the last key, and gives the action, or the template, what it has.
func TestRecipes(t *testing.T) {
	for _, file := range files(t, "examples/ci/*.yml") {
		if _, err := read(file, root); err != nil {
			t.Error(err)
		}
	}
}

// TestAction: an input that a step reads is there, and each is read.
func TestAction(t *testing.T) {
	var a action
	if err := load(filepath.Join(root, "action.yml"), &a); err != nil {
		t.Fatal(err)
	}
	if a.Runs.Using != "composite" || a.Name == "" || a.Description == "" {
		t.Errorf("not an action: %+v", a)
	}
	values, err := a.inputs(step{})
	if err != nil {
		t.Fatal(err)
	}
	values["runner.temp"], values["runner.os"] = "/temp", "Linux"
	text := ""
	for _, s := range a.Runs.Steps {
		if s.Shell == "" {
			t.Errorf("%s: GitHub wants a shell of an action's step", s.Name)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("%s: a script takes inputs from variables, as text in it would be run", s.Name)
		}
		text += s.If
		for name, value := range s.Env {
			text += value
			if _, err := expand(value, values); err != nil {
				t.Errorf("%s: %s: %v", s.Name, name, err)
			}
		}
		if _, err := holds(s.If, values); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	for name := range a.Inputs {
		if !strings.Contains(text, "inputs."+name) {
			t.Errorf("no step reads %s", name)
		}
	}
}

// TestVersions: whoever copies a recipe, or a line of a page, gets the version that they stand beside.
func TestVersions(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "verbs", "version.go"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^const release = "(.*)"$`).FindStringSubmatch(string(source))
	if version == nil {
		t.Fatal("verbs/version.go has no version")
	}
	place := regexp.MustCompile(`softrnic/softrnic(?:@v|/v|/releases/download/v)([0-9][0-9a-z.-]*[0-9a-z])`)
	for _, file := range files(t, "examples/ci/*.yml", "packaging/ci/gitlab.yml", "docs/ci.md", "README.md", "docs/start/c.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := place.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 && !strings.HasSuffix(file, "go.yml") {
			t.Errorf("%s names no version", file)
		}
		for _, f := range found {
			if f[1] != version[1] {
				t.Errorf("%s: %s: want %s", file, f[0], version[1])
			}
		}
	}
}

// try runs a workflow of one job with these steps, with an action that does nothing.
func try(t *testing.T, steps string) error {
	t.Helper()
	p := place{tree: t.TempDir(), workspace: t.TempDir(), temp: t.TempDir()}
	write := func(name, text string) string {
		path := filepath.Join(p.tree, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("action.yml", "inputs:\n  a:\n    default: b\nruns:\n  using: composite\n  steps:\n"+
		"    - {run: 'echo \"A=$A\" >>\"$GITHUB_ENV\"; echo \"$RUNNER_TEMP/bin\" >>\"$GITHUB_PATH\"', shell: sh, env: {A: '${{ inputs.a }}'}}\n")
	w, err := readWorkflow(write("w.yml", "on: push\njobs:\n  j:\n    steps:\n"+steps), p.tree)
	if err != nil {
		return err
	}
	return w.run(p)
}

// TestRun: variables and folders go from step to step; a script ends at the first command that fails; what is not known is an
// error.
func TestRun(t *testing.T) {
	for _, tt := range []struct{ name, steps, want string }{
		{"default", "    - uses: softrnic/softrnic@v1\n    - run: test \"$A\" = b\n", ""},
		{"input", "    - uses: softrnic/softrnic@v1\n      with: {a: c}\n    - run: test \"$A\" = c\n", ""},
		{"path", "    - uses: softrnic/softrnic@v1\n    - run: case $PATH in */bin:/*) ;; *) exit 1 ;; esac\n", ""},
		{"own variable", "    - run: test \"$B\" = 1\n      env: {B: 1}\n", ""},
		{"not the next one's", "    - run: 'true'\n      env: {B: 1}\n    - run: test -z \"$B\"\n", ""},
		{"first failure", "    - run: |\n        false\n        true\n", "step 1"},
		{"pipe", "    - run: false | true\n      shell: bash\n", "step 1"},
		{"no such input", "    - uses: softrnic/softrnic@v1\n      with: {b: c}\n", "no input b"},
		{"another action", "    - uses: other/action@v1\n", "not known"},
		{"a condition", "    - run: 'true'\n      if: always()\n", "none"},
		{"a key", "    - run: 'true'\n      wit: {}\n", "wit"},
		{"an expression", "    - run: echo ${{ github.token }}\n", "not known"},
		{"a variable of GitHub's", "    - run: echo GITHUB_SHA=1 >>\"$GITHUB_ENV\"\n", "GITHUB_SHA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := try(t, tt.steps)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestPackages: those of the device and the recipe's own.
func TestPackages(t *testing.T) {
	for _, name := range []string{"c.yml", "gitlab.yml"} {
		r, err := read(filepath.Join(root, "examples", "ci", name), root)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ibverbs-providers", "librdmacm-dev"} {
			if !slices.Contains(r.packages(), want) {
				t.Errorf("%s: %v has no %s", name, r.packages(), want)
			}
		}
	}
}
