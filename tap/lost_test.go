package tap

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/dissect"
)

// TestLostIsSaid: how many records are missing is in the capture.
func TestLostIsSaid(t *testing.T) {
	r, err := dissect.Read(bytes.NewReader(append(header(false), statistics(time.Now(), 7)...)), nil)
	require.NoError(t, err)
	assert.Equal(t, uint64(7), r.Lost)
}
