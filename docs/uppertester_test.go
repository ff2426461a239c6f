package docs

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/cases"
	"github.com/softrnic/softrnic/internal/test/docgen"
)

// reached are the cases and keys that a target can be asked for.
type reached struct {
	cases int
	keys  map[string]bool
}

func (r *reached) add(keys []string) {
	if r.keys == nil {
		r.keys = map[string]bool{}
	}
	r.cases++
	for _, k := range keys {
		r.keys[k] = true
	}
}

// asks are the cases in which a target that runs rping in one role is asked for a stream.
func asks(t *testing.T, role conformance.Role) (r reached) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	if role == conformance.Responder { // the target listens itself
		addr = "127.0.0.1:0"
	}
	target, err := conformance.NewRping(t.Context(), addr, role)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	defer func() { require.NoError(t, target.Close()) }()
	results, err := conformance.Run(t.Context(), cases.All(), target, conformance.Options{Barred: "it is not run here"})
	require.NoError(t, err)
	for _, res := range results {
		if res.Barred {
			r.add(res.Keys)
		}
	}
	return r
}

// docs/upper-tester.md says how much can be reached with rping alone, and how much with an upper tester: in
// cases that are run without --strict, and the keys that they assert.
func TestUpperTesterReach(t *testing.T) {
	var rping, upper reached
	for _, c := range cases.All() {
		switch {
		case c.Strict || c.Need == conformance.NeedAPI:
		case c.Need == conformance.NeedWire:
			rping.add(c.Keys)
			upper.add(c.Keys)
		default:
			upper.add(c.Keys)
		}
	}
	only := 0
	for k := range upper.keys {
		if !rping.keys[k] {
			only++
		}
	}
	row := func(what string, r reached) string {
		return fmt.Sprintf("| %s | %d | %d |\n", what, r.cases, len(r.keys))
	}
	docgen.Generated(t, "upper-tester.md", "reach", "\n| target | cases | keys |\n|---|---:|---:|\n"+
		row("`rping -s -P` (`--rping`)", asks(t, conformance.Initiator))+
		row("`rping -c` (`--rping --role responder`)", asks(t, conformance.Responder))+
		row("rping in both roles", rping)+
		row("an upper tester", upper)+
		fmt.Sprintf("\n%d keys need an upper tester: rping does only what rping does.\n\n", only))
}
