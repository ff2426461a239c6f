package verbs

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestVersionIn: what the go command writes into programs is told: in a clone, in one of a release, in a module that is
// required, or not at all.
func TestVersionIn(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	date := time.Date(2026, 11, 26, 22, 51, 49, 0, time.UTC)
	clone := []debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-11-26T22:51:49Z"}, {Key: "vcs.modified", Value: "false"},
	}
	own := func(version string, s ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: modulePath + "/cmd/rnic", Version: version}, Settings: s}
	}
	required := func(m debug.Module) *debug.BuildInfo {
		m.Path = modulePath
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/x", Version: "(devel)"}, Deps: []*debug.Module{&m}, Settings: clone}
	}
	const unknown = release + " (of a commit that the build did not record)"
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"nothing":               {nil, unknown},
		"a clone, unstamped":    {own("(devel)"), unknown},
		"a clone":               {own("(devel)", clone...), release + " (commit 0123456789ab of 2026-11-26)"},
		"a clone with changes":  {own("v0.9.1-0.20261126225149-0123456789ab+dirty", append(clone[:3:3], debug.BuildSetting{Key: "vcs.modified", Value: "true"})...), release + " (commit 0123456789ab of 2026-11-26, with changes)"},
		"at the tag":            {own("v"+release, clone...), release + " (released, commit 0123456789ab of 2026-11-26)"},
		"at the tag, changed":   {own("v"+release+"+dirty", clone[:3]...), release + " (commit 0123456789ab of 2026-11-26, with changes)"},
		"installed":             {own("v" + release), release + " (released)"},
		"installed by a commit": {own("v0.9.1-0.20261126225149-0123456789ab"), release + " (commit 0123456789ab of 2026-11-26)"},
		"required":              {required(debug.Module{Version: "v" + release}), release + " (released)"},
		"a commit required":     {required(debug.Module{Version: "v0.9.1-0.20261126225149-0123456789ab"}), release + " (commit 0123456789ab of 2026-11-26)"},
		"before any release":    {required(debug.Module{Version: "v0.0.0-20261126225149-0123456789ab"}), release + " (commit 0123456789ab of 2026-11-26)"},
		"replaced":              {required(debug.Module{Version: "v" + release, Replace: &debug.Module{Path: "../softrnic"}}), unknown},
	} {
		assert.Equal(t, tt.want, versionIn(tt.info).String(), name)
	}
	v := versionIn(own("(devel)", clone...))
	assert.Equal(t, VersionInfo{Release: release, Commit: commit, Date: date}, v)
}
