// Package requirements is the registry: every MUST and SHOULD of the verbs draft, of
// the iWARP RFCs, of the VI/TCP draft and of the VI Architecture, every flag, return
// value and remark of NetworkDirect's IND2QueuePair, and what those texts bind with no
// such keyword, by key, in our own words, with the class that says whether a case can
// show it.
//
// The registry is the tab-separated files beside this one, a file for each part of a
// source. A line has a key, a class, a summary and a note.
package requirements

import (
	"bufio"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed *.tsv
var files embed.FS

// Class says how a requirement can be shown.
type Class string

// The classes.
const (
	// Test: at least one case executes it, and can fail.
	Test Class = "test"
	// Construction: the API makes a violation inexpressible; the note says where.
	Construction Class = "construction"
	// Consumer: binds the program above, or the operator.
	Consumer Class = "consumer"
	// Hardware: describes a physical device.
	Hardware Class = "hardware"
	// OtherLayer: binds a layer that is not here.
	OtherLayer Class = "other-layer"
	// NotImplemented: softrnic does not do it; the note says what is missing.
	NotImplemented Class = "not-implemented"
)

// Classes are all of them, in the order of the tables.
var Classes = []Class{Test, Construction, Consumer, Hardware, OtherLayer, NotImplemented}

// Requirement is one line of the registry.
type Requirement struct {
	Key string `json:"key"`
	// Spec is the source: "verbs", "rfc5040" and the like, "vitcp", "via" or "nd2";
	// "plain" is what any of them binds without a MUST or SHOULD.
	Spec string `json:"spec"`
	// Section is a section's number; of nd2 a method's name; of plain with the source
	// before it, "PV-7.2" or "PR-5040-4.8".
	Section string `json:"section"`
	// Level is MUST or SHOULD. All of nd2 is MUST.
	Level   string `json:"level"`
	Class   Class  `json:"class"`
	Summary string `json:"summary"`
	Note    string `json:"note"`
}

// key is a source, a section and a counter with its level. A statement without the
// keyword has P for its source: PV of the verbs draft, PR of an RFC, PA of the VI
// Architecture, PT of the VI/TCP draft.
var key = regexp.MustCompile(`^(RV|R[0-9]{4}|VT|VA|PV|PR-[0-9]{4}|PA|PT)-([0-9A-Z.]+)-([MS])[0-9]+$`)

// remark is a key of NetworkDirect: a method or structure, and a counter with its kind,
// which is flag, return value or remark.
var remark = regexp.MustCompile(`^(ND)-([A-Za-z]+)-([FRM])[0-9]+$`)

// order is that in which the files are listed.
var order = []string{
	"verbs.tsv", "rfc5040.tsv", "rfc5041.tsv", "rfc5042.tsv", "rfc5044.tsv", "rfc6581.tsv", "rfc7306.tsv",
	"vitcp.tsv", "via.tsv", "nd2.tsv", "plain.tsv",
}

// specs are the sources that have a prefix of their own; the others are RFCs.
var specs = map[string]string{"RV": "verbs", "VT": "vitcp", "VA": "via", "ND": "nd2"}

// All is the registry, in the order of the sources. It panics if a file that was built
// in is malformed: TestRegistry reads them all.
var All = sync.OnceValue(func() []Requirement {
	var all []Requirement
	for _, name := range order {
		part, err := read(name)
		if err != nil {
			panic(err)
		}
		all = append(all, part...)
	}
	return all
})

// ByKey is the registry by key.
var ByKey = sync.OnceValue(func() map[string]Requirement {
	m := make(map[string]Requirement)
	for _, r := range All() {
		m[r.Key] = r
	}
	return m
})

func read(name string) ([]Requirement, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var part []Requirement
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if n == 1 || lines.Text() == "" {
			continue
		}
		r, err := parse(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("requirements: %s:%d: %w", name, n, err)
		}
		part = append(part, r)
	}
	return part, lines.Err()
}

func parse(line string) (Requirement, error) {
	f := strings.Split(line, "\t")
	if len(f) != 4 {
		return Requirement{}, fmt.Errorf("%d fields, want key, class, summary, note", len(f))
	}
	m := key.FindStringSubmatch(f[0])
	if m == nil {
		m = remark.FindStringSubmatch(f[0])
	}
	if m == nil {
		return Requirement{}, fmt.Errorf("%q is no key", f[0])
	}
	r := Requirement{Key: f[0], Spec: specs[m[1]], Section: m[2], Level: "MUST", Class: Class(f[1]), Summary: f[2], Note: f[3]}
	switch {
	case m[1][0] == 'P':
		r.Spec, r.Section = "plain", m[1]+"-"+m[2]
	case r.Spec == "":
		r.Spec = "rfc" + m[1][1:]
	}
	if m[3] == "S" {
		r.Level = "SHOULD"
	}
	switch {
	case !slices.Contains(Classes, r.Class):
		return r, fmt.Errorf("%s: no class %q", r.Key, r.Class)
	case r.Summary == "":
		return r, fmt.Errorf("%s has no summary", r.Key)
	case r.Class != Test && r.Note == "":
		return r, fmt.Errorf("%s: class %s needs a note", r.Key, r.Class)
	}
	return r, nil
}
