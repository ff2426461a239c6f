package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// template is the job that GitLab's others extend.
const template = ".softrnic"

// gitlab is a recipe for GitLab: one that includes packaging/ci/gitlab.yml, and jobs that extend its job.
type gitlab struct {
	jobs     map[string]gitlabJob
	template gitlabJob
}

type gitlabJob struct {
	Extends, Image string
	Variables      map[string]string
	BeforeScript   []string `yaml:"before_script"`
	Script         []string
}

// gitlabFile is either of the two files.
type gitlabFile struct {
	Include []struct{ Remote string }
	Jobs    map[string]gitlabJob `yaml:",inline"`
}

func readGitLab(path, tree string) (*gitlab, error) {
	var file, included gitlabFile
	if err := load(path, &file); err != nil {
		return nil, err
	}
	if err := load(filepath.Join(tree, "packaging", "ci", "gitlab.yml"), &included); err != nil {
		return nil, err
	}
	if len(file.Include) != 1 || !strings.HasSuffix(file.Include[0].Remote, "/packaging/ci/gitlab.yml") {
		return nil, fmt.Errorf("%s: want an include of packaging/ci/gitlab.yml", path)
	}
	for name, j := range file.Jobs {
		if j.Extends != template {
			return nil, fmt.Errorf("%s: %s does not extend %s", path, name, template)
		}
		for v := range j.Variables {
			if _, is := included.Jobs[template].Variables[v]; !is {
				return nil, fmt.Errorf("%s: %s: the template has no variable %s", path, name, v)
			}
		}
	}
	return &gitlab{file.Jobs, included.Jobs[template]}, nil
}

// variables are those of a job, over the template's.
func (g *gitlab) variables(j gitlabJob) map[string]string {
	all := maps.Clone(g.template.Variables)
	maps.Copy(all, j.Variables)
	return all
}

func (g *gitlab) packages() (list []string) {
	for _, j := range g.jobs {
		v := g.variables(j)
		list = append(list, strings.Fields(v["SOFTRNIC_DEVICE_PACKAGES"]+" "+v["SOFTRNIC_PACKAGES"])...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// run runs the jobs as GitLab's runner does: what comes before, and the script, in one shell.
func (g *gitlab) run(p place) error {
	for _, name := range slices.Sorted(maps.Keys(g.jobs)) {
		m := newMachine(p)
		env := g.variables(g.jobs[name])
		env["SOFTRNIC_FROM"] = p.from
		maps.Copy(m.env, env)
		lines := slices.Concat([]string{"set -eo pipefail"}, g.template.BeforeScript, g.jobs[name].Script)
		if err := m.timed(step{Name: name, Run: strings.Join(lines, "\n")}, nil, "bash {0}"); err != nil {
			return fmt.Errorf("job %s: %w", name, err)
		}
	}
	return nil
}
