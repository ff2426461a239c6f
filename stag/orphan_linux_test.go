package stag

import (
	"testing"

	"github.com/softrnic/softrnic/internal/test/nosighandlers"
)

func init() { nosighandlers.Init() }

// TestVanishedWithoutHandlers: all that vanishing memory does is the same where Go cannot catch
// the fault.
func TestVanishedWithoutHandlers(t *testing.T) {
	nosighandlers.Again(t, "^(TestVanished|TestVanishedFile|TestVanishedPieces|TestMayVanish|TestUpdateVanished)$")
}
