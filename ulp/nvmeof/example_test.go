package nvmeof_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

// A target that serves a disk of 16 MiB in memory. On a Linux host `nvme connect -t rdma -a ADDRESS -s PORT -n NQN` makes a block
// device of it.
func Example() {
	disk := nvmeof.Memory(16 << 20)
	subsystem, err := nvmeof.NewSubsystem("nqn.2026-11.io.example:scratch", []nvmeof.Disk{disk})
	if err != nil {
		log.Fatal(err)
	}
	target, err := nvmeof.New(nvmeof.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}, subsystem)
	if err != nil {
		log.Fatal(err)
	}
	defer target.Close()

	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("serving on", l.Addr().(*net.TCPAddr).IP)
	ctx, stop := context.WithCancel(context.Background())
	stop() // a real one goes on
	err = target.Serve(ctx, l)
	fmt.Println("ended:", err)
	// Output:
	// serving on 127.0.0.1
	// ended: <nil>
}
