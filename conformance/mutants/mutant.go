package main

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// mutant is one deliberate fault.
type mutant struct {
	share string // the file of mutants that it is in
	name  string
	file  string // in the module
	was   string
	is    string
	cases []string // that must catch it
	keys  []string // the requirements that it breaks, if it is about those
}

func (m *mutant) String() string { return m.share + "/" + m.name }

// readAll reads the mutants of all files in a directory.
func readAll(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.tsv"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, f := range files {
		part, err := readFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// readFile reads a file of mutants. Empty lines, those that begin with "#" and the
// column names are passed over.
func readFile(file string) ([]mutant, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	share := strings.TrimSuffix(filepath.Base(file), ".tsv")
	var part []mutant
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "name\tfile\t") {
			continue
		}
		m, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		m.share = share
		part = append(part, m)
	}
	return part, lines.Err()
}

var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t")

func parse(line string) (mutant, error) {
	f := strings.Split(line, "\t")
	if len(f) < 5 || len(f) > 6 {
		return mutant{}, fmt.Errorf("%d fields, want name, file, old text, new text, cases, and the keys or nothing", len(f))
	}
	m := mutant{name: f[0], file: path.Clean(f[1]), was: unescape.Replace(f[2]), is: unescape.Replace(f[3])}
	m.cases = commas(f[4])
	if len(f) == 6 {
		m.keys = commas(f[5])
	}
	switch {
	case m.name == "":
		return m, fmt.Errorf("the mutant has no name")
	case len(m.cases) == 0:
		return m, fmt.Errorf("mutant %s has no cases", m.name)
	case m.was == "" || m.was == m.is:
		return m, fmt.Errorf("mutant %s changes nothing", m.name)
	case !product(m.file):
		return m, fmt.Errorf("mutant %s: %s is no file of the product", m.name, m.file)
	}
	return m, nil
}

// commas are the words of a list.
func commas(list string) (words []string) {
	for w := range strings.SplitSeq(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// product reports whether a file is of what the cases check, rather than of the
// cases.
func product(file string) bool {
	switch path.Dir(file) {
	case "wr", "stag", "mpa", "ddp", "rdmap", "internal/cq", "srq", "qp", "verbs", "cm", "internal/vitcp", "internal/vitcp/endpoint", "internal/vitcp/segment", "vipl", "nd2",
		"internal/vitcp/port", "internal/ownsock", "internal/handles", "internal/admission", "internal/netpoll", "internal/gather", "internal/crc32c", "internal/tcpsock",
		"ulp/rsocket", "ulp/nvmeof", "rdmacore/internal/uverbs", "rdmacore/internal/ucma":
		return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go")
	}
	return false
}

// apply is a file's text with is in place of what was.
func (m *mutant) apply(source, is string) (string, error) {
	if n := strings.Count(source, m.was); n != 1 {
		return "", fmt.Errorf("the old text occurs %d times in %s, want once", n, m.file)
	}
	return strings.Replace(source, m.was, is, 1), nil
}

// choose keeps those that match one of the shell patterns, which have commas between.
func choose(all []mutant, patterns string) ([]mutant, error) {
	var chosen []mutant
	for _, m := range all {
		for pattern := range strings.SplitSeq(patterns, ",") {
			byName, err := path.Match(pattern, m.name)
			if err != nil {
				return nil, fmt.Errorf("%q is no pattern: %w", pattern, err)
			}
			byFile, _ := path.Match(pattern, m.String())
			if byName || byFile {
				chosen = append(chosen, m)
				break
			}
		}
	}
	return chosen, nil
}
