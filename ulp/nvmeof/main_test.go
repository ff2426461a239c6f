package nvmeof

import (
	"testing"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }
