package archtest

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// codecs are the packages that put the product's messages on the wire and read them there, and the
// raw peer that is built upon them. A case that used them would pass with a fault that is in both
// directions alike: conformance/cases has a codec of its own.
var codecs = []string{"mpa", "ddp", "rdmap", "internal/test/rawpeer"}

// subjects are the case files that have such a package all the same, because its functions are what
// they show. fixture_host.go names two arguments of a verbs.StreamConfig. .golangci.yml has the same list.
var subjects = map[string]string{
	"r5041_3_api.go":  "mpa", // the MULPDU of a path that changes
	"r5044_4_5.go":    "mpa", // MULPDU, what Framer refuses, Initiate and Await
	"r6581_10.go":     "mpa", // Initiate, as it is configured
	"fixture_host.go": "mpa",
}

func TestCasesHaveTheirOwnCodec(t *testing.T) {
	files, err := filepath.Glob(root + "/conformance/cases/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	used := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imp := range parsed.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			if rel := strings.TrimPrefix(path, Module+"/"); slices.Contains(codecs, rel) {
				used[filepath.Base(file)] += rel
			}
		}
	}
	assert.Equal(t, subjects, used, "case files that import %v: frame with octets*.go instead", codecs)
}
