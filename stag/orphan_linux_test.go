package stag

import (
	"testing"

	"github.com/softrnic/softrnic/internal/orphan"
)

func init() { orphan.Init() }

// TestVanishedWithoutHandlers: all that vanishing memory does is the same where Go cannot catch
// the fault.
func TestVanishedWithoutHandlers(t *testing.T) {
	orphan.Again(t, "^(TestVanished|TestVanishedFile|TestVanishedPieces|TestMayVanish|TestUpdateVanished)$")
}
