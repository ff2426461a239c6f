package cm_test

import (
	"os"
	"testing"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childEnv); addr != "" {
		child(addr)
		return
	}
	leakcheck.Main(m)
}
