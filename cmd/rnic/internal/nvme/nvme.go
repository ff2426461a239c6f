// Package nvme is `rnic nvme`: disks for hosts that speak NVMe over Fabrics on RDMA, and such a host.
package nvme

import (
	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// Command makes `rnic nvme`.
func Command() *cobra.Command {
	return cli.Group("nvme", "Export disks over NVMe over Fabrics, and use such disks",
		serveCommand(), lsCommand(), readCommand(), writeCommand(), checkCommand())
}
