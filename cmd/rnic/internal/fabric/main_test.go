package fabric

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/nic"
	"github.com/softrnic/softrnic/cmd/rnic/internal/ping"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() *cobra.Command { return cli.Root(Command(), ping.Command(), nic.Command()) })
}
