// Command rnic-device-plugin offers RDMA devices in software to the pods of a Kubernetes node.
//
// docs/kubernetes.md says how it is installed. It runs once on each node, in a container of its own:
//
//	rnic-device-plugin install   copies rnic and its libraries from the image to the host (an init container)
//	rnic-device-plugin serve     is the device plug-in
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/softrnic/softrnic/kubernetes/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := command.Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rnic-device-plugin:", err)
		os.Exit(1)
	}
}
