package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

func tried(name string, v conformance.Verdict, tries int, detail string, keys ...string) attempted {
	return attempted{Result: conformance.Result{Case: name, Verdict: v, Detail: detail, Keys: keys}, tries: tries}
}

// mixedFindings have one of each: the same in both roles, in one role, a late pass, a
// skip and a crash.
func mixedFindings() *findings {
	f := newFindings()
	for _, role := range bothRoles {
		f.add(role, tried("7.2/both", conformance.Fail, 3, "Terminate 0/2/06, not 1|2", "R5040-7.2-M2", "R5040-7.2-M3"))
	}
	f.add(conformance.Initiator, tried("4.1/server", conformance.Fail, 3, "the pad\nis 1", "R5044-4.1-M2"))
	f.add(conformance.Responder, tried("4.1/server", conformance.Skip, 1, "one role only", "R5044-4.1-M2"))
	f.add(conformance.Initiator, tried("5.1/late", conformance.Pass, 2, "", "R5044-5.1-M1"))
	crash := tried("8/crash", conformance.Pass, 2, "", "R5044-8-M2")
	crash.crash = "kernel BUG at x.c:1!"
	f.add(conformance.Responder, crash)
	return f
}

func TestFindings(t *testing.T) {
	f := mixedFindings()
	rows := f.rows()
	require.Len(t, rows, 4)
	assert.Equal(t, row{"R5040-7.2-M2", "Unknown or unfitting opcodes are refused in messages.", "Terminate 0/2/06, not 1|2", "server, client", "7.2/both"}, rows[0])
	assert.Equal(t, "R5040-7.2-M3", rows[1].key)
	assert.Equal(t, "the pad; is 1", rows[2].did)
	assert.Equal(t, "server", rows[2].siw)
	assert.Equal(t, "its kernel failed: kernel BUG at x.c:1!", rows[3].did)
	assert.Equal(t, "client", rows[3].siw)
	assert.Equal(t, []string{"siw as server: 1 pass, 2 fail, 0 skip", "siw as client: 1 pass, 1 fail, 1 skip"}, f.totals())
	assert.Equal(t, []string{"5.1/late (siw as server) passed on try 2", "8/crash (siw as client) passed on try 2"}, f.passedLate())
	text := f.markdown("Linux X")
	assert.Contains(t, text, "| R5040-7.2-M2 | Unknown or unfitting opcodes are refused in messages. | Terminate 0/2/06, not 1\\|2 | server, client | 7.2/both |\n")
	assert.Contains(t, text, "Peer: Linux X.\n")
	var b strings.Builder
	require.NoError(t, f.writeText(&b))
	assert.Equal(t, 1, strings.Count(b.String(), "7.2/both"), "a case is a line")
}

func TestOneLine(t *testing.T) {
	tests := []struct{ name, detail, want string }{
		{"own words", "a Send: Terminate 1/2/02, not 1/2/05", "a Send: Terminate 1/2/02, not 1/2/05"},
		{"two of them", "one\ntwo", "one; two"},
		{"testify", "Error Trace:\t/a/b.go:56\n\t   \t/c/d.go:1\n\tError:      \tShould be zero, but was 15\n\tMessages:   \tthe reserved bits", "the reserved bits: Should be zero, but was 15"},
		{"testify in a part", "revision 77: Error Trace:\t/a/b.go:56\n\tError:      \tNot equal: \n\t  \texpected: 1\n\t  \tactual  : 2\n\n\t\tDiff:\n\t\t--- Expected\n", "revision 77: Not equal:; expected: 1; actual  : 2"},
		{"without a message", "Error Trace:\t/a/b.go:56\n\tError:      \tShould be true", "Should be true"},
		{"long", strings.Repeat("x", 300), strings.Repeat("x", 220) + "..."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, oneLine(tt.detail)) })
	}
}
