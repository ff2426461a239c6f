package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// More clients than receives: each of them gets each answer.
func TestCrowd(t *testing.T) {
	require.NoError(t, run(t.Context(), 2*slots, 5))
}
