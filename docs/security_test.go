package docs

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/cases"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// The cases that docs/security.md names are there, and it names every key of RFC
// 5042 but the two that ask for nothing.
func TestSecurityNamesCases(t *testing.T) {
	raw, err := os.ReadFile("security.md")
	require.NoError(t, err)
	text := string(raw)
	there := map[string]bool{}
	for _, c := range cases.All() {
		there[c.Name] = true
	}
	named := regexp.MustCompile("`([0-9][0-9.]*/[a-z0-9-]+)`").FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		assert.True(t, there[m[1]], "there is no case %s", m[1])
	}
	for _, r := range requirements.All() {
		if r.Spec == "rfc5042" && r.Section != "10.2" && r.Level == "MUST" {
			assert.Regexp(t, regexp.QuoteMeta(r.Section)+`-M`, text, "%s is not spoken of", r.Key)
		}
	}
}
