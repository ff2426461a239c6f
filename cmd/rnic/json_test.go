package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

// failed is the error that text, which is one JSON value and no more, tells of.
func failed(t *testing.T, text string) map[string]string {
	t.Helper()
	var v struct {
		Error map[string]string `json:"error"`
	}
	clitest.Decode(t, text, &v)
	require.NotEmpty(t, v.Error["message"], text)
	for name := range v.Error {
		assert.Contains(t, []string{"message", "remedy", "step", "cause", "remote", "operation", "rule"}, name)
	}
	return v.Error
}

// commands are all commands, by the words that call them.
func commands() map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		_, words, _ := strings.Cut(c.CommandPath(), " ")
		all[words] = c
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(root())
	return all
}

// TestJSONOfUsageErrors: each command that has --json says on standard output too what was wrong with its command line.
func TestJSONOfUsageErrors(t *testing.T) {
	n := 0
	for words, c := range commands() {
		f := c.Flags().Lookup("json")
		if f == nil {
			continue
		}
		n++
		flags := []string{"--json"}
		if f.Value.Type() != "bool" {
			flags = []string{"--json", "-"}
		}
		wrong := [][]string{append(slices.Clone(flags), "--no-such-flag"), append([]string{"--no-such-flag"}, flags...)}
		if words != "top" { // which takes any number of arguments
			wrong = append(wrong, append(slices.Clone(flags), "a", "b", "c", "d"))
		}
		for _, args := range wrong {
			r := clitest.Run(t.Context(), append(strings.Fields(words), args...)...)
			assert.Equal(t, 2, r.Status, "%s %v", words, args)
			e := failed(t, r.Stdout)
			assert.Contains(t, r.Stderr, e["message"])
			assert.Equal(t, "see rnic "+words+" --help", e["remedy"])
		}
	}
	assert.Greater(t, n, 10)
}

// TestJSONOfFailures: what failed, where, and what to do, beside the line on standard error and the status that are there without --json.
func TestJSONOfFailures(t *testing.T) {
	nothing := filepath.Join(t.TempDir(), "nothing")
	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("no capture"), 0o600))
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	// Port 1 of the loopback address: nobody listens there.
	for args, want := range map[string]map[string]string{
		"ping -c -a 127.0.0.1 -p 1":   {"step": "the TCP connection", "cause": "unreachable", "remote": "127.0.0.1:1"},
		"perf read lat 127.0.0.1:1":   {"step": "the TCP connection", "cause": "unreachable", "remote": "127.0.0.1:1"},
		"perf write bw 127.0.0.1:1":   {"step": "the TCP connection", "cause": "unreachable", "remote": "127.0.0.1:1"},
		"ping -s -a 192.0.2.1 -p 0":   {},
		"ping -s --faults " + nothing: {},
		"vi ping -c 127.0.0.1:1":      {},
		"top":                         {},
		"dump " + nothing:             {},
		"dump " + garbage:             {},
		"dump --frames " + garbage:    {},
	} {
		t.Run(args, func(t *testing.T) {
			plain := clitest.Run(t.Context(), strings.Fields(args)...)
			require.NotZero(t, plain.Status)
			r := clitest.Run(t.Context(), append(strings.Fields(args), "--json")...)
			assert.Equal(t, plain.Status, r.Status)
			e := failed(t, r.Stdout)
			for name, v := range want {
				assert.Equal(t, v, e[name], name)
			}
			if len(want) > 0 {
				assert.Contains(t, e["message"], e["remedy"])
				assert.NotEmpty(t, e["remedy"])
			}
			assert.Equal(t, "rnic: "+e["message"]+"\n", r.Stderr)
		})
	}
}

// TestNoJSONUnasked: without --json, or with it for a file, standard output stays as it is.
func TestNoJSONUnasked(t *testing.T) {
	for _, args := range []string{"top --interval 0s", "ping -c -a 127.0.0.1 -p 1 --json=false", "conform run --json " + os.DevNull + " --bogus"} {
		r := clitest.Run(t.Context(), strings.Fields(args)...)
		assert.NotZero(t, r.Status, args)
		assert.False(t, json.Valid([]byte(r.Stdout)), args)
	}
}
