//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"testing"

	"github.com/softrnic/softrnic/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
