package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// own is how workflows name this project's action, before the version.
const own = "softrnic/softrnic@"

// workflow is what recipes have of one. Other keys are errors.
type workflow struct {
	Name        string
	On          any
	Permissions any
	Jobs        map[string]job

	action action
}

type job struct {
	RunsOn  string `yaml:"runs-on"`
	Timeout int    `yaml:"timeout-minutes"` // the caller has one
	Env     map[string]string
	Steps   []step
}

type step struct {
	Name, Uses, If, Run, Shell string
	With, Env                  map[string]string
}

// action is action.yml.
type action struct {
	Name, Description string
	Branding          map[string]string
	Inputs            map[string]struct {
		Description, Default string
	}
	Runs struct {
		Using string
		Steps []step
	}
}

// load decodes a file, all of whose keys have to be known.
func load(path string, to any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func readWorkflow(path, tree string) (*workflow, error) {
	w := &workflow{}
	if err := load(path, w); err != nil {
		return nil, err
	}
	if err := load(filepath.Join(tree, "action.yml"), &w.action); err != nil {
		return nil, err
	}
	for name, j := range w.Jobs {
		for _, s := range j.Steps {
			if _, err := w.action.inputs(s); strings.HasPrefix(s.Uses, own) && err != nil {
				return nil, fmt.Errorf("%s: job %s: %w", path, name, err)
			}
		}
	}
	return w, nil
}

// inputs are those that the step gives the action, with the defaults of the others.
func (a action) inputs(s step) (map[string]string, error) {
	all := map[string]string{}
	for name, in := range a.Inputs {
		all["inputs."+name] = in.Default
	}
	for name, value := range s.With {
		if _, is := a.Inputs[name]; !is {
			return nil, fmt.Errorf("action.yml has no input %s", name)
		}
		all["inputs."+name] = value
	}
	return all, nil
}

func (w *workflow) packages() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
		for _, s := range w.Jobs[name].Steps {
			if strings.HasPrefix(s.Uses, own) {
				in, _ := w.action.inputs(s) // readWorkflow has looked
				list = append(list, strings.Fields(in["inputs.device-packages"]+" "+in["inputs.packages"])...)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (w *workflow) run(p place) error {
	for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
		j := w.Jobs[name]
		m := newMachine(p)
		maps.Copy(m.env, j.Env)
		for i, s := range j.Steps {
			if err := w.step(m, s); err != nil {
				return fmt.Errorf("job %s, step %d (%s%s): %w", name, i+1, s.Name, s.Uses, err)
			}
		}
	}
	return nil
}

// step runs one of a workflow.
func (w *workflow) step(m *machine, s step) error {
	name, _, _ := strings.Cut(s.Uses, "@")
	switch {
	case s.If != "":
		return fmt.Errorf("if: %s: the recipes' steps have none", s.If)
	case s.Uses == "":
		return m.timed(s, nil, "bash -e {0}")
	case name == "actions/checkout":
		return nil // the workspace is there
	case name == "actions/setup-go":
		if m.place.goroot == "" {
			return errors.New("there is no Go: -goroot")
		}
		m.path = append(m.path, filepath.Join(m.place.goroot, "bin"))
		return nil
	case strings.HasPrefix(s.Uses, own):
		in, err := w.action.inputs(s)
		if err != nil {
			return err
		}
		in["inputs.from"] = m.place.from
		in["runner.temp"] = m.place.temp
		in["runner.os"] = map[string]string{"linux": "Linux", "darwin": "macOS"}[runtime.GOOS]
		return w.action.run(m, in)
	}
	return fmt.Errorf("uses: %s: not known here", s.Uses)
}

func (a action) run(m *machine, in map[string]string) error {
	m.env["GITHUB_ACTION_PATH"] = m.place.tree
	defer delete(m.env, "GITHUB_ACTION_PATH")
	for _, s := range a.Runs.Steps {
		does, err := holds(s.If, in)
		if err != nil {
			return fmt.Errorf("step %s: %w", s.Name, err)
		}
		if !does {
			continue
		}
		if err := m.timed(s, in, ""); err != nil {
			return fmt.Errorf("step %s: %w", s.Name, err)
		}
	}
	return nil
}

var (
	expression = regexp.MustCompile(`\$\{\{(.*?)\}\}`)
	equality   = regexp.MustCompile(`^([a-z.-]+) == '([^']*)'$`)
)

// expand puts values in the place of ${{ NAME }}.
func expand(text string, values map[string]string) (string, error) {
	var err error
	text = expression.ReplaceAllStringFunc(text, func(e string) string {
		name := strings.TrimSpace(e[3 : len(e)-2])
		value, is := values[name]
		if !is {
			err = fmt.Errorf("%s: not known here", e)
		}
		return value
	})
	return text, err
}

// holds is whether a condition, NAME == 'VALUE' && ..., does.
func holds(condition string, values map[string]string) (bool, error) {
	if condition == "" {
		return true, nil
	}
	all := true
	for part := range strings.SplitSeq(condition, "&&") {
		match := equality.FindStringSubmatch(strings.TrimSpace(part))
		if match == nil {
			return false, fmt.Errorf("if: %s: want NAME == 'VALUE', or several with && between", condition)
		}
		value, is := values[match[1]]
		if !is {
			return false, fmt.Errorf("if: %s: not known here", match[1])
		}
		all = all && value == match[2]
	}
	return all, nil
}

// timed runs a step's script and says how long it took.
func (m *machine) timed(s step, values map[string]string, shell string) error {
	begin := time.Now()
	name, _, _ := strings.Cut(s.Run, "\n")
	name = cmp.Or(s.Name, name)
	fmt.Printf("== %s\n", name)
	err := m.script(s, values, shell)
	fmt.Printf("== %s: %.1f s\n", name, time.Since(begin).Seconds())
	return err
}
