package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// excusedFile has a line for each case that no mutant names: the case, a tab, and why no
// fault could be noticed by it, or by it first.
const excusedFile = "excused.txt"

// readExcused reads which cases no mutant has to name, and why.
func readExcused(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, excusedFile))
	if err != nil {
		return nil, err
	}
	excused := map[string]string{}
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, why, _ := strings.Cut(line, "\t")
		switch _, twice := excused[name]; {
		case strings.TrimSpace(why) == "":
			return nil, fmt.Errorf("%s:%d: %q is excused without a reason", excusedFile, n+1, name)
		case twice:
			return nil, fmt.Errorf("%s:%d: %s is excused twice", excusedFile, n+1, name)
		}
		excused[name] = why
	}
	return excused, nil
}

// unproved are the cases that neither a mutant names nor an excuse, and the excuses that
// nobody needs.
func unproved(names []string, mutants []mutant, excused map[string]string) (missing, needless []string) {
	named := map[string]bool{}
	for _, m := range mutants {
		for _, c := range m.cases {
			named[c] = true
		}
	}
	known := map[string]bool{}
	for _, c := range names {
		known[c] = true
		if !named[c] && excused[c] == "" {
			missing = append(missing, c)
		}
	}
	for c := range excused {
		if named[c] || !known[c] {
			needless = append(needless, c)
		}
	}
	slices.Sort(needless)
	return missing, needless
}
