//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every row can be told from the others.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows {
		name := r.what + " " + r.with
		assert.False(t, seen[name], "twice: %s", name)
		seen[name] = true
		assert.NotNil(t, r.run, name)
	}
}

func TestFind(t *testing.T) {
	require.NoError(t, find("hca_id: softrnic0\n", "softrnic[0-9]"))
	assert.ErrorContains(t, find("nothing\n", "softrnic"), "it prints no softrnic\nnothing")
}

// A program that has to be refused fails the row when it works, and when it says something else.
func TestRefused(t *testing.T) {
	failed := errors.New("exit status 1")
	got, err := refused("a\nit is linked with musl\n", failed)("musl")
	require.NoError(t, err)
	assert.Equal(t, "gets none; told: `it is linked with musl`", got)
	_, err = refused("a device\n", nil)("device")
	require.ErrorContains(t, err, "it works")
	_, err = refused("Segmentation fault\n", failed)("musl")
	assert.ErrorContains(t, err, "Segmentation fault")
}

func TestCell(t *testing.T) { assert.Equal(t, `a \| b c`, cell("a | b\n c")) }

// The flags of the page's second way are those of the specification: `rnic cdi generate` and docs/containers.md.
func TestByHand(t *testing.T) {
	page, err := os.ReadFile("../../docs/containers.md")
	require.NoError(t, err)
	for _, f := range (&lab{dir: "$PWD/bin"}).byHand() {
		assert.Contains(t, string(page), f)
	}
	file, err := os.ReadFile("../../packaging/Containerfile.try")
	require.NoError(t, err)
	for _, f := range (&lab{}).byHand() {
		if strings.Contains(f, "=") {
			assert.Contains(t, string(file), f)
		}
	}
}
