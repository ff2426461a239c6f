package engine

import (
	"testing"

	"github.com/softrnic/softrnic/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
