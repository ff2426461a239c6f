package info

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/rdmacore"
)

// devices are the flags of `rnic info --devices`.
type devices struct {
	file string // noFile: the flag alone
	as   string
	list cli.Devices
}

// noFile stands for --devices without a file.
const noFile = "-"

func (d *devices) addTo(fs *pflag.FlagSet) {
	d.as = "iwarp"
	fs.StringVar(&d.file, "devices", "", "show the devices that rnic run would have, with those of `=FILE` if that is given")
	fs.Lookup("devices").NoOptDefVal = noFile
	d.list.AddDevice(fs)
	fs.StringVar(&d.as, "as", d.as, "what a device is that does not say: iwarp, or roce")
}

func (d *devices) asked(cmd *cobra.Command) bool {
	return d.file != "" || cmd.Flags().Changed("device") || cmd.Flags().Changed("as")
}

// shown is a device as JSON.
type shown struct {
	Name      string       `json:"name"`
	UVerbs    string       `json:"uverbs"`
	Interface string       `json:"interface"`
	GIDs      []netip.Addr `json:"gids"`
	GUID      string       `json:"guid"`
	As        string       `json:"as"`
	Rate      int          `json:"rate_gbps"`
	MTU       int          `json:"mtu"`
	PCI       string       `json:"pci,omitempty"`
	NUMA      int          `json:"numa"`
	CPUs      string       `json:"cpus"`
	there     bool         // this host has the NUMA node
	limits    string
}

func (d *devices) print(w io.Writer, asJSON bool) error {
	if d.as != "iwarp" && d.as != "roce" {
		return cli.Usagef("--as %s: want iwarp or roce", d.as)
	}
	if d.file != noFile {
		d.list.From(d.file)
	}
	if err := d.list.Read(d.as == "roce"); err != nil {
		return err
	}
	s, err := rdmacore.Settings{RoCE: d.as == "roce", Devices: d.list.List}.Resolve()
	if err != nil {
		return err
	}
	all := make([]shown, len(s.Devices))
	for i, one := range s.Devices {
		all[i] = show(i, one)
	}
	if asJSON {
		return cli.PrintJSON(w, all)
	}
	return table(w, all)
}

func show(number int, d rdmacore.Device) shown {
	one := shown{
		Name: d.Name, UVerbs: "uverbs" + strconv.Itoa(number), Interface: d.Interface, GIDs: d.Addrs(), GUID: guid(d.GUID()), As: "iwarp", Rate: d.Rate, MTU: d.MTU,
		PCI: d.PCI, NUMA: d.NUMA, limits: limits(d),
	}
	if d.RoCE {
		one.As = "roce"
	}
	one.CPUs, one.there = d.CPUs()
	return one
}

// guid writes a GUID as ibv_devices does.
func guid(g [8]byte) string {
	return fmt.Sprintf("%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7])
}

// limits are those that are less than what the RNIC has.
func limits(d rdmacore.Device) string {
	var words []string
	for _, l := range []struct {
		name string
		n    int
	}{{"queue pairs", d.QPs}, {"CQs", d.CQs}, {"regions", d.MRs}} {
		if l.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", l.n, l.name))
		}
	}
	return strings.Join(words, ", ")
}

// columns are those of the table.
const columns = 12

// table has a line for each device, and one more for each further GID.
func table(w io.Writer, all []shown) error {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(cells ...string) {
		cells = append(cells, make([]string, columns-len(cells))...) // else the columns end here
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	line("DEVICE", "FILE", "AS", "GID", "ADDRESS", "INTERFACE", "RATE", "MTU", "PCI", "NUMA", "CPUS", "LIMITS")
	for _, d := range all {
		numa := "none"
		if d.NUMA >= 0 {
			numa = strconv.Itoa(d.NUMA)
			if !d.there {
				numa += " (not of this host)"
			}
		}
		pci := cmp.Or(d.PCI, "none")
		line(d.Name, d.UVerbs, d.As, "0", d.GIDs[0].String(), d.Interface, strconv.Itoa(d.Rate)+"g", strconv.Itoa(d.MTU), pci, numa, d.CPUs, d.limits)
		for i, g := range d.GIDs[1:] {
			line("", "", "", strconv.Itoa(i+1), g.String())
		}
	}
	_ = t.Flush() // to a Builder
	for row := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(row, " \n")); err != nil {
			return err
		}
	}
	return nil
}
