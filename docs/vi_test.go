package docs

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/vipl"
)

// TestVIIsCurrent generates the table of a VI; those of a connection are written by a test of vitcp.
func TestVIIsCurrent(t *testing.T) {
	var b strings.Builder
	viStates(&b)
	b.WriteString("\n")
	docgen.Generated(t, "vi.md", "generated", b.String())
}

// viStates is the table of vipl: a row for each event, a column for each state.
func viStates(b *strings.Builder) {
	states := []vipl.ViState{vipl.StateIdle, vipl.StateConnectPending, vipl.StateConnected, vipl.StateError}
	b.WriteString("\n### A VI\n\n| event |")
	for _, s := range states {
		fmt.Fprintf(b, " %v |", s)
	}
	b.WriteString("\n|---|---|---|---|---|\n")
	for e := vipl.EventConnectRequest; e <= vipl.EventConnLost; e++ {
		fmt.Fprintf(b, "| %v |", e)
		for _, s := range states {
			tr := vipl.On(s, e)
			what := tr.Actions.String()
			switch {
			case tr.Code != vipl.Success:
				what = "refused: " + strings.TrimPrefix(tr.Code.Error(), "vipl: ")
			case tr.Next == s && what == "" && e < vipl.EventEstablished:
				what = "done" // a call
			case tr.Next == s && what == "":
				what = "nothing"
			case tr.Next != s:
				what = strings.TrimSuffix(fmt.Sprintf("to **%v**: %s", tr.Next, what), ": ")
			}
			fmt.Fprintf(b, " %s |", what)
		}
		b.WriteString("\n")
	}
}

// The tables of calls leave no call out, and what they name is there.
func TestVINamesAllCalls(t *testing.T) {
	raw, err := os.ReadFile("vi.md")
	require.NoError(t, err)
	text := string(raw)
	count := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bVip[A-Z]\w+`).FindAllString(text, -1) {
		count[name] = true
	}
	assert.Len(t, count, 34, "calls of appendix A")
	methods := map[string]bool{"OpenNic": true}
	for _, handle := range []reflect.Type{
		reflect.TypeFor[vipl.NicHandle](), reflect.TypeFor[vipl.ViHandle](), reflect.TypeFor[vipl.CQHandle](), reflect.TypeFor[vipl.ConnHandle](),
	} {
		for i := range handle.NumMethod() {
			name := handle.Method(i).Name
			methods[name] = true
			assert.Contains(t, text, name, handle)
		}
	}
	for name := range count {
		assert.True(t, methods[strings.TrimPrefix(name, "Vip")], name)
	}
}

// Each file that the page names is there.
func TestVINamesFiles(t *testing.T) {
	raw, err := os.ReadFile("vi.md")
	require.NoError(t, err)
	names := regexp.MustCompile("`([a-z/_]+\\.go)`").FindAllStringSubmatch(string(raw), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		found := false
		for _, dir := range []string{"", "internal/vitcp/", "vipl/"} {
			_, err := os.Stat("../" + dir + name[1])
			found = found || err == nil
		}
		assert.True(t, found, name[1])
	}
}
