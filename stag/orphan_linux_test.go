package stag

import (
	"testing"

	"github.com/softrnic/softrnic/internal/test/nohandlers"
)

func init() { nohandlers.Init() }

// TestVanishedWithoutHandlers: all that vanishing memory does is the same where Go cannot catch
// the fault.
func TestVanishedWithoutHandlers(t *testing.T) {
	nohandlers.Again(t, "^(TestVanished|TestVanishedFile|TestVanishedPieces|TestMayVanish|TestUpdateVanished)$")
}
