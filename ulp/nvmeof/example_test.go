package nvmeof_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

const name = "nqn.2026-01.org.softrnic:example"

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func get[T any](v T, err error) T {
	check(err)
	return v
}

// A program exports a disk in memory. A host, which Linux's could be as well, writes a block of it and reads it again:
//
//	nvme connect -t rdma -a ADDR -s PORT -n nqn.2026-01.org.softrnic:example
func Example() {
	disk := nvmeof.Memory(1 << 20) // or nvmeof.OpenFile, or a Disk of your own
	subsystem := get(nvmeof.NewSubsystem(name, []nvmeof.Disk{disk}))
	target := get(nvmeof.New(nvmeof.Config{}, subsystem))
	l := get(cm.Listen("127.0.0.1:0", cm.ListenConfig{}))
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- target.Serve(ctx, l) }()

	useDisk(ctx, l.Addr().String())

	b := make([]byte, 15)
	get(disk.ReadAt(b, 8*512))
	fmt.Printf("the disk has   %q\n", b)
	stop()
	check(<-served)
	check(target.Close())
	// Output:
	// nqn.2026-01.org.softrnic:example has a namespace of 1048576 octets
	// the host reads "Hello, block 8!"
	// the disk has   "Hello, block 8!"
}

// useDisk is the host. Its target may be Linux's.
func useDisk(ctx context.Context, addr string) {
	for _, e := range get(nvmeof.Discover(ctx, addr, nvmeof.HostConfig{})) {
		host := get(nvmeof.Dial(ctx, e.Address, e.NQN, nvmeof.HostConfig{}))
		for _, n := range get(host.Namespaces(ctx)) {
			fmt.Printf("%s has a namespace of %d octets\n", e.NQN, n.Size())
			block := make([]byte, n.BlockSize())
			copy(block, "Hello, block 8!")
			get(n.WriteAt(block, int64(8*n.BlockSize())))
			check(n.Flush(ctx))
			clear(block)
			get(n.ReadAt(block, int64(8*n.BlockSize())))
			fmt.Printf("the host reads %q\n", block[:15])
		}
		check(host.Close())
	}
}
