// Command rnic shows, tries and measures the RDMA NIC of this module: a tool
// for people who set up or debug a connection, and a set of worked examples
// of packages verbs and cm.
//
// Each command is a package below internal, and so is what they share: cli is
// how they meet their user, endpoint how they use the RNIC. Results go to
// standard output, as text or with --json as one JSON value; progress and logs
// go to standard error. The exit status is 0 if all went well, 1 if something
// failed, 2 for a wrong command line.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cdi"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/conform"
	"github.com/softrnic/softrnic/cmd/rnic/internal/demo"
	"github.com/softrnic/softrnic/cmd/rnic/internal/dump"
	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric"
	"github.com/softrnic/softrnic/cmd/rnic/internal/info"
	"github.com/softrnic/softrnic/cmd/rnic/internal/man"
	"github.com/softrnic/softrnic/cmd/rnic/internal/nic"
	"github.com/softrnic/softrnic/cmd/rnic/internal/nvme"
	"github.com/softrnic/softrnic/cmd/rnic/internal/perf"
	"github.com/softrnic/softrnic/cmd/rnic/internal/ping"
	"github.com/softrnic/softrnic/cmd/rnic/internal/proxy"
	"github.com/softrnic/softrnic/cmd/rnic/internal/run"
	"github.com/softrnic/softrnic/cmd/rnic/internal/top"
	"github.com/softrnic/softrnic/cmd/rnic/internal/trace"
	"github.com/softrnic/softrnic/cmd/rnic/internal/vi"
)

func main() {
	os.Exit(cli.Main(root()))
}

func root() *cobra.Command {
	return cli.Root(
		info.Command(),
		ping.Command(),
		demo.Command(),
		perf.Command(),
		run.Command(),
		cdi.Command(),
		fabric.Command(),
		top.Command(),
		nic.Command(),
		conform.Command(),
		dump.Command(),
		proxy.Command(),
		trace.Command(),
		vi.Command(),
		nvme.Command(),
		man.Command(),
	)
}
