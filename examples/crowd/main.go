// Command crowd is a server of a thousand clients with one completion queue, one shared receive queue and one loop: what it holds
// ready is as much as is on its way at once, and not as much as there are clients.
//
//	crowd [CLIENTS [QUESTIONS]]
//
// The clients are in the same process, so that one command shows it.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/cm"
)

func main() {
	clients, questions := 1000, 20
	for i, n := range []*int{&clients, &questions} {
		if len(os.Args) > i+1 {
			v, err := strconv.Atoi(os.Args[i+1])
			if err != nil || v < 1 {
				fmt.Fprintln(os.Stderr, "usage: crowd [CLIENTS [QUESTIONS]]")
				os.Exit(2)
			}
			*n = v
		}
	}
	if err := run(context.Background(), clients, questions); err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, clients, questions int) error {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{Backlog: 2 * clients, MaxStartups: 2 * clients}) // one source: see ListenConfig
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		answered, err := serve(ctx, l)
		fmt.Printf("the server answered %d questions with %d receives\n", answered, slots)
		served <- err
	}()
	begun := time.Now()
	asked, err := ask(ctx, l.Addr().String(), clients, questions)
	if err == nil {
		fmt.Printf("%d clients had %d answers in %v\n", clients, asked, time.Since(begun).Round(time.Millisecond))
	}
	cancel()
	if failed := <-served; err == nil {
		err = failed
	}
	return err
}
