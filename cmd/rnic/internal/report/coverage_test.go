package report

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/cases"
	"github.com/softrnic/softrnic/conformance/requirements"
	"github.com/softrnic/softrnic/internal/test/docgen"
)

// pageOfCases is made from the lists of this package.
const pageOfCases = "../../../../docs/conformance.md"

// coverage are the numbers of a section, or of a whole source.
type coverage struct {
	must    map[requirements.Class]int
	all     int
	cases   map[string]bool // that assert a key of it
	without int             // MUSTs of class test that no case asserts
	should  int             // SHOULDs
	strict  int             // of them asserted
}

func (c *coverage) add(l Listed) {
	if c.must == nil {
		c.must, c.cases = map[requirements.Class]int{}, map[string]bool{}
	}
	for _, name := range l.Cases {
		c.cases[name] = true
	}
	if l.Level != "MUST" {
		c.should++
		c.strict += min(1, len(l.Cases))
		return
	}
	c.all++
	c.must[l.Class]++
	if l.Class == requirements.Test && len(l.Cases) == 0 {
		c.without++
	}
}

func (c *coverage) row(name string) string {
	cells := []string{name, fmt.Sprint(c.all)}
	for _, class := range requirements.Classes {
		cells = append(cells, blank(c.must[class]))
	}
	cells = append(cells, blank(c.without), fmt.Sprintf("%d of %d", c.strict, c.should), blank(len(c.cases)))
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// blank leaves a cell empty that has nothing to say.
func blank(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

const coverageHead = " | MUSTs | test | construction | consumer | hardware | other layer | not implemented | test without a case | SHOULDs with a case | cases |\n" +
	"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"

// The table of docs/conformance.md is what the registry and the cases say: coverage
// that falls is a change of a document.
func TestConformanceIsCurrent(t *testing.T) {
	specs, sections := map[string]*coverage{}, map[string]*coverage{}
	var specNames, sectionNames []string
	count := func(in map[string]*coverage, names *[]string, name string, l Listed) {
		if in[name] == nil {
			in[name] = &coverage{}
			*names = append(*names, name)
		}
		in[name].add(l)
	}
	for _, l := range List(cases.All()) {
		parts := strings.Split(l.Section, ".")
		count(specs, &specNames, l.Spec, l)
		count(sections, &sectionNames, l.Spec+" "+strings.Join(parts[:min(2, len(parts))], "."), l)
	}
	var b strings.Builder
	b.WriteString("\n| source" + coverageHead)
	for _, name := range specNames {
		b.WriteString(specs[name].row(name))
	}
	for _, spec := range specNames {
		fmt.Fprintf(&b, "\n### %s\n\n| section%s", spec, coverageHead)
		for _, name := range sectionNames {
			if number, ok := strings.CutPrefix(name, spec+" "); ok {
				b.WriteString(sections[name].row(number))
			}
		}
	}
	b.WriteString("\n")
	docgen.Generated(t, pageOfCases, "generated", b.String())
}

// Every class is explained.
func TestConformanceExplainsClasses(t *testing.T) {
	text, err := os.ReadFile(pageOfCases)
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	for _, class := range requirements.Classes {
		explained := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "- `"+string(class)+"`: ") })
		require.True(t, explained, "class %s is not explained", class)
	}
}
