//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

// benchmarks are those of ulp/rsocket, the figure that each gives of its ratio of times, and what is aimed at.
var benchmarks = []struct {
	name, what string
	rate       bool // the ratio is of rates
	aim        string
}{
	{"PingPong", "64 bytes there and back, time", false, "at most 1.3"},
	{"Stream", "writes of 1 MiB, bytes a second", true, "at least 0.9"},
	{"Crowd", "`net/http` over 1,000 connections, 32 asking at a time, requests a second", true, "at least 0.8"},
}

// besideTCP runs the benchmarks, which take turns with a net.Conn of TCP, and returns a table.
func (options) besideTCP(ctx context.Context) (text string, ok bool, err error) {
	var b strings.Builder
	b.WriteString("## Beside a net.Conn of TCP\n\nBoth ends in one process, in turns; medians of three runs of each benchmark\n(`go test -run '^$' -bench . ./ulp/rsocket`).\n\n")
	b.WriteString("| what | rsocket beside TCP | aim |\n|---|---|---|\n")
	for _, m := range benchmarks {
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", m.name, "-benchtime", "3s", "-count", "3", "./ulp/rsocket")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", false, fmt.Errorf("%s: %w: %s", m.name, err, out)
		}
		var ratios []float64
		for _, f := range regexp.MustCompile(`([0-9.]+) p50-ratio`).FindAllStringSubmatch(string(out), -1) {
			v, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return "", false, err
			}
			ratios = append(ratios, v)
		}
		if len(ratios) == 0 {
			return "", false, fmt.Errorf("%s printed no ratio: %s", m.name, out)
		}
		v := median(ratios)
		if m.rate {
			v = 1 / v
		}
		fmt.Fprintf(&b, "| %s | %.2f | %s |\n", m.what, v, m.aim)
		fmt.Fprintf(os.Stderr, "%s: %.2f\n", m.name, v)
	}
	return b.String(), true, nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// besideC runs rstream at both ends under `rnic run`, and the same exchange between two Go programs, in turns, and returns a table.
func (o options) besideC(ctx context.Context) (text string, ok bool, err error) {
	var b strings.Builder
	b.WriteString("## Beside the rsockets of C\n\nTwo processes each: `rstream -T b` under `rnic run` at both ends, and the same exchange between two Go programs. The\n" +
		"time of one transfer, medians of five turns.\n\n| exchange | C | Go | Go beside C |\n|---|---|---|---|\n")
	for _, x := range []exchange{{64, 1, 20000}, {4096, 1000, 10}, {1 << 20, 100, 2}} {
		var c, g []float64
		for range 5 {
			v, err := timeC(ctx, o.rnic, x)
			if err != nil {
				return "", false, err
			}
			c = append(c, v)
			if v, err = timeGo(ctx, x); err != nil {
				return "", false, err
			}
			g = append(g, v)
		}
		what := fmt.Sprintf("%d bytes, %d transfers in a row", x.size, x.transfers)
		if x.transfers == 1 {
			what = fmt.Sprintf("%d bytes, there and back", x.size)
		}
		fmt.Fprintf(&b, "| %s | %.1f us | %.1f us | %.2f |\n", what, median(c), median(g), median(g)/median(c))
		fmt.Fprintf(os.Stderr, "%s: C %.1f us, Go %.1f us\n", what, median(c), median(g))
	}
	return b.String(), true, nil
}

func (x exchange) options() string {
	return fmt.Sprintf("-S %d -C %d -I %d -T b", x.size, x.transfers, x.iterations)
}

// timeC is how many microseconds a transfer takes, as rstream's last column says.
func timeC(ctx context.Context, rnic string, x exchange) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	command := func(more ...string) *exec.Cmd {
		words := append([]string{"run", "--addr", "127.0.0.1", "--", "rstream", "-p", strconv.Itoa(port)}, strings.Fields(x.options())...)
		return exec.CommandContext(ctx, rnic, append(words, more...)...)
	}
	server := command()
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	for {
		out, err := command("-s", "127.0.0.1").Output()
		lines := strings.Fields(string(out))
		if err == nil && len(lines) > 0 {
			return strconv.ParseFloat(lines[len(lines)-1], 64)
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("rstream: %w", errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond): // the server does not listen yet
		}
	}
}

// bench is a ring as large as rstream asks for.
var bench = rsocket.Config{RecvBuffer: 1 << 20}

// serve is the other Go program: its argument is an exchange.
func serve(arg string) {
	var x exchange
	l, err := bench.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		_, err = fmt.Sscan(arg, &x.size, &x.transfers, &x.iterations)
	}
	if err == nil {
		fmt.Println(l.Addr())
		var c net.Conn
		if c, err = l.Accept(); err == nil {
			err = errors.Join(x.plain(c, false), c.Close())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ulps serve:", err)
		os.Exit(1)
	}
}

func timeGo(ctx context.Context, x exchange) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	server := exec.CommandContext(ctx, self, "serve", fmt.Sprint(x.size, " ", x.transfers, " ", x.iterations))
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = server.Wait() }()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 0, err
	}
	c, err := bench.DialContext(ctx, "tcp", strings.TrimSpace(address))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	begun := time.Now()
	err = x.plain(c, true)
	return float64(time.Since(begun)) / 1e3 / float64(2*x.iterations*x.transfers), err
}
