package verbs

import (
	"runtime/debug"
	"strings"
	"time"
)

// release is the version of softrnic: the last one that is published, or the next. Nothing else has it but what
// tools/release.sh stamps from here.
const release = "0.9.0"

// modulePath is the module of this package. Programs of softrnic may be in modules below it.
const modulePath = "github.com/softrnic/softrnic"

// VersionInfo is which softrnic a program has.
type VersionInfo struct {
	// Release is the version, such as "0.9.0". A build of another commit than the published one has the same, and Commit.
	Release string
	// Published is whether it is the module of that version, or was built at the commit that has its tag.
	Published bool
	// Commit is the commit, in 12 hexadecimal digits or more; "" if the build does not know it.
	Commit string
	// Date is the commit's; zero if the build does not know it.
	Date time.Time
	// Changed is whether files differed from those of the commit.
	Changed bool
}

// Version is the version of this package, with commit and date as far as the build knows them: the go command writes them
// into programs that it builds in a clone, not into tests and not with -buildvcs=false; into programs that require
// this module it writes the module's version.
func Version() VersionInfo {
	info, _ := debug.ReadBuildInfo()
	return versionIn(info)
}

// versionIn is the version as a build recorded it; nil if it has not.
func versionIn(info *debug.BuildInfo) VersionInfo {
	v := VersionInfo{Release: release}
	if info == nil {
		return v
	}
	if m := info.Main; m.Path == modulePath || strings.HasPrefix(m.Path, modulePath+"/") {
		v.module(m.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.time":
				v.Date, _ = time.Parse(time.RFC3339, s.Value) // zero stands for unknown
			case "vcs.modified":
				v.Changed = s.Value == "true"
			}
		}
		return v
	}
	for _, m := range info.Deps {
		if m.Path == modulePath && m.Replace == nil {
			v.module(m.Version)
		}
	}
	return v
}

// module takes what a module's version says: a release's, or of a commit between releases its time and first digits
// (go.dev/ref/mod, "Pseudo-versions").
func (v *VersionInfo) module(version string) {
	version, build, _ := strings.Cut(version, "+")
	v.Changed = build == "dirty"
	if version == "v"+release {
		v.Published = !v.Changed
		return
	}
	parts := strings.Split(version, "-")
	if len(parts) < 3 {
		return
	}
	stamp := parts[len(parts)-2]
	stamp = stamp[strings.LastIndexByte(stamp, '.')+1:]
	if date, err := time.Parse("20060102150405", stamp); err == nil {
		v.Commit, v.Date = parts[len(parts)-1], date
	}
}

// String is such as "0.9.0 (commit 0123456789ab of 2026-11-26)".
func (v VersionInfo) String() string {
	var notes []string
	if v.Published {
		notes = append(notes, "released")
	}
	switch {
	case v.Commit != "":
		commit := "commit " + v.Commit[:min(len(v.Commit), 12)]
		if !v.Date.IsZero() {
			commit += " of " + v.Date.UTC().Format(time.DateOnly)
		}
		notes = append(notes, commit)
	case !v.Published:
		notes = append(notes, "of a commit that the build did not record")
	}
	if v.Changed {
		notes = append(notes, "with changes")
	}
	return v.Release + " (" + strings.Join(notes, ", ") + ")"
}
