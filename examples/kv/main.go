// Command kv is a key-value store whose gets are one-sided: a client fetches them with one RDMA Read, and the server's program
// does nothing. Puts are messages.
//
//	kv serve ADDR
//	kv put ADDR KEY VALUE
//	kv get ADDR KEY
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/softrnic/softrnic/cm"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kv:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		l, err := cm.Listen(args[1], cm.ListenConfig{})
		if err != nil {
			return err
		}
		fmt.Println("serving at", l.Addr())
		return serve(ctx, l)
	case len(args) == 4 && args[0] == "put", len(args) == 3 && args[0] == "get":
		s, err := dial(ctx, args[1])
		if err != nil {
			return err
		}
		defer s.close()
		if args[0] == "put" {
			return s.put(ctx, args[2], []byte(args[3]))
		}
		value, err := s.get(ctx, args[2])
		if err == nil && value == nil {
			err = fmt.Errorf("no key %q", args[2])
		}
		if err == nil {
			fmt.Printf("%s\n", value)
		}
		return err
	}
	return fmt.Errorf("usage: kv serve ADDR | kv put ADDR KEY VALUE | kv get ADDR KEY")
}
