package layout

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Containerlab writes the fabric as a topology of containerlab, whose switches are bridges of the host.
func (f *Fabric) Containerlab(w io.Writer, name, image string) error {
	var b strings.Builder
	b.WriteString("# Made by rnic fabric export --containerlab. Time is not simulated.\n")
	f.left(&b, "containerlab")
	if bridges := f.realSwitches(); len(bridges) > 0 {
		b.WriteString("# The switches are bridges, which have to be there before, as root:\n")
		for _, s := range bridges {
			fmt.Fprintf(&b, "#   ip link add %s type bridge && ip link set %s up\n", s, s)
		}
	}
	for i := range f.Links {
		l := &f.Links[i]
		if l.Properties == (Properties{}) {
			continue
		}
		if len(l.Ends) == 0 {
			fmt.Fprintf(&b, "# trunk %s: %s: tc qdisc add dev %s root netem %s, on the host\n", l.Name, l.Properties, trunkPort(i), netemArgs(l.Properties))
		}
	}
	fmt.Fprintf(&b, "name: %s\ntopology:\n  nodes:\n", strconv.Quote(name))
	for _, s := range f.realSwitches() {
		fmt.Fprintf(&b, "    %s: {kind: bridge}\n", s)
	}
	for h := range f.Hosts {
		host := &f.Hosts[h]
		fmt.Fprintf(&b, "    %s:\n      kind: linux\n      image: %s\n      exec:\n", host.Name, strconv.Quote(image))
		for i, n := range host.NICs {
			fmt.Fprintf(&b, "        - ip addr add %s dev %s\n", n.Addr, n.Name)
			if l := f.LinkOf(End{h, i}); f.Links[l].Properties != (Properties{}) {
				fmt.Fprintf(&b, "        - tc qdisc add dev %s root netem %s\n", n.Name, netemArgs(f.Links[l].Properties))
			}
		}
		for _, r := range f.Runs {
			if r.Host == h && len(host.NICs) > 0 {
				word := "rnic run " + strings.Join(host.RunFlags(), " ") + " -- sh -c '" + strings.ReplaceAll(r.Command, "'", `'\''`) + "' &"
				fmt.Fprintf(&b, "        - %s\n", strconv.Quote("sh -c "+strconv.Quote(word)))
			}
		}
		if len(host.NICs) == 0 {
			b.WriteString("        - ip link set lo up\n")
		}
	}
	b.WriteString("  links:\n")
	for i := range f.Links {
		l := &f.Links[i]
		var a, z string
		switch len(l.Ends) {
		case 0:
			a, z = f.Switches[l.A]+":"+trunkPort(i), f.Switches[l.B]+":"+trunkPort(i)+"b"
		case 1:
			a, z = f.port(l.Ends[0]), fmt.Sprintf("%s:port%d", f.Switches[l.A], i)
		default:
			a, z = f.port(l.Ends[0]), f.port(l.Ends[1])
		}
		fmt.Fprintf(&b, "    - endpoints: [%s, %s]\n", strconv.Quote(a), strconv.Quote(z))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func trunkPort(i int) string { return fmt.Sprintf("trunk%d", i) }

func (f *Fabric) port(e End) string {
	return f.Hosts[e.Host].Name + ":" + f.Hosts[e.Host].NICs[e.NIC].Name
}
