//go:build linux && cgo && (amd64 || arm64)

package main

// #include "own.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/safecopy"
	"github.com/softrnic/softrnic/internal/safeopen"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/lab/trace"
	"github.com/softrnic/softrnic/rdmacore"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// settings are those of the process, read once, with its devices: those that `rnic run` has told of, whose files it has written, or
// the one of a container.
var settings = sync.OnceValues(func() (s rdmacore.Settings, err error) {
	s, err = rdmacore.FromEnvironment(beginning.get)
	if err != nil {
		return s, err
	}
	written := beginning.get("SYSFS_PATH") != ""
	switch {
	case len(s.Devices) > 0 && written:
		return s, nil
	case len(s.Devices) > 0:
		return s, errors.New("SOFTRNIC_DEVICES: the files of devices are made by `rnic run`; start the program with that")
	}
	s, err = s.Resolve()
	if err != nil {
		return s, fmt.Errorf("SOFTRNIC_ADDR: %w", err)
	}
	return s, nil
})

// beginning is the environment that the program began with, as far as it concerns the engine. Programs write their titles
// over the one that Go's runtime reads.
var beginning variables

// variables are values by name.
type variables map[string]string

func (v variables) get(name string) string { return v[name] }

// newVariables parses NAME=value, each with an octet of 0 behind it.
func newVariables(text string) variables {
	v := variables{}
	for line := range strings.SplitSeq(text, "\x00") {
		if name, value, ok := strings.Cut(line, "="); ok {
			v[name] = value
		}
	}
	return v
}

// deviceConfigs are the devices that the settings ask for. What is written to files is shared: they are the program's.
func deviceConfigs(s rdmacore.Settings) (list []uverbs.Config, err error) {
	common, err := commonConfig(s)
	if err != nil {
		return nil, err
	}
	plan, err := plan(s)
	if err != nil {
		return nil, err
	}
	for _, d := range s.Devices {
		c := common
		c.Name, c.Addr, c.GIDs, c.Interface, c.RoCE, c.Rate, c.MTU = d.Name, d.Addr, d.GIDs, d.Interface, d.RoCE, d.Rate, d.MTU
		c.RNIC.Name = d.Name
		if c.Trace != nil && len(s.Devices) > 1 {
			c.Trace = named(d.Name, common.Trace)
		}
		c.RNIC.Limits.QPs, c.RNIC.Limits.CQs, c.RNIC.Limits.Regions = d.QPs, d.CQs, d.MRs
		if plan != nil || s.Stats { // without one another may come: control.go
			if plan == nil {
				plan = &fault.Plan{}
			}
			in, err := fault.ForC(plan.For(d.Name), func(s fault.Strike) { c.Report("fault: " + s.String()) })
			if err != nil {
				return nil, err
			}
			c.RNIC.Faults, c.Faults = in, in
		}
		list = append(list, c)
	}
	return list, nil
}

// named has the lines of a device's commands say which device it is. Those of rdma_cm are of all.
func named(name string, trace func(string)) func(string) {
	return func(line string) {
		if rest, ok := strings.CutPrefix(line, "uverbs "); ok {
			line = "uverbs " + name + " " + rest
		}
		trace(line)
	}
}

// commonConfig is what all devices have.
func commonConfig(s rdmacore.Settings) (uverbs.Config, error) {
	config := uverbs.Config{
		CRC:     s.CRC,
		Report:  func(s string) { fmt.Fprintln(os.Stderr, "softrnic:", s) },
		Own:     func(fd int) { C.srn_own(C.int(fd)) },
		Channel: func(fd int) { C.srn_channel(C.int(fd)) },
	}
	safecopy.Heed((*atomic.Int32)(C.srn_foreign_word()))
	var err error
	if s.Strace != "" {
		config.Trace, err = tracer(s.Strace)
		if err != nil {
			return config, fmt.Errorf("SOFTRNIC_STRACE: %w", err)
		}
	}
	config.RNIC, err = lab(s)
	return config, err
}

// plan is the fault plan of the settings; nil: none.
func plan(s rdmacore.Settings) (*fault.Plan, error) {
	if s.Faults == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.Faults)
	if err != nil {
		return nil, fmt.Errorf("SOFTRNIC_FAULTS: %w", err)
	}
	p, err := parsePlan(s, string(text))
	if err != nil {
		return nil, fmt.Errorf("SOFTRNIC_FAULTS: %s, %w", s.Faults, err)
	}
	return p, nil
}

// parsePlan is a plan whose devices are this program's.
func parsePlan(s rdmacore.Settings, text string) (*fault.Plan, error) {
	p, err := fault.Parse(text)
	if err != nil {
		return nil, err
	}
	var have []string
	for _, d := range s.Devices {
		have = append(have, d.Name)
	}
	for _, name := range p.Devices() {
		if !slices.Contains(have, name) {
			return nil, fmt.Errorf("there is no device %s: this program has %s", name, strings.Join(have, ", "))
		}
	}
	return p, nil
}

// lab is how to open an RNIC with the capture and the trace of the settings.
func lab(s rdmacore.Settings) (c verbs.Config, err error) {
	if s.Pcap != "" {
		t, err := tap.Append(s.Pcap, tap.Config{Payload: s.PcapPayload})
		if err != nil {
			return c, fmt.Errorf("SOFTRNIC_PCAP: %w", err)
		}
		c.Tap = t
	}
	if s.Trace != "" {
		w, err := trace.Append(s.Trace)
		if err != nil {
			return c, fmt.Errorf("SOFTRNIC_TRACE: %w", err)
		}
		c.Trace = w.Add
	}
	return c, nil
}

// offer offers the counters of the devices, and control over them, as long as the process lives. The program just ends:
// `rnic run` removes the socket behind it, or stats.Tidy of another process does.
func offer(all []*uverbs.Device) error {
	s, err := stats.OfferControl("", func() (nics []*verbs.RNIC) {
		for _, d := range all {
			nics = append(nics, d.RNIC())
		}
		return nics
	}, control(all))
	if err == nil {
		all[0].OwnSocket(s.Listener())
	}
	return err
}

// tracer appends lines to a file, each in one write, since several processes may share it: the process' id, the time, what
// happened. It opens the file once and keeps it: a program may change its root and its rights.
func tracer(name string) (func(string), error) {
	f, err := safeopen.Private(name, os.O_APPEND)
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
