package layout

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// netName is what a network is called in other tools: the switch's name, or that of all that trunks join it with; with a
// number for the second network there.
func (f *Fabric) netNames() map[netip.Prefix]string {
	segments := f.segments()
	names := map[netip.Prefix]string{}
	taken := map[string]int{}
	for _, h := range f.Hosts {
		for _, n := range h.NICs {
			p := n.Addr.Masked()
			if _, ok := names[p]; ok {
				continue
			}
			name := f.Switches[segments[n.Switch]]
			if taken[name]++; taken[name] > 1 {
				name += "-" + strconv.Itoa(taken[name])
			}
			names[p] = name
		}
	}
	return names
}

// netemArgs is what tc's netem is told for p.
func netemArgs(p Properties) string {
	var parts []string
	if p.Delay > 0 {
		parts = append(parts, fmt.Sprintf("delay %dus", p.Delay.Microseconds()))
	}
	if p.Rate > 0 {
		parts = append(parts, fmt.Sprintf("rate %dbit", p.Rate))
	}
	if p.Loss > 0 {
		parts = append(parts, "loss "+strconv.FormatFloat(p.Loss*100, 'f', -1, 64)+"%")
	}
	return strings.Join(parts, " ")
}

// command is what a container of host h runs: what the file has run there, under rnic run, and then nothing until it is
// ended. Its links are slow for what it sends alone.
func (f *Fabric) command(h int) string {
	host := &f.Hosts[h]
	var b strings.Builder
	for i, n := range host.NICs {
		if l := f.LinkOf(End{h, i}); l >= 0 && f.Links[l].Properties != (Properties{}) {
			fmt.Fprintf(&b, "tc qdisc add dev $$(ip -o -4 addr | awk '/ %s\\//{print $$2}') root netem %s; ",
				strings.ReplaceAll(n.Addr.Addr().String(), ".", "\\."), netemArgs(f.Links[l].Properties))
		}
	}
	for _, r := range f.Runs {
		if r.Host != h {
			continue
		}
		word := "'" + strings.ReplaceAll(strings.ReplaceAll(r.Command, "'", `'\''`), "$", "$$") + "'"
		fmt.Fprintf(&b, "rnic run %s -- sh -c %s & ", strings.Join(host.RunFlags(), " "), word)
	}
	b.WriteString("exec sleep infinity")
	return b.String()
}

// Compose writes the fabric for podman compose and docker compose, whose services have names in small letters.
func (f *Fabric) Compose(w io.Writer, name, image string) error {
	services := map[string]string{}
	for i := range f.Hosts {
		host := f.Hosts[i].Name
		if other, ok := services[strings.ToLower(host)]; ok {
			return fmt.Errorf("the hosts %s and %s would be one service %s of a compose file: give one of them another name", other, host, strings.ToLower(host))
		}
		services[strings.ToLower(host)] = host
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by rnic fabric export --compose. Time is not simulated.\n")
	f.left(&b, "compose")
	fmt.Fprintf(&b, "name: %s\nservices:\n", strconv.Quote(strings.ToLower(name)))
	names := f.netNames()
	for h := range f.Hosts {
		host := &f.Hosts[h]
		fmt.Fprintf(&b, "  %s:\n    image: %s\n    hostname: %s\n    init: true\n", strings.ToLower(host.Name), strconv.Quote(image), host.Name)
		fmt.Fprintf(&b, "    user: \"0\"\n    cap_add: [NET_ADMIN]\n    command: [sh, -c, %s]\n", strconv.Quote(f.command(h)))
		if len(host.NICs) == 0 {
			fmt.Fprint(&b, "    network_mode: none\n")
			continue
		}
		fmt.Fprint(&b, "    networks:\n")
		for _, n := range host.NICs {
			fmt.Fprintf(&b, "      %s: {ipv4_address: %s}\n", names[n.Addr.Masked()], n.Addr.Addr())
		}
	}
	var nets strings.Builder
	seen := map[netip.Prefix]bool{}
	for _, h := range f.Hosts {
		for _, n := range h.NICs {
			if p := n.Addr.Masked(); !seen[p] {
				seen[p] = true
				fmt.Fprintf(&nets, "  %s: {internal: true, ipam: {config: [{subnet: %s}]}}\n", names[p], p)
			}
		}
	}
	if nets.Len() > 0 {
		b.WriteString("networks:\n" + nets.String())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// left says what another tool does not do.
func (f *Fabric) left(b *strings.Builder, tool string) {
	for i := range f.Links {
		if l := &f.Links[i]; len(l.Ends) == 0 && tool == "compose" {
			fmt.Fprintf(b, "# trunk %s: its switches are one network here", l.Name)
			if p := l.Properties.String(); p != "" {
				fmt.Fprintf(b, ", without %s", p)
			}
			b.WriteString("\n")
		}
	}
	if slices.ContainsFunc(f.Links, func(l Link) bool { return l.Properties != Properties{} }) {
		b.WriteString("# Delay, rate and loss concern what a host sends, and not what it receives.\n")
	}
	for i := range f.Breaks {
		e := &f.Breaks[i]
		fmt.Fprintf(b, "# line %d, at %v: %s: is not done here\n", e.Line, e.At, f.Describe(e))
	}
}
