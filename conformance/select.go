package conformance

import (
	"fmt"
	"path"
	"strings"
)

// Selection chooses cases. Run and Skip are patterns: a key or the beginning of one
// up to a "-" or "." ("RV-7.2", "R5044"), a section ("7.2"), a case's name, or a
// shell pattern over names or keys ("*window*").
type Selection struct {
	Run, Skip []string
	// Strict takes cases of SHOULDs too.
	Strict bool
}

// Check finds patterns that are none.
func (s Selection) Check() error {
	for _, p := range append(append([]string(nil), s.Run...), s.Skip...) {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%q is no pattern: %w", p, err)
		}
	}
	return nil
}

// Cases is what is chosen of all, in order.
func (s Selection) Cases(all []Case) []Case {
	var chosen []Case
	for _, c := range all {
		if c.Strict && !s.Strict {
			continue
		}
		if (len(s.Run) == 0 || matchesAny(s.Run, &c)) && !matchesAny(s.Skip, &c) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// Takes reports whether a key is chosen.
func (s Selection) Takes(key string) bool {
	c := &Case{Keys: []string{key}}
	return (len(s.Run) == 0 || matchesAny(s.Run, c)) && !matchesAny(s.Skip, c)
}

func matchesAny(patterns []string, c *Case) bool {
	for _, p := range patterns {
		if Matches(p, c.Name, c.Keys) {
			return true
		}
	}
	return false
}

// Matches reports whether pattern p takes something of this name or with one of
// these keys.
func Matches(p, name string, keys []string) bool {
	if name != "" && (begins(name, p) || shell(p, name)) {
		return true
	}
	for _, k := range keys {
		_, section, _ := strings.Cut(k, "-")
		if begins(k, p) || begins(section, p) || shell(p, k) {
			return true
		}
	}
	return false
}

// begins reports whether s is p, or continues it with another part.
func begins(s, p string) bool {
	rest, ok := strings.CutPrefix(s, p)
	return ok && p != "" && (rest == "" || strings.ContainsRune("-./", rune(rest[0])) || strings.HasSuffix(p, "/"))
}

func shell(p, s string) bool {
	ok, err := path.Match(strings.ReplaceAll(p, "/", "\x00"), strings.ReplaceAll(s, "/", "\x00"))
	return err == nil && ok
}
