package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/internal/test/docgen"
)

const pageOfRnic = "../../docs/rnic.md"

var variable = regexp.MustCompile(`\bSOFTRNIC_[A-Z0-9_]*[A-Z0-9]\b`)

// variablesOfCode are the variables that some file of the code names.
func variablesOfCode(t *testing.T) map[string]bool {
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "docs" || d.Name() == "workflows"): // docs/ci.md has those of CI
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".go", ".c", ".h", ".sh", "":
		default:
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range variable.FindAllString(string(text), -1) {
			if !strings.HasSuffix(name, "_H") && !strings.HasPrefix(name, "SOFTRNIC_TEST_") { // the guard of a header; of a test and its child
				found[name] = true
			}
		}
		return err
	}))
	return found
}

// TestVariables: the page has each variable that the code has, and no other; help has those that are not for tests.
func TestVariables(t *testing.T) {
	code := variablesOfCode(t)
	require.Greater(t, len(code), 15)
	raw, err := os.ReadFile(pageOfRnic)
	require.NoError(t, err)
	page := map[string]bool{}
	for _, name := range variable.FindAllString(string(raw), -1) {
		page[name] = true
	}
	assert.Equal(t, code, page)
	r := clitest.Run(t.Context(), "help", "environment")
	assert.Zero(t, r.Status)
	for _, v := range cli.Variables {
		assert.Contains(t, r.Stdout, "  "+v.Name+"\n")
	}
	assert.Equal(t, r, clitest.Run(t.Context(), "environment", "--help"))
}

// TestPageOfRnic makes the tables of the page: commands and variables.
func TestPageOfRnic(t *testing.T) {
	text := "| command | what it does |\n|---|---|\n"
	for _, c := range root().Commands() {
		if c.Runnable() {
			text += fmt.Sprintf("| `rnic %s` | %s |\n", c.Name(), c.Short)
		}
	}
	docgen.Generated(t, pageOfRnic, "commands", "\n"+text)
	text = "| variable | means |\n|---|---|\n"
	for _, v := range cli.Variables {
		text += fmt.Sprintf("| %#q | %s |\n", v.Name, v.Means)
	}
	docgen.Generated(t, pageOfRnic, "variables", "\n"+text)
}
