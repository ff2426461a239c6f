package requirements

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	count := map[string]map[Class]int{}
	for _, name := range order {
		part, err := read(name)
		require.NoError(t, err)
		require.NotEmpty(t, part, name)
		for _, r := range part {
			assert.False(t, seen[r.Key], "%s twice", r.Key)
			seen[r.Key] = true
			assert.LessOrEqual(t, len(strings.Fields(r.Summary)), 25, "%s: at most 25 words", r.Key)
			assert.Equal(t, strings.TrimSpace(r.Summary), r.Summary, r.Key)
			if r.Level == "MUST" {
				if count[r.Spec] == nil {
					count[r.Spec] = map[Class]int{}
				}
				count[r.Spec][r.Class]++
			}
		}
	}
	assert.Len(t, ByKey(), len(All()))
	all := 0
	for _, n := range count["verbs"] {
		all += n
	}
	assert.Equal(t, 724, all, "MUSTs of the verbs draft")
	assert.GreaterOrEqual(t, count["verbs"][Test]*100, 90*all)
	all, tests := 0, 0
	for spec, classes := range count {
		if !strings.HasPrefix(spec, "rfc") || spec == "rfc7306" {
			continue
		}
		for c, n := range classes {
			all += n
			if c == Test {
				tests += n
			}
		}
	}
	assert.GreaterOrEqual(t, tests*100, 85*all, "of the RFCs' MUSTs")
	for spec, want := range map[string]int{"vitcp": 44, "via": 111, "nd2": 75, "plain": 190} {
		all := 0
		for _, n := range count[spec] {
			all += n
		}
		assert.Equal(t, want, all, "MUSTs of %s", spec)
		assert.GreaterOrEqual(t, count[spec][Test]*100, 85*all, spec)
	}
}

func TestMalformedLines(t *testing.T) {
	for name, line := range map[string]string{
		"fields":     "RV-5.1-M1\ttest\tx",
		"key":        "RV-5.1\ttest\tx\t",
		"may":        "RV-5.1-O1\ttest\tx\t",
		"flag":       "RV-5.1-F1\ttest\tx\t",
		"should":     "ND-Send-S1\ttest\tx\t",
		"no RFC":     "PR-7.2-M1\ttest\tx\t",
		"class":      "RV-5.1-M1\tmaybe\tx\t",
		"no summary": "RV-5.1-M1\ttest\t\t",
		"no note":    "RV-5.1-M1\thardware\tx\t",
		"no reason":  "RV-5.1-M1\tnot-implemented\tx\t",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(line)
			require.Error(t, err)
		})
	}
	r, err := parse("R5044-7.1.2-M4\ttest\tx\tbecause")
	require.NoError(t, err)
	assert.Equal(t, Requirement{
		Key: "R5044-7.1.2-M4", Spec: "rfc5044", Section: "7.1.2", Level: "MUST", Class: Test, Summary: "x", Note: "because",
	}, r)
	for key, spec := range map[string]string{"RV-5.1-M1": "verbs", "VT-3.2-M1": "vitcp", "VA-6.4.1-M2": "via", "ND-Send-F1": "nd2"} {
		r, err := parse(key + "\ttest\tx\t")
		require.NoError(t, err)
		assert.Equal(t, spec, r.Spec)
	}
	for key, section := range map[string]string{"PV-7.2-M1": "PV-7.2", "PR-5040-4.8-M1": "PR-5040-4.8", "PA-2.4.1-M1": "PA-2.4.1", "PT-3.4-M1": "PT-3.4"} {
		r, err := parse(key + "\ttest\tx\t")
		require.NoError(t, err)
		assert.Equal(t, "plain", r.Spec)
		assert.Equal(t, section, r.Section)
	}
}
