package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// machine is what one step of a job leaves to the next: variables, and folders of the path, the last first.
type machine struct {
	place place
	env   map[string]string
	path  []string
}

func newMachine(p place) *machine {
	return &machine{p, map[string]string{"CI": "true", "RUNNER_TEMP": p.temp, "GITHUB_WORKSPACE": p.workspace}, nil}
}

// shells are the command lines of GitHub's names for them.
var shells = map[string]string{
	"bash": "bash --noprofile --norc -eo pipefail {0}",
	"sh":   "sh -e {0}",
}

// script runs the script of a step as a runner of GitHub's does, and takes what it leaves in GITHUB_ENV and GITHUB_PATH.
func (m *machine) script(s step, values map[string]string, otherwise string) error {
	dir, err := os.MkdirTemp(m.place.temp, "step-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := expand(s.Run, values)
	if err != nil {
		return err
	}
	file, envFile, pathFile := filepath.Join(dir, "script"), filepath.Join(dir, "env"), filepath.Join(dir, "path")
	for name, content := range map[string]string{file: text, envFile: "", pathFile: ""} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return err
		}
	}
	shell := otherwise
	if s.Shell != "" {
		shell = s.Shell
		if full, is := shells[shell]; is {
			shell = full
		}
	}
	words := strings.Fields(shell)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "{0}", file)
	}
	if len(words) == 0 {
		return errors.New("an action's step has to say its shell")
	}
	env := maps.Clone(m.env)
	for name, value := range s.Env {
		if env[name], err = expand(value, values); err != nil {
			return err
		}
	}
	env["GITHUB_ENV"], env["GITHUB_PATH"] = envFile, pathFile
	if err := m.exec(words, env); err != nil {
		return err
	}
	return m.take(envFile, pathFile)
}

// exec runs a command in the workspace, with these variables over those of this process.
func (m *machine) exec(words []string, env map[string]string) error {
	path := os.Getenv("PATH")
	for _, dir := range m.path {
		path = dir + ":" + path
	}
	// By env, which looks for the shell in the job's path, as a runner does, and not in this process's.
	cmd := exec.Command("env", words...) //nolint:gosec // which is what this program is for
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.place.workspace, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "PATH="+path)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd.Run()
}

// take reads the two files: NAME=VALUE a line, and a folder a line.
func (m *machine) take(envFile, pathFile string) error {
	env, err := lines(envFile)
	if err != nil {
		return err
	}
	for _, line := range env {
		name, value, is := strings.Cut(line, "=")
		if !is || name == "" || strings.Contains(name, "<<") || name == "NODE_OPTIONS" || strings.HasPrefix(name, "GITHUB_") {
			return fmt.Errorf("GITHUB_ENV has %q: want NAME=VALUE, of a name that GitHub lets be set", line)
		}
		m.env[name] = value
	}
	path, err := lines(pathFile)
	if err != nil {
		return err
	}
	m.path = append(m.path, path...)
	return nil
}

// lines are those of a file; of none, if a script has removed it.
func lines(name string) (list []string, err error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			list = append(list, line)
		}
	}
	return list, err
}
