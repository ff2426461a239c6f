package netpoll

import (
	"os"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

// patience bounds what a test waits for.
var patience = 30 * time.Second

// TestMain has less patience where a mutant is to be noticed (conformance/mutants).
func TestMain(m *testing.M) {
	if d, err := time.ParseDuration(os.Getenv("SOFTRNIC_PATIENCE")); err == nil {
		patience = d
	}
	leakcheck.Main(m)
}
