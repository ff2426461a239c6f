package cli

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// ConnFlags are the flags about a connection that ping, demo and perf share.
type ConnFlags struct {
	CRC     bool
	markers bool
	rev     int
	model   cm.Model
	IRD     int
	ORD     int
	Timeout time.Duration

	RNIC verbs.Config // how to open the RNIC: see Lab
}

// DefaultConnFlags are the flags when none is given.
func DefaultConnFlags() ConnFlags {
	return ConnFlags{CRC: true, rev: 2, Timeout: 10 * time.Second}
}

// AddTo sets the defaults, adds the flags to cmd, and has them checked before
// cmd runs.
func (c *ConnFlags) AddTo(cmd *cobra.Command) {
	c.register(cmd.Flags())
	cmd.PreRunE = func(*cobra.Command, []string) error { return c.check() }
}

// register sets the defaults and adds the flags to fs.
func (c *ConnFlags) register(fs *pflag.FlagSet) {
	*c = DefaultConnFlags()
	fs.Var(OnOff(&c.CRC), "crc", "CRC32C over each FPDU: `on|off`; off needs both sides to agree")
	fs.BoolVar(&c.markers, "markers", false, "ask the peer for MPA markers")
	fs.Var(IntRange(&c.rev, 1, 2), "mpa-rev", "`revision` of MPA startup: 1 (RFC 5044) or 2 (RFC 6581)")
	fs.Var(connectionModel(&c.model), "p2p", "peer-to-peer mode, in which either side may send first (RFC 6581): `auto|on|off`; auto proposes it with revision 2")
	fs.Lookup("p2p").NoOptDefVal = "on"
	fs.Var(IntRange(&c.IRD, 0, math.MaxInt32), "ird", "inbound RDMA Reads at once to allow; 0 leaves it to the command")
	fs.Var(IntRange(&c.ORD, 0, math.MaxInt32), "ord", "outbound RDMA Reads at once to ask for; 0 leaves it to the command")
	fs.Var(DurationRange(&c.Timeout, time.Millisecond, time.Hour), "timeout", "`time` that connecting may take")
}

// check reports flags that do not go together, or that ask for more than the
// RNIC has.
func (c *ConnFlags) check() error {
	if c.model == cm.PeerToPeer && c.rev == 1 {
		// Peer-to-peer mode came with the enhanced startup (RFC 6581 9.2).
		return Usagef("--p2p needs --mpa-rev 2")
	}
	nic, err := QueryRNIC(verbs.Config{})
	switch {
	case err != nil:
		return err
	case c.IRD > nic.Limits.IRD:
		return Usagef("--ird %d: want a number from 0 to %d, the RNIC's limit", c.IRD, nic.Limits.IRD)
	case c.ORD > nic.Limits.ORD:
		return Usagef("--ord %d: want a number from 0 to %d, the RNIC's limit", c.ORD, nic.Limits.ORD)
	}
	return nil
}

// QueryRNIC opens an RNIC for as long as it takes to query it.
func QueryRNIC(c verbs.Config) (a verbs.RNICAttributes, err error) {
	nic, err := verbs.Open(c)
	if err != nil {
		return a, fmt.Errorf("opening the RNIC: %w", err)
	}
	defer nic.Close()
	if a, err = nic.Query(); err != nil {
		return a, fmt.Errorf("querying the RNIC: %w", err)
	}
	return a, nil
}

// Args are flags that make another rnic process use the same settings.
func (c *ConnFlags) Args() []string {
	return []string{
		"--crc=" + OnOff(&c.CRC).String(),
		fmt.Sprintf("--markers=%t", c.markers),
		fmt.Sprintf("--mpa-rev=%d", c.rev),
		"--p2p=" + connectionModel(&c.model).String(),
		fmt.Sprintf("--ird=%d", c.IRD),
		fmt.Sprintf("--ord=%d", c.ORD),
		fmt.Sprintf("--timeout=%s", c.Timeout),
	}
}

// Config is the configuration of package cm. IRD and ORD are those of the QP.
func (c *ConnFlags) Config() cm.Config {
	return cm.Config{
		NoCRC:   !c.CRC,
		Markers: c.markers,
		Rev:     uint8(c.rev),
		Model:   c.model,
		Timeout: c.Timeout,
	}
}

// ListenConfig is the configuration of a listener, which logs each connection that
// never became a request.
func (c *ConnFlags) ListenConfig(log *slog.Logger) cm.ListenConfig {
	cfg := cm.ListenConfig{Rev: c.Config().Rev, Timeout: c.Config().Timeout}
	cfg.OnStartupError = func(remote net.Addr, err error) {
		if remote == nil {
			err = fmt.Errorf("accepting a connection: %w", err)
		}
		log.Warn(err.Error()) // cm's err names the peer
	}
	return cfg
}
