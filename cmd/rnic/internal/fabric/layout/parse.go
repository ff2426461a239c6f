package layout

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Parse reads a file. A line is empty or one of these, and ends at a # (of run lines the shell sees to that):
//
//	name NAME
//	switch NAMES
//	host NAMES [: [NIC=]SWITCH ...]
//	mesh HOSTS [: PROPERTIES]
//	trunk SWITCH SWITCH [: PROPERTIES]
//	link LINKS : PROPERTIES
//	flags HOSTS : FLAGS of rnic run
//	run HOSTS : COMMAND
//	at TIME : break LINKS CHANGE
//	at TIME : run HOSTS : COMMAND
//
// NAMES are names and ranges such as h1..h8, HOSTS those or * for all, LINKS as FindLinks has them. PROPERTIES are delay
// TIME, rate BITS and loss SHARE; CHANGE is down, up, mend, or one of those. What a line names has to stand above it. Each
// error names the line, and what is allowed there.
func Parse(text string) (*Fabric, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("the file has %d octets: want %d at most", len(text), MaxText)
	}
	f := &Fabric{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		err := printable(line)
		if err == nil {
			err = f.line(line, n)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if len(f.Hosts) == 0 {
		return nil, errors.New("the file has no host: want a line such as host h1..h4: switch1")
	}
	f.order()
	if err := f.checkTrunks(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(f.Breaks, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	err := f.number()
	return f, err
}

// printable refuses what ends a line in the files of other tools, which an export has commands in, and what a terminal obeys.
func printable(line string) error {
	for _, r := range line {
		if r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return fmt.Errorf("the character %q is not allowed here: leave it out, or have printf make it in a command", r)
		}
	}
	return nil
}

const wantLine = "want one of name, switch, host, mesh, trunk, link, flags, run, at"

// words takes the head and the tail of a line apart: what stands before its first colon, and behind.
func words(line string) (head, tail []string, colon bool) {
	line, _, _ = strings.Cut(line, "#")
	before, after, colon := strings.Cut(line, ":")
	return strings.Fields(before), strings.Fields(after), colon
}

func (f *Fabric) line(line string, n int) error {
	head, tail, colon := words(line)
	if len(head) == 0 {
		if colon {
			return fmt.Errorf("nothing stands before the colon: %s", wantLine)
		}
		return nil
	}
	keyword := head[0]
	head = head[1:]
	switch keyword {
	case "name", "switch":
		if colon {
			return fmt.Errorf("%s takes no colon", keyword)
		}
		if keyword == "name" {
			return f.nameLine(head)
		}
		return f.switchLine(head)
	case "host":
		return f.hostLine(head, tail, n)
	case "mesh":
		return f.meshLine(head, tail, colon, n)
	case "trunk":
		return f.trunkLine(head, tail, colon, n)
	case "link":
		return f.linkLine(head, tail)
	case "flags":
		return f.flagsLine(head, tail)
	case "run":
		runs, err := f.runLine(line)
		f.Runs = append(f.Runs, runs...)
		return err
	case "at":
		return f.atLine(line, head, tail, n)
	}
	return fmt.Errorf("%q begins no line: %s", keyword, wantLine)
}

var fabricName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// CheckName says whether a fabric may be called that.
func CheckName(name string) error {
	if !fabricName.MatchString(name) {
		return fmt.Errorf("%q is no name for a fabric: want letters, digits, - and _, 32 at most", name)
	}
	return nil
}

func (f *Fabric) nameLine(head []string) error {
	switch {
	case f.Name != "":
		return fmt.Errorf("the fabric has the name %s already", f.Name)
	case len(head) != 1:
		return errors.New("name takes one word, such as name rails")
	}
	f.Name = head[0]
	return CheckName(f.Name)
}

// free says whether no host and no switch has that name.
func (f *Fabric) free(name string) error {
	if slices.Contains(f.Switches, name) {
		return fmt.Errorf("there is a switch %s already", name)
	}
	if slices.Contains(f.hostNames(), name) {
		return fmt.Errorf("there is a host %s already", name)
	}
	return nil
}

func (f *Fabric) switchLine(head []string) error {
	if len(head) == 0 {
		return errors.New("switch takes names, such as switch rail0 rail1")
	}
	return f.named(head, func(name string) { f.Switches = append(f.Switches, name) })
}

// named calls add for each name that words stand for, which nothing has yet.
func (f *Fabric) named(words []string, add func(name string)) error {
	for _, w := range words {
		names, err := expand(w)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := f.free(name); err != nil {
				return err
			}
			add(name)
			if err := f.bound(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Fabric) bound() error {
	if len(f.Hosts) > MaxHosts || len(f.Switches) > MaxLinks || len(f.Links) > MaxLinks {
		return fmt.Errorf("a fabric has %d hosts and %d links at most", MaxHosts, MaxLinks)
	}
	return nil
}

func (f *Fabric) hostLine(head, tail []string, n int) error {
	if len(head) == 0 {
		return errors.New("host takes names, such as host h1..h8: rail0 rail1")
	}
	type cable struct {
		nic string
		to  int
	}
	var cables []cable
	for i, w := range tail {
		c := cable{nic: fmt.Sprintf("nic%d", i)}
		to := w
		if name, sw, named := strings.Cut(w, "="); named {
			c.nic, to = name, sw
		}
		if !nicName.MatchString(c.nic) || c.nic == "lo" {
			return fmt.Errorf("%q is no name for a NIC: want a letter, then letters, digits and _, 15 at most", c.nic)
		}
		if slices.ContainsFunc(cables, func(other cable) bool { return other.nic == c.nic }) {
			return fmt.Errorf("a host has one NIC %s", c.nic)
		}
		if c.to = slices.Index(f.Switches, to); c.to < 0 || strings.Contains(to, "-") {
			return fmt.Errorf("there is no switch %q; there are %s: want a line such as switch %s above this one", to, listed(f.realSwitches()), "s1")
		}
		cables = append(cables, c)
	}
	if len(cables) > MaxNICs {
		return fmt.Errorf("a host has %d NICs at most", MaxNICs)
	}
	return f.named(head, func(name string) {
		f.Hosts = append(f.Hosts, Host{Name: name})
		for _, c := range cables {
			f.plug(len(f.Hosts)-1, c.nic, c.to)
			f.Links = append(f.Links, Link{Name: name + "." + c.nic, Ends: []End{f.last(len(f.Hosts) - 1)}, A: c.to, B: -1, line: n})
		}
	})
}

func (f *Fabric) realSwitches() (names []string) {
	for _, s := range f.Switches {
		if !strings.Contains(s, "-") {
			names = append(names, s)
		}
	}
	return names
}

// plug gives a host a NIC.
func (f *Fabric) plug(host int, nic string, to int) {
	f.Hosts[host].NICs = append(f.Hosts[host].NICs, NIC{Name: nic, Switch: to})
}

// last is the last NIC of a host.
func (f *Fabric) last(host int) End { return End{host, len(f.Hosts[host].NICs) - 1} }

// freeNIC is the first of nic0, nic1, ... that a host has not.
func (f *Fabric) freeNIC(host int) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("nic%d", i)
		if !slices.ContainsFunc(f.Hosts[host].NICs, func(n NIC) bool { return n.Name == name }) {
			return name
		}
	}
}

func (f *Fabric) meshLine(head, tail []string, colon bool, n int) error {
	hosts, err := f.hosts(head)
	if err != nil {
		return err
	}
	if len(hosts) < 2 {
		return errors.New("mesh takes two hosts or more, such as mesh h1..h4")
	}
	var p Properties
	if colon {
		if err := properties(tail, &p); err != nil {
			return err
		}
	}
	for i, a := range hosts {
		for _, b := range hosts[i+1:] {
			name := f.Hosts[a].Name + "-" + f.Hosts[b].Name
			if slices.ContainsFunc(f.Links, func(l Link) bool { return l.Name == name || l.reversed() == name }) {
				return fmt.Errorf("%s are joined already", name)
			}
			f.Switches = append(f.Switches, name)
			l := Link{Name: name, A: len(f.Switches) - 1, B: -1, Properties: p, line: n}
			for _, h := range []int{a, b} {
				if len(f.Hosts[h].NICs) == MaxNICs {
					return fmt.Errorf("a host has %d NICs at most, and a mesh takes one for each other host", MaxNICs)
				}
				f.plug(h, f.freeNIC(h), l.A)
				l.Ends = append(l.Ends, f.last(h))
			}
			f.Links = append(f.Links, l)
			if err := f.bound(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Fabric) trunkLine(head, tail []string, colon bool, n int) error {
	if len(head) != 2 {
		return errors.New("trunk takes two switches, such as trunk leaf1 spine: delay 1ms")
	}
	l := Link{Name: head[0] + "-" + head[1], line: n}
	for i, end := range []*int{&l.A, &l.B} {
		if *end = slices.Index(f.Switches, head[i]); *end < 0 || strings.Contains(head[i], "-") {
			return fmt.Errorf("there is no switch %q; there are %s", head[i], listed(f.realSwitches()))
		}
	}
	if colon {
		if err := properties(tail, &l.Properties); err != nil {
			return err
		}
	}
	f.Links = append(f.Links, l)
	return f.bound()
}

func (f *Fabric) linkLine(head, tail []string) error {
	if len(head) == 0 {
		return errors.New("link takes links, such as link h1.nic0: delay 1ms")
	}
	links, err := f.FindLinks(head)
	if err != nil {
		return err
	}
	for _, i := range links {
		if err := properties(tail, &f.Links[i].Properties); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fabric) flagsLine(head, tail []string) error {
	if len(head) == 0 || len(tail) == 0 {
		return errors.New("flags takes hosts, a colon and flags of rnic run, such as flags *: --as roce")
	}
	if i := slices.Index(tail, "--"); i >= 0 || !strings.HasPrefix(tail[0], "--") {
		return fmt.Errorf("%q is no flag of rnic run: want some such as --as roce", tail[max(i, 0)])
	}
	hosts, err := f.hosts(head)
	for _, h := range hosts {
		f.Hosts[h].Flags = append(f.Hosts[h].Flags, tail...)
	}
	return err
}

// runLine is run HOSTS : COMMAND, of which the shell has all behind the first colon.
func (f *Fabric) runLine(line string) ([]Run, error) {
	before, command, colon := strings.Cut(line, ":")
	command = strings.TrimSpace(command)
	head := strings.Fields(before)[1:]
	if !colon || command == "" || len(head) == 0 {
		return nil, errors.New("run takes hosts, a colon and a command, such as run h1: rping -s")
	}
	hosts, err := f.hosts(head)
	runs := make([]Run, 0, len(hosts))
	for _, h := range hosts {
		runs = append(runs, Run{h, command})
	}
	return runs, err
}

const maxTime = 24 * time.Hour

func (f *Fabric) atLine(line string, head, tail []string, n int) error {
	e := Event{Line: n}
	var err error
	if len(head) == 1 {
		e.At, err = time.ParseDuration(head[0])
	}
	if len(head) != 1 || err != nil || e.At < 0 || e.At > maxTime {
		return errors.New("at takes a time from 0s to 24h after the beginning, such as at 5s: break h1.nic0 down")
	}
	_, rest, _ := strings.Cut(line, ":")
	switch {
	case len(tail) > 0 && tail[0] == "run":
		e.Runs, err = f.runLine(strings.TrimSpace(rest))
	case len(tail) > 2 && tail[0] == "break":
		e.Links, e.Change, err = f.ParseBreak(tail[1:])
	default:
		err = errors.New("want break LINKS and down, up, delay TIME, rate BITS, loss SHARE or mend; or run HOSTS: COMMAND")
	}
	f.Breaks = append(f.Breaks, e)
	return err
}

// ParseBreak reads links and what becomes of them, such as h1.nic0 down.
func (f *Fabric) ParseBreak(words []string) (links []int, c Change, err error) {
	n := len(words)
	if n >= 2 {
		switch verb := Verb(words[n-1]); verb {
		case Down, Up, Mend:
			c.Verb = verb
			links, err = f.FindLinks(words[:n-1])
			return links, c, err
		case Delay, Rate, Loss:
		}
	}
	if n >= 3 {
		switch verb := Verb(words[n-2]); verb {
		case Delay, Rate, Loss:
			c.Verb = verb
			if err = property(words[n-2], words[n-1], &c.Properties); err == nil {
				links, err = f.FindLinks(words[:n-2])
			}
			return links, c, err
		case Down, Up, Mend:
		}
	}
	return nil, c, errors.New("want links and then down, up, delay TIME, rate BITS, loss SHARE or mend, such as h1.nic0 down")
}

// order puts trunks behind the cables of NICs. No line refers to links by number before.
func (f *Fabric) order() {
	at := make([]int, 0, len(f.Links)) // at[new] is the old number
	for _, trunk := range []bool{false, true} {
		for i := range f.Links {
			if (len(f.Links[i].Ends) == 0) == trunk {
				at = append(at, i)
			}
		}
	}
	links, to := make([]Link, len(at)), make([]int, len(at))
	for now, was := range at {
		links[now], to[was] = f.Links[was], now
	}
	f.Links = links
	for i := range f.Breaks {
		for j, was := range f.Breaks[i].Links {
			f.Breaks[i].Links[j] = to[was]
		}
	}
}

// checkTrunks refuses a circle of switches: a packet for all would go round it for ever.
func (f *Fabric) checkTrunks() error {
	s := f.segments()
	for i := range s {
		s[i] = i
	}
	for i := range f.Links {
		l := &f.Links[i]
		if len(l.Ends) > 0 {
			continue
		}
		if root(s, l.A) == root(s, l.B) {
			return fmt.Errorf("line %d: trunk %s closes a circle of switches, in which packets would go round for ever: leave one trunk of it out", l.line, l.Name)
		}
		s[root(s, l.B)] = root(s, l.A)
	}
	return nil
}

// segments says of each switch which one stands for all that trunks join it with.
func (f *Fabric) segments() []int {
	s := make([]int, len(f.Switches))
	for i := range s {
		s[i] = i
	}
	for i := range f.Links {
		if l := &f.Links[i]; len(l.Ends) == 0 {
			s[root(s, l.B)] = root(s, l.A)
		}
	}
	for i := range s {
		s[i] = root(s, i)
	}
	return s
}

func root(s []int, i int) int {
	for s[i] != i {
		i = s[i]
	}
	return i
}
