//go:build linux && (amd64 || arm64)

package umem_test

import (
	"testing"

	"github.com/softrnic/softrnic/internal/safecopy"
	"github.com/softrnic/softrnic/internal/test/nosighandlers"
)

func init() {
	nosighandlers.Init()
	safecopy.Look()
}

// TestWithoutHandlers: EFAULT is the same where Go cannot catch the fault.
func TestWithoutHandlers(t *testing.T) {
	nosighandlers.Again(t, "^(TestReadsAndWrites|TestNothingThere)$")
}
