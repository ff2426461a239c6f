package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// connFlags are the flags about a connection that ping, demo and perf share.
type connFlags struct {
	crc     bool
	markers bool
	rev     int
	p2p     bool
	ird     int
	ord     int
	timeout time.Duration
}

func defaultConnFlags() connFlags {
	return connFlags{crc: true, rev: 2, timeout: 10 * time.Second}
}

// addTo sets the defaults, adds the flags to cmd, and has them checked before
// cmd runs.
func (c *connFlags) addTo(cmd *cobra.Command) {
	c.register(cmd.Flags())
	cmd.PreRunE = func(*cobra.Command, []string) error { return c.check() }
}

// register sets the defaults and adds the flags to fs.
func (c *connFlags) register(fs *pflag.FlagSet) {
	*c = defaultConnFlags()
	fs.Var((*onOff)(&c.crc), "crc", "CRC32C over each FPDU: `on|off`; off needs both sides to agree")
	fs.BoolVar(&c.markers, "markers", false, "ask the peer for MPA markers")
	fs.Var(&intRange{&c.rev, 1, 2}, "mpa-rev", "`revision` of MPA startup: 1 (RFC 5044) or 2 (RFC 6581)")
	fs.BoolVar(&c.p2p, "p2p", false, "peer-to-peer mode: either side may send first (RFC 6581)")
	fs.Var(&intRange{&c.ird, 0, math.MaxInt32}, "ird", "inbound RDMA Reads at once to allow; 0 leaves it to the command")
	fs.Var(&intRange{&c.ord, 0, math.MaxInt32}, "ord", "outbound RDMA Reads at once to ask for; 0 leaves it to the command")
	fs.Var(&durationRange{&c.timeout, time.Millisecond, time.Hour}, "timeout", "`time` that connecting may take")
}

// check reports flags that do not go together, or that ask for more than the
// RNIC has.
func (c *connFlags) check() error {
	if c.p2p && c.rev == 1 {
		// Peer-to-peer mode came with the enhanced startup (RFC 6581 9.2).
		return usagef("--p2p needs --mpa-rev 2")
	}
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return fmt.Errorf("opening the RNIC: %w", err)
	}
	defer nic.Close()
	has, err := nic.Query()
	if err != nil {
		return fmt.Errorf("querying the RNIC: %w", err)
	}
	if c.ird > has.MaxIRD {
		return usagef("--ird %d: want a number from 0 to %d, the RNIC's limit", c.ird, has.MaxIRD)
	}
	if c.ord > has.MaxORD {
		return usagef("--ord %d: want a number from 0 to %d, the RNIC's limit", c.ord, has.MaxORD)
	}
	return nil
}

// args are flags that make another rnic process use the same settings.
func (c *connFlags) args() []string {
	return []string{
		"--crc=" + (*onOff)(&c.crc).String(),
		fmt.Sprintf("--markers=%t", c.markers),
		fmt.Sprintf("--mpa-rev=%d", c.rev),
		fmt.Sprintf("--p2p=%t", c.p2p),
		fmt.Sprintf("--ird=%d", c.ird),
		fmt.Sprintf("--ord=%d", c.ord),
		fmt.Sprintf("--timeout=%s", c.timeout),
	}
}

// config is what package cm wants to know. IRD and ORD are those of the QP.
func (c *connFlags) config() cm.Config {
	return cm.Config{
		NoCRC:   !c.crc,
		Markers: c.markers,
		Rev:     uint8(c.rev),
		P2P:     c.p2p,
		Timeout: c.timeout,
	}
}

// listenConfig is config for a listener, which logs each connection that never
// became a request, a line each.
func (c *connFlags) listenConfig(log io.Writer) cm.Config {
	cfg := c.config()
	cfg.OnStartupError = func(remote net.Addr, err error) {
		if remote == nil {
			err = fmt.Errorf("accepting a connection: %w", err)
		}
		fmt.Fprintf(log, "rnic: %s\n", oneLine(err)) // cm's err names the peer
	}
	return cfg
}

// onOff is a flag with the values on and off.
type onOff bool

func (o *onOff) String() string {
	if *o {
		return "on"
	}
	return "off"
}

func (o *onOff) Set(s string) error {
	switch s {
	case "on":
		*o = true
	case "off":
		*o = false
	default:
		return fmt.Errorf("want on or off")
	}
	return nil
}

func (o *onOff) Type() string { return "on|off" }

// intRange is a flag with an integer from min to max.
type intRange struct {
	p        *int
	min, max int
}

func (r *intRange) String() string {
	if r.p == nil {
		return "0"
	}
	return strconv.Itoa(*r.p)
}

func (r *intRange) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < r.min || n > r.max {
		return fmt.Errorf("want a number from %d to %d", r.min, r.max)
	}
	*r.p = n
	return nil
}

func (r *intRange) Type() string { return "int" }

// durationRange is a flag with a time from min to max.
type durationRange struct {
	p        *time.Duration
	min, max time.Duration
}

func (r *durationRange) String() string {
	if r.p == nil {
		return "0s"
	}
	return r.p.String()
}

func (r *durationRange) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < r.min || d > r.max {
		return fmt.Errorf("want a time from %v to %v, such as 500ms", r.min, r.max)
	}
	*r.p = d
	return nil
}

func (r *durationRange) Type() string { return "duration" }

// sizeRange is a flag with a number of octets from min to max: 4096, 64K, 1M.
type sizeRange struct {
	p        *uint64
	min, max uint64
}

func (r *sizeRange) String() string {
	if r.p == nil {
		return "0"
	}
	return formatSize(*r.p)
}

func (r *sizeRange) Set(s string) error {
	n, err := parseSize(s)
	if err != nil {
		return err
	}
	if n < r.min || n > r.max {
		return fmt.Errorf("want %s to %s octets", formatSize(r.min), formatSize(r.max))
	}
	*r.p = n
	return nil
}

func (r *sizeRange) Type() string { return "size" }

// sizeList is a flag with several sizes, each from min to max.
type sizeList struct {
	p        *[]uint64
	min, max uint64
}

func (l *sizeList) String() string {
	if l.p == nil {
		return ""
	}
	words := make([]string, len(*l.p))
	for i, n := range *l.p {
		words[i] = formatSize(n)
	}
	return strings.Join(words, ",")
}

func (l *sizeList) Set(s string) error {
	var sizes []uint64
	for word := range strings.SplitSeq(s, ",") {
		var n uint64
		if err := (&sizeRange{&n, l.min, l.max}).Set(word); err != nil {
			return err
		}
		sizes = append(sizes, n)
	}
	*l.p = sizes
	return nil
}

func (l *sizeList) Type() string { return "size,..." }

var sizeUnits = []struct {
	suffix string
	factor uint64
}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

// parseSize reads a number of octets, with K, M or G for powers of 1024.
func parseSize(s string) (uint64, error) {
	digits, factor := strings.ToUpper(s), uint64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, factor = rest, u.factor
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if errors.Is(err, strconv.ErrRange) || n > math.MaxUint64/factor {
		return 0, fmt.Errorf("want less than 2^64 octets")
	}
	if err != nil {
		return 0, fmt.Errorf("want a number of octets such as 4096, 64K or 1M")
	}
	return n * factor, nil
}

// formatSize is the shortest text that parseSize reads as n.
func formatSize(n uint64) string {
	for _, u := range sizeUnits {
		if n >= u.factor && n%u.factor == 0 {
			return strconv.FormatUint(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatUint(n, 10)
}
