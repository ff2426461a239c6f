//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// handled runs programs with signal handlers for the time of the soak: of each kind of timer one all along, and all kinds in turn.
func (k *soaker) handled(ctx context.Context) error {
	build := exec.CommandContext(ctx, "sh", "-ec", row{}.fill(buildHandlers, "", k.options))
	build.Dir = k.dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building handlers: %w\n%s", err, out)
	}
	var all sync.WaitGroup
	for i, mode := range []string{"small", "deep", "onstack"} {
		all.Go(func() { k.note(k.handlersOf(ctx, mode, fmt.Sprintf("127.0.0.%d", 2+i), k.soak)) })
	}
	until := time.Now().Add(k.soak)
	slice := max(k.soak/time.Duration(4*len(handlerModes)), time.Second)
	for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
		k.note(k.handlersOf(ctx, handlerModes[n%len(handlerModes)], "127.0.0.9", min(slice, 15*time.Second)))
	}
	all.Wait()
	return nil
}

var handlersRan = regexp.MustCompile(`(\d+) handlers;`)

// handlersOf runs the program once, at an address of its own.
func (k *soaker) handlersOf(ctx context.Context, mode, addr string, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d+2*time.Minute)
	defer cancel()
	command := fmt.Sprintf("./handlers %s %s %.0f", mode, addr, d.Seconds())
	p, err := k.s.start(ctx, k.dir, k.under("--addr "+addr, command, 0))
	if err != nil {
		return err
	}
	err = p.wait(ctx)
	said := p.out.String()
	if m := handlersRan.FindStringSubmatch(said); m != nil {
		n, _ := strconv.Atoi(m[1])
		k.mu.Lock()
		k.handlers += n
		k.mu.Unlock()
	} else if err == nil {
		err = errors.New("it does not say how many handlers ran")
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, indent(tail(said, 24)))
	}
	return nil
}
