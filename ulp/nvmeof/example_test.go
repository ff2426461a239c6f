package nvmeof_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func get[T any](v T, err error) T {
	check(err)
	return v
}

// A program exports a disk in memory, and a host writes a block of it and reads it again. The host is in example_host_test.go; Linux's would be
//
//	nvme connect -t rdma -a ADDR -s PORT -n nqn.2026-01.org.softrnic:example
func Example() {
	const name = "nqn.2026-01.org.softrnic:example"
	disk := nvmeof.Memory(1 << 20) // or nvmeof.OpenFile, or a Disk of your own
	subsystem := get(nvmeof.NewSubsystem(name, []nvmeof.Disk{disk}))
	target := get(nvmeof.New(nvmeof.Config{}, subsystem))
	l := get(cm.Listen("127.0.0.1:0", cm.ListenConfig{}))
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- target.Serve(ctx, l) }()

	h := connect(ctx, l.Addr().String(), name)
	h.write(8, "Hello, block 8!")
	fmt.Printf("the host reads %q\n", h.read(8)[:15])
	b := make([]byte, 15)
	get(disk.ReadAt(b, 8*512))
	fmt.Printf("the disk has   %q\n", b)
	h.close()

	stop()
	check(<-served)
	check(target.Close())
	// Output:
	// the host reads "Hello, block 8!"
	// the disk has   "Hello, block 8!"
}
