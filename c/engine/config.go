//go:build linux && cgo && (amd64 || arm64)

package main

// #include "own.h"
import "C"

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/softrnic/softrnic/fault"
	"github.com/softrnic/softrnic/internal/uverbs"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/tap"
	"github.com/softrnic/softrnic/trace"
	"github.com/softrnic/softrnic/verbs"
)

// fromEnvironment is what `rnic run` says in the environment.
func fromEnvironment() (uverbs.Config, error) {
	const how = "start the program with `rnic run`"
	addr, err := netip.ParseAddr(os.Getenv("SOFTRNIC_ADDR"))
	if err != nil {
		return uverbs.Config{}, fmt.Errorf("SOFTRNIC_ADDR: %w; %s", err, how)
	}
	config := uverbs.Config{
		Addr:    addr,
		Report:  func(s string) { fmt.Fprintln(os.Stderr, "softrnic:", s) },
		Own:     func(fd int) { C.srn_own(C.int(fd)) },
		Channel: func(fd int) { C.srn_channel(C.int(fd)) },
	}
	config.RoCE, err = choice("SOFTRNIC_AS", "iwarp", "roce")
	if err != nil {
		return config, err
	}
	off, err := choice("SOFTRNIC_CRC", "on", "off")
	if err != nil {
		return config, err
	}
	config.CRC = !off
	if name := os.Getenv("SOFTRNIC_STRACE"); name != "" {
		config.Trace, err = tracer(name)
		if err != nil {
			return config, fmt.Errorf("SOFTRNIC_STRACE: %w", err)
		}
	}
	config.RNIC, err = lab(config.Report)
	return config, err
}

// lab is how to open an RNIC with the fault plan, the capture and the trace that the environment names.
func lab(report func(string)) (c verbs.Config, err error) {
	if name := os.Getenv("SOFTRNIC_FAULTS"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return c, fmt.Errorf("SOFTRNIC_FAULTS: %w", err)
		}
		plan, err := fault.Parse(string(text))
		if err != nil {
			return c, fmt.Errorf("SOFTRNIC_FAULTS: %s, %w", name, err)
		}
		in, err := fault.New(plan, func(s fault.Strike) { report("fault: " + s.String()) })
		if err != nil {
			return c, err
		}
		c.Faults = in
	}
	if name := os.Getenv("SOFTRNIC_PCAP"); name != "" {
		t, err := tap.Append(name, tap.Config{Payload: os.Getenv("SOFTRNIC_PCAP_PAYLOAD") == "on"})
		if err != nil {
			return c, fmt.Errorf("SOFTRNIC_PCAP: %w", err)
		}
		c.Tap = t
	}
	if name := os.Getenv("SOFTRNIC_TRACE"); name != "" {
		w, err := trace.Append(name)
		if err != nil {
			return c, fmt.Errorf("SOFTRNIC_TRACE: %w", err)
		}
		c.Trace = w.Add
	}
	return c, nil
}

// offer offers the counters of the device if the environment says so, as long as the process lives. The program just ends:
// `rnic run` removes the socket behind it, or stats.Tidy of another process does.
func offer(d *uverbs.Device) error {
	if on, err := choice("SOFTRNIC_STATS", "off", "on"); !on {
		return err
	}
	s, err := stats.Serve("", func() []*verbs.RNIC { return []*verbs.RNIC{d.RNIC()} })
	if err == nil {
		d.OwnSocket(s.Listener())
	}
	return err
}

// choice is whether a variable has the other of two values; the first is what it is without.
func choice(name, first, other string) (bool, error) {
	switch v := os.Getenv(name); v {
	case "", first:
		return false, nil
	case other:
		return true, nil
	default:
		return false, fmt.Errorf("%s is %q; want %s or %s", name, v, first, other)
	}
}

// tracer appends lines to a file, each in one write, since several processes may share it: the process' id, the time, what
// happened. It opens the file once and keeps it: a program may change its root and its rights.
func tracer(name string) (func(string), error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	pid := strconv.Itoa(os.Getpid())
	var mu sync.Mutex
	var line []byte
	return func(s string) {
		mu.Lock()
		defer mu.Unlock()
		line = append(append(line[:0], pid...), ' ')
		line = time.Now().AppendFormat(line, "15:04:05.000000")
		line = append(append(append(line, ' '), s...), '\n')
		_, _ = f.Write(line) // a full disk is no reason to disturb the program
	}, nil
}
