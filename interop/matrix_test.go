package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCellsCoverTheMatrix(t *testing.T) {
	for _, dir := range []direction{ourClient, ourServer} {
		all := cells(dir)
		require.Len(t, all, 2*2*2*len(sizes))
		seen := make(map[cell]bool)
		for _, c := range all {
			require.False(t, seen[c], "%v twice", c)
			require.Equal(t, dir, c.dir)
			seen[c] = true
		}
	}
}

func TestCellNamesAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range append(cells(ourClient), cells(ourServer)...) {
		require.False(t, seen[c.String()], "%v twice", c)
		seen[c.String()] = true
	}
	require.True(t, seen["siw client, rnic server, rev 2, p2p on, crc off, 4096 octets"])
}

func TestImpossible(t *testing.T) {
	for _, s := range allSettings() {
		assert.Equal(t, s.rev == 1 && s.p2p, s.impossible() != "", "%+v", s)
	}
}

func TestJudge(t *testing.T) {
	rev1 := cell{settings: settings{rev: 1}, size: 64}
	rev2 := cell{settings: settings{rev: 2}, size: 64}
	broken, refused := errors.New("data mismatch"), errors.New("refused")
	tests := []struct {
		name          string
		cell          cell
		ours, control error
		want          verdict
		cause         []string
	}{
		{"both pass", rev2, nil, nil, passed, nil},
		{"we pass where siw does not", rev1, nil, refused, passed, nil},
		{"we fail where siw passes", rev2, broken, nil, failed, []string{"data mismatch"}},
		{"a known limit does not excuse us while siw passes", rev1, broken, nil, failed, []string{"data mismatch"}},
		{"a stall is ours to prevent", rev2, errStalled, nil, failed, []string{"unread"}},
		{"known limit of siw", rev1, broken, refused, siwFailed, []string{"ORD 0", "refused"}},
		{"unknown limit of siw", rev2, broken, refused, siwFailed, []string{"siw fails with itself too: refused"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := judge(tt.cell, tt.ours, tt.control)
			assert.Equal(t, tt.want, got.verdict)
			if tt.cause == nil {
				assert.Empty(t, got.cause)
			}
			for _, part := range tt.cause {
				assert.Contains(t, got.cause, part)
			}
		})
	}
}

func TestVerdictNames(t *testing.T) {
	assert.Equal(t, "FAIL", failed.String())
	assert.Equal(t, "verdict(9)", verdict(9).String())
}
