//go:build linux && (amd64 || arm64)

package umem_test

import (
	"testing"

	"github.com/softrnic/softrnic/internal/faulting"
	"github.com/softrnic/softrnic/internal/orphan"
)

func init() {
	orphan.Init()
	faulting.Look()
}

// TestWithoutHandlers: EFAULT is the same where Go cannot catch the fault.
func TestWithoutHandlers(t *testing.T) { orphan.Again(t, "^(TestReadsAndWrites|TestNothingThere)$") }
