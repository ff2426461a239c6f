package verbs_test

import (
	"testing"

	"github.com/softrnic/softrnic/internal/test/nosighandlers"
)

func init() { nosighandlers.Init() }

// TestMemoryVanishesWithoutHandlers is TestMemoryVanishes in a process where a fault that is left
// to Go's signal handlers would be the end.
func TestMemoryVanishesWithoutHandlers(t *testing.T) { nosighandlers.Again(t, "^TestMemoryVanishes$") }
