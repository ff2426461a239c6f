package info

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

// TestDevices: the table has what rnic run would, and JSON the same.
func TestDevices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, []byte("mlx5_0=127.0.0.2,numa=1023,qps=7 # of a file\n"), 0o644))
	r := clitest.Run(t.Context(), "info", "--devices="+file, "--device", "rxe0=127.0.0.3,gid=127.0.0.4,port-rate=25g,pci=0000:fd:02.1", "--as", "roce")
	require.Zero(t, r.Status, r.Stderr)
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	require.Len(t, lines, 4)
	assert.Regexp(t, `^DEVICE +FILE +AS +GID +ADDRESS +INTERFACE +RATE +MTU +PCI +NUMA +CPUS +LIMITS$`, lines[0])
	assert.Regexp(t, `^mlx5_0 +uverbs0 +roce +0 +127\.0\.0\.2 +\S+ +100g +4096 +0000:[c-f][0-9a-f]:00\.0 +1023 \(not of this host\) +\S+ +7 queue pairs$`, lines[1])
	assert.Regexp(t, `^rxe0 +uverbs1 +roce +0 +127\.0\.0\.3 +\S+ +25g +4096 +0000:fd:02\.1 +none +\S+$`, lines[2])
	assert.Regexp(t, `^ +1 +127\.0\.0\.4$`, lines[3])

	r = clitest.Run(t.Context(), "info", "--devices", "--json")
	require.Zero(t, r.Status, r.Stderr)
	var list []map[string]any
	clitest.Decode(t, r.Stdout, &list)
	require.Len(t, list, 1)
	assert.Equal(t, "softrnic0", list[0]["name"])
	assert.Equal(t, "iwarp", list[0]["as"])
	assert.NotContains(t, list[0], "pci")

	for _, tt := range []struct{ arg, want string }{
		{"--device=a=127.0.0.2,x", "there is no"}, {"--devices=/nowhere", "/nowhere"}, {"--as=ib", "want iwarp or roce"},
	} {
		r := clitest.Run(t.Context(), "info", "--devices", tt.arg)
		assert.Equal(t, 2, r.Status, tt.arg)
		assert.Contains(t, r.Stderr, tt.want)
	}
}
