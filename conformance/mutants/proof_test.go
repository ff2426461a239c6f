package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/conformance"
)

// excusedFile has a line for each case that no mutant names, and for each key of class test of
// which no case is named: the case or the key, a tab, and why no fault could be noticed by it, or
// by it first.
const excusedFile = "excused.txt"

// readExcused reads which cases and keys no mutant has to be about, and why.
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

// namedCases are the cases that mutants name.
func namedCases(mutants []mutant) map[string]bool {
	named := map[string]bool{}
	for _, m := range mutants {
		for _, c := range m.cases {
			named[c] = true
		}
	}
	return named
}

// namedKeys are the keys that the cases claim which mutants name.
func namedKeys(mutants []mutant, all []conformance.Case) map[string]bool {
	byCase, keys := namedCases(mutants), map[string]bool{}
	for _, c := range all {
		for _, k := range c.Keys {
			keys[k] = keys[k] || byCase[c.Name]
		}
	}
	return keys
}

// astray are the keys that a mutant is said to break, though none of its cases claims them.
func astray(mutants []mutant, all []conformance.Case) (list []string) {
	claims := map[string][]string{}
	for _, c := range all {
		claims[c.Name] = c.Keys
	}
	for _, m := range mutants {
		for _, k := range m.keys {
			if !slices.ContainsFunc(m.cases, func(c string) bool { return slices.Contains(claims[c], k) }) {
				list = append(list, m.String()+" "+k)
			}
		}
	}
	return list
}

// unproved are those of names, of cases or of keys, that are neither named nor excused, and the
// excuses that nobody needs.
func unproved(names []string, named map[string]bool, excused map[string]string) (missing, needless []string) {
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
