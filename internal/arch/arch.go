// Package arch holds the import rules of the module as data, so that a test can check them against
// what `go list` reports.
//
// A room is a top-level directory of the module, a package below internal or below cmd/rnic/internal, or one below a top-level
// directory that has a rule of its own. Imports point downward
// only: a wire layer returns values that the next layer takes, and never calls up. The linter's
// depguard section states the same rules where the editor shows them; this table is the one that
// fails the tests.
package arch

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the import path of this module.
const Module = "github.com/softrnic/softrnic"

// rule says what the non-test files of one room may import.
type rule struct {
	// rooms of this module, by name; "internal" stands for every package below internal.
	rooms []string
	// any is set for the rooms on top, which may look at every other room.
	any bool
	// thirdParty lists import path prefixes outside the standard library and this module.
	thirdParty []string
}

// system is what any room may use beyond the standard library: system calls and synchronisation kept by the
// Go project itself.
var system = []string{"golang.org/x/"}

// tools is what the rooms that talk to people and to files may use as well.
var tools = []string{"golang.org/x/", "github.com/spf13/", "github.com/google/", "github.com/gopacket/", "gonum.org/v1/plot"}

// rules is the whole table. A room that is not in it may not exist: adding one is a decision about
// layers, taken here and in .golangci.yml.
var rules = map[string]rule{
	"wr":    {thirdParty: system},
	"stag":  {rooms: []string{"wr", "internal"}, thirdParty: system},
	"mpa":   {thirdParty: system},
	"ddp":   {thirdParty: system},
	"rdmap": {rooms: []string{"ddp"}, thirdParty: system},
	"cq":    {rooms: []string{"trace", "wr", "internal"}, thirdParty: system},
	"srq":   {rooms: []string{"wr", "internal"}, thirdParty: system},
	"qp": {
		rooms:      []string{"trace", "wr", "stag", "mpa", "ddp", "rdmap", "cq", "srq", "internal"},
		thirdParty: system,
	},
	"verbs": {
		rooms:      []string{"trace", "qp", "stag", "cq", "srq", "wr", "mpa", "rdmap", "internal"},
		thirdParty: append([]string{"github.com/google/uuid"}, system...),
	},
	"cm": {rooms: []string{"verbs", "mpa", "wr", "internal"}, thirdParty: system},

	// VI over TCP: the machines that connect, the endpoint below them, the wire below both.
	"vitcp":          {rooms: []string{"vitcp/endpoint", "vitcp/segment", "internal"}, thirdParty: system},
	"vitcp/endpoint": {rooms: []string{"vitcp/segment", "stag", "wr", "internal"}, thirdParty: system},
	"vitcp/segment":  {thirdParty: system},
	"vipl":           {rooms: []string{"vitcp", "stag", "wr", "internal"}, thirdParty: system},

	"nd2": {rooms: []string{"verbs", "cm", "wr", "internal"}, thirdParty: system},

	// The lab: it sees the wire, and package verbs sees it through an interface.
	"fault": {rooms: []string{"mpa", "ddp", "rdmap"}},
	"tap":   {rooms: []string{"mpa", "ddp", "rdmap"}},
	"trace": {},
	"stats": {rooms: []string{"verbs"}, thirdParty: system},
	// Whoever wants Prometheus imports it with this, and nobody else has to have it.
	"stats/prometheus": {rooms: []string{"stats", "verbs"}, thirdParty: []string{"github.com/prometheus/client_golang/"}},
	"stats/expvars":    {rooms: []string{"stats", "verbs"}},
	"rnictest":         {rooms: []string{"verbs", "cm", "fault", "trace", "internal"}, thirdParty: system},

	// Helpers below internal serve the rooms above, so they see the nouns only.
	"internal": {rooms: []string{"wr", "internal"}, thirdParty: system},

	// The kernel's half of Linux's user ABI: the device sees the verbs, what connects sees it.
	"internal/ud":     {thirdParty: system},
	"internal/uverbs": {rooms: []string{"verbs", "cm", "wr", "mpa", "internal"}, thirdParty: system},
	"internal/ucma":   {rooms: []string{"verbs", "cm", "wr", "internal"}, thirdParty: system},

	// Those that read and write the wire see the wire layers.
	"internal/dissect": {rooms: []string{"mpa", "ddp", "rdmap"}, thirdParty: tools},
	"internal/wire":    {rooms: []string{"mpa", "ddp", "rdmap"}, thirdParty: system},

	// Programs, and what checks them.
	"docs":           {any: true, thirdParty: tools},
	"conformance":    {any: true, thirdParty: append([]string{"github.com/stretchr/testify/"}, tools...)}, // a case asserts as a test does
	"cmd":            {any: true, thirdParty: tools},
	"interop":        {any: true, thirdParty: tools},
	"examples":       {rooms: []string{"verbs", "cm"}, thirdParty: system}, // as a user's program
	"ulp/nvmeof":     {rooms: []string{"verbs", "cm"}, thirdParty: system}, // likewise
	"ulp/rsocket":    {rooms: []string{"verbs", "cm"}},                     // likewise
	"c":              {any: true, thirdParty: system},
	"internal/rping": {any: true, thirdParty: system},

	// The commands of rnic see every room, but each other they do not see: only what they share.
	commands:               {any: true, rooms: []string{commands + "cli", commands + "endpoint", commands + "pattern", commands + "histogram"}, thirdParty: tools},
	commands + "cli":       {rooms: []string{"verbs", "cm", "fault", "tap", "trace", "stats"}, thirdParty: tools},
	commands + "endpoint":  {rooms: []string{"verbs", "cm"}, thirdParty: system},
	commands + "pattern":   {thirdParty: system},
	commands + "histogram": {thirdParty: system},
	commands + "clitest":   {rooms: []string{commands + "cli"}, thirdParty: tools},
}

// commands begins the name of every room below cmd/rnic/internal, and is the rule of those that have none.
const commands = "cmd/rnic/internal/"

// room returns the room of an import path of this module, and the name of the rule that governs it:
// a rule of its own if the table has one, else that of its top-level directory.
func room(path string) (name, governedBy string) {
	rel := strings.TrimPrefix(strings.TrimPrefix(path, Module), "/")
	if below, ok := strings.CutPrefix(rel, commands); ok {
		sub, _, _ := strings.Cut(below, "/")
		name = commands + sub
		if _, ok := rules[name]; ok {
			return name, name
		}
		return name, commands
	}
	top, rest, _ := strings.Cut(rel, "/")
	sub, _, _ := strings.Cut(rest, "/")
	name = top + "/" + sub
	if _, ok := rules[name]; ok {
		return name, name
	}
	if top == "internal" && rest != "" {
		return name, top
	}
	return top, top
}

// inModule reports whether path names a package of this module.
func inModule(path string) bool {
	return path == Module || strings.HasPrefix(path, Module+"/")
}

// standard reports whether path belongs to the standard library: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// violations lists every import of pkg that its room's rule does not allow, one sentence each. It is empty
// for a package that keeps the rules.
func violations(pkg string, imports []string) []string {
	from, governedBy := room(pkg)
	r, ok := rules[governedBy]
	if !ok {
		return []string{fmt.Sprintf("%s: room %q has no import rule; add one to internal/arch and to .golangci.yml", pkg, from)}
	}
	var out []string
	for _, imp := range imports {
		switch {
		case standard(imp):
		case !inModule(imp):
			if !slices.ContainsFunc(r.thirdParty, func(p string) bool { return strings.HasPrefix(imp, p) }) {
				out = append(out, fmt.Sprintf("%s imports %s: room %q may not use that module", pkg, imp, from))
			}
		default:
			to, _ := room(imp)
			top, _, _ := strings.Cut(to, "/")
			anyMay := r.any && (from == "cmd" || !strings.HasPrefix(to, commands))
			if to == from || anyMay || slices.Contains(r.rooms, to) || slices.Contains(r.rooms, top) {
				continue
			}
			out = append(out, fmt.Sprintf("%s imports %s: room %q may import only %v of this module", pkg, imp, from, r.rooms))
		}
	}
	return out
}
