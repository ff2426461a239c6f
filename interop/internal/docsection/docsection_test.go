package docsection

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBetween(t *testing.T) {
	beginMarker, endMarker := markers("matrix")
	tests := []struct{ name, doc, want, err string }{
		{"replaces", "a\n" + beginMarker + "\nold\n" + endMarker + "\nz\n", "a\n" + beginMarker + "\nnew\n" + endMarker + "\nz\n", ""},
		{"first time", beginMarker + endMarker, beginMarker + "\nnew\n" + endMarker, ""},
		{"no begin", "a\n" + endMarker, "", beginMarker},
		{"no end", "a\n" + beginMarker + "\n", "", endMarker},
		{"end before begin", endMarker + beginMarker, "", endMarker},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := between(tt.doc, "matrix", "new\n")
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}
