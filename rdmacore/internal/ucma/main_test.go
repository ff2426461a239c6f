//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"testing"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }
