package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/internal/siw"
)

// TestCount: every connection is made once, and one that fails is not counted.
func TestCount(t *testing.T) {
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	rnic := filepath.Join(dir, "rnic")
	script := "#!/bin/sh\necho >>" + calls + "\n[ $(wc -l <" + calls + ") != 7 ] || exit 1\necho '{\"rounds\":1,\"validated\":true}'\n"
	require.NoError(t, os.WriteFile(rnic, []byte(script), 0o700))
	h := &harness{guest: guest{&siw.Guest{Port: 1}}, rnic: rnic, rounds: 1}
	assert.Equal(t, connections-1, h.count(t.Context(), settings{rev: 2}))
	made, err := os.ReadFile(calls)
	require.NoError(t, err)
	assert.Len(t, made, connections)

	assert.True(t, worked{connections, connections}.all())
	assert.False(t, worked{connections - 1, connections}.all())
	assert.False(t, worked{connections, connections - 1}.all())
}
