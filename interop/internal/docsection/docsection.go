// Package docsection writes what a run found into a page of the documentation, between two markers.
package docsection

import (
	"fmt"
	"os"
	"strings"
)

// markers are around a part of a page; what stands between them is replaced.
func markers(part string) (begin, end string) {
	return "<!-- " + part + ":begin -->", "<!-- " + part + ":end -->"
}

// between returns doc with text in place of what stood between a part's markers.
func between(doc, part, text string) (string, error) {
	begin, end := markers(part)
	head, rest, ok := strings.Cut(doc, begin)
	if !ok {
		return "", fmt.Errorf("no line %q", begin)
	}
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("no line %q after %q", end, begin)
	}
	return head + begin + "\n" + text + end + tail, nil
}

// Update writes text into the page at path, in place of what stands between the lines `<!-- PART:begin -->` and
// `<!-- PART:end -->`. A page without them is an error and stays as it is.
func Update(path, part, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	doc, err := between(string(old), part, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(doc), 0o644)
}
