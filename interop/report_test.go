package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/internal/docsection"
)

// mixedReport has one cell of each verdict but "n/a", and shares a cause between two cells.
func mixedReport() *report {
	r := newReport()
	all := cells(ourClient)
	r.add(all[0], outcome{siwFailed, "first cause"})
	r.add(all[1], outcome{siwFailed, "first cause"})
	r.add(all[2], outcome{failed, "second\ncause\n"})
	r.add(all[3], outcome{verdict: passed})
	return r
}

func TestWriteText(t *testing.T) {
	var b strings.Builder
	require.NoError(t, mixedReport().writeText(&b))
	lines := strings.Split(b.String(), "\n")
	require.Len(t, lines, 1+16+2+1+1)
	assert.Equal(t, strings.Fields("rnic client, siw server 1 off off siw [1] siw [1] FAIL [2]"), strings.Fields(lines[1]))
	assert.Equal(t, strings.Fields("rnic client, siw server 1 off on pass not run not run"), strings.Fields(lines[2]))
	assert.Equal(t, "[1] first cause", lines[17])
	assert.Equal(t, "[2] second; cause", lines[18])
	assert.Equal(t, "4 cells: 1 pass, 1 fail, 2 beyond siw, 0 not in the protocol", lines[19])
}

func TestMarkdown(t *testing.T) {
	text := mixedReport().markdown("Linux X")
	lines := strings.Split(text, "\n")
	assert.Equal(t, "| roles | MPA rev | p2p | CRC | 64 octets | 4096 octets | 65535 octets |", lines[0])
	assert.Equal(t, "|---|---|---|---|---|---|---|", lines[1])
	assert.Equal(t, "| rnic client, siw server | 1 | off | off | siw [1] | siw [1] | FAIL [2] |", lines[2])
	assert.Contains(t, text, "\n- [2] second; cause\n")
	assert.Contains(t, text, "Peer: Linux X.\n")
}

// The page of this repository has the markers, and updating twice changes nothing the second time.
func TestUpdateDoc(t *testing.T) {
	text, err := os.ReadFile("../docs/interop.md")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "interop.md")
	require.NoError(t, os.WriteFile(path, text, 0o644))

	update := func() {
		require.NoError(t, docsection.Update(path, partMatrix, mixedReport().markdown("Linux X")))
		require.NoError(t, docsection.Update(path, partFirst, worked{connections, 17}.markdown("Linux X")))
		require.NoError(t, docsection.Update(path, partConform, mixedFindings().markdown("Linux X")))
	}
	update()
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(first), "second; cause")
	require.Contains(t, string(first), "200 of 200 connections in client-server mode, 17 of 200 in peer-to-peer mode. Peer: Linux X.")
	require.Contains(t, string(first), "Terminate 0/2/06")
	update()
	second, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
}
