//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// grpc runs gRPC-Go's interop cases, client and server a process each: see interop/ulps/testdata/grpc. It returns a table.
func (o options) grpc(ctx context.Context) (text string, ok bool, err error) {
	dir, err := os.MkdirTemp("", "ulps-")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "grpc")
	build := exec.CommandContext(ctx, "go", "build", "-C", "interop/ulps/testdata/grpc", "-o", program, ".")
	build.Env = append(os.Environ(), "GOWORK=off") // it is no module of go.work
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", false, fmt.Errorf("building interop/ulps/testdata/grpc: %w", err)
	}
	names, err := exec.CommandContext(ctx, program, "cases").Output()
	if err != nil {
		return "", false, err
	}
	plain, secure, stop, err := serveGRPC(ctx, program)
	if err != nil {
		return "", false, err
	}
	defer stop()
	var b strings.Builder
	b.WriteString("| case | plain | seconds | TLS | seconds |\n|---|---|---|---|---|\n")
	ok = true
	for _, name := range strings.Fields(string(names)) {
		if !o.only.MatchString("grpc " + name) {
			continue
		}
		fmt.Fprintf(&b, "| `%s` |", name)
		for _, args := range [][]string{{"run", name, plain}, {"run", name, "tls", secure}} {
			took, err := runGRPC(ctx, program, args)
			result := verdict("passed", err)
			ok = ok && err == nil
			if ctx.Err() != nil {
				return "", false, ctx.Err()
			}
			fmt.Fprintf(os.Stderr, "grpc %s: %s, %.2f s\n", strings.Join(args[1:], " "), result, took.Seconds())
			fmt.Fprintf(&b, " %s | %.2f |", result, took.Seconds())
		}
		b.WriteString("\n")
	}
	return b.String(), ok, nil
}

// serveGRPC starts the server, and returns where it listens. It ends with its input.
func serveGRPC(ctx context.Context, program string) (plain, secure string, stop func(), err error) {
	server := exec.CommandContext(ctx, program, "serve")
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return "", "", nil, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return "", "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", "", nil, err
	}
	stop = func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = server.Wait()
	}
	if _, err := fmt.Fscan(bufio.NewReader(out), &plain, &secure); err != nil {
		stop()
		return "", "", nil, fmt.Errorf("the server of interop/ulps/testdata/grpc says no addresses: %w", err)
	}
	return plain, secure, stop, nil
}

// runGRPC runs a case, in time. An error ends with the last that the client has said.
func runGRPC(ctx context.Context, program string, args []string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	begun := time.Now()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		err = fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return time.Since(begun), err
}
