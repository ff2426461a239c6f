// Command params is a parameter server that survives the loss of a NIC: workers fetch the parameters with one RDMA Read, and
// push what is to be added to them. A worker whose path stands still goes on by another address of the server, and no push
// is lost or counted twice.
//
//	params serve WORKERS ADDR...
//	params work ID STEPS ADDR...
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
)

// A push is the worker's number, its step, how many steps it has in all, and something to add to each parameter. The
// answer has nothing in it.
const (
	parameters = 1024
	octets     = 8 * parameters
	header     = 12
	pushSize   = header + octets
)

// share is what a worker adds to a parameter in each step: something that all can check.
func share(worker, parameter int) float64 { return float64((worker + 1) * (parameter%7 + 1)) }

func value(b []byte, i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])) }
func setValue(b []byte, i int, v float64) {
	binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "params:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	usage := errors.New("usage: params serve WORKERS ADDR... | params work ID STEPS ADDR..., with one ADDR for each NIC of the server")
	number := func(i int) int {
		if i >= len(args) {
			return 0
		}
		n, _ := strconv.Atoi(args[i])
		return n
	}
	switch {
	case len(args) >= 3 && args[0] == "serve" && number(1) > 0:
		return serve(ctx, number(1), args[2:], os.Stdout)
	case len(args) >= 4 && args[0] == "work" && number(1) >= 0 && number(2) > 0:
		return work(ctx, number(1), number(2), args[3:], os.Stdout)
	}
	return usage
}
