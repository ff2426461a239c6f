//go:build unix

package stats

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadIsBounded: what offers counters and has no end is told from a process that does.
func TestReadIsBounded(t *testing.T) {
	endless := func() *bytes.Reader {
		return bytes.NewReader(append([]byte(`{"rnics":[`), bytes.Repeat([]byte("{},"), 1<<20)...))
	}
	_, err := read(endless(), 1<<20)
	require.ErrorContains(t, err, "more than 1 MiB: no process with counters is there")
	_, err = read(endless(), 1<<30)
	require.ErrorContains(t, err, "unexpected EOF")
	s, err := read(bytes.NewReader([]byte(`{"pid":7}`)), 9)
	require.NoError(t, err)
	require.Equal(t, 7, s.PID)
}
