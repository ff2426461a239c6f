package layout

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parsed(t *testing.T, text string) *Fabric {
	t.Helper()
	f, err := Parse(text)
	require.NoError(t, err)
	return f
}

const rails = `
name rails           # of the fabric
switch rail0 rail1 spine
trunk rail0 spine: delay 3ms
host h1..h3: rail0 mlx5_1=rail1
host lone
link *.nic0: delay 1ms
link h2.nic0 h3: rate 2.5g loss 0.1%
flags h1 h2: --as roce
run h1..h2: echo "a: b" # c
at 2s: break h1.nic0 down
at 1s: break rail0-spine spine-rail0 rate 100m
at 1500ms: run lone: true
`

func TestParse(t *testing.T) {
	f := parsed(t, rails)
	assert.Equal(t, "rails", f.Name)
	assert.Equal(t, []string{"h1", "h2", "h3", "lone"}, f.hostNames())
	assert.Equal(t, []string{
		"h1.nic0", "h1.mlx5_1", "h2.nic0", "h2.mlx5_1", "h3.nic0", "h3.mlx5_1", "rail0-spine",
	}, f.linkNames(), "trunks come last, though the line was first")
	is := func(link int) string { return f.Links[link].Properties.String() }
	assert.Equal(t, "delay 1ms", is(0))
	assert.Empty(t, is(1))
	assert.Equal(t, "delay 1ms rate 2.5g loss 0.1%", is(2), "a second line adds")
	assert.Equal(t, "rate 2.5g loss 0.1%", is(5))
	assert.Equal(t, "delay 3ms", is(6))
	assert.Equal(t, []string{"--as", "roce"}, f.Hosts[1].Flags)
	assert.Equal(t, []Run{{0, `echo "a: b" # c`}, {1, `echo "a: b" # c`}}, f.Runs, "the shell sees to the comment")

	require.Len(t, f.Breaks, 3, "in the order of time")
	assert.Equal(t, time.Second, f.Breaks[0].At)
	assert.Equal(t, []int{6}, f.Breaks[0].Links, "both of its names are one link")
	assert.Equal(t, "rate 100m", f.Breaks[0].Change.String())
	assert.Equal(t, []Run{{3, "true"}}, f.Breaks[1].Runs)
	assert.Equal(t, Down, f.Breaks[2].Verb)
}

// A link that a break names is the same after trunks have moved behind the NICs' cables.
func TestBreakOfTrunkAboveHosts(t *testing.T) {
	f := parsed(t, "switch a b\ntrunk a b\nhost h: a\nat 1s: break a-b down\nat 2s: break h down")
	assert.Equal(t, "a-b", f.Links[f.Breaks[0].Links[0]].Name)
	assert.Equal(t, "h.nic0", f.Links[f.Breaks[1].Links[0]].Name)
}

func TestAddresses(t *testing.T) {
	f := parsed(t, rails)
	at := func(h, n int) string { return f.Hosts[h].NICs[n].Addr.String() }
	assert.Equal(t, "10.64.1.1/16", at(0, 0))
	assert.Equal(t, "10.65.1.1/16", at(0, 1))
	assert.Equal(t, "10.65.1.3/16", at(2, 1))
	require.NoError(t, f.OnLoopback())
	assert.Equal(t, "127.65.1.3/16", at(2, 1))

	f = parsed(t, "switch a b c\nhost h1..h2: a b c\ntrunk a b")
	seen := map[string]bool{}
	for n := range 3 {
		net := f.Hosts[0].NICs[n].Addr.Masked()
		assert.Equal(t, net, f.Hosts[1].NICs[n].Addr.Masked())
		assert.False(t, seen[net.String()], "two NICs of a host are in two networks, joined or not")
		seen[net.String()] = true
	}

	f = parsed(t, "switch s\nhost h1..h1024: s")
	every := map[string]bool{}
	for h := range f.Hosts {
		a := f.Hosts[h].NICs[0].Addr.Addr().String()
		assert.False(t, every[a] || strings.HasSuffix(a, ".0") || strings.HasSuffix(a, ".255"), a)
		every[a] = true
	}
	var many strings.Builder
	many.WriteString("switch s1..s65\nhost h:")
	for i := range 64 {
		many.WriteString(" s" + string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10)))
	}
	_, err := Parse(strings.ReplaceAll(many.String(), " s0", " s"))
	assert.NoError(t, err, "64 networks")
	_, err = Parse(strings.ReplaceAll(many.String(), " s0", " s") + "\nhost i: s65")
	assert.ErrorContains(t, err, "64 networks of switches at most")
}

func TestMesh(t *testing.T) {
	f := parsed(t, "host h1..h3\nmesh *: delay 4ms\nlink h3-h1: loss 5%")
	assert.Equal(t, []string{"h1-h2", "h1-h3", "h2-h3"}, f.linkNames())
	assert.Equal(t, "delay 4ms loss 5%", f.Links[1].Properties.String())
	near, far := f.Hosts[0].NICs[1].Addr, f.Hosts[2].NICs[0].Addr
	assert.Equal(t, near.Masked(), far.Masked())
	assert.NotEqual(t, near, far)
	links, err := f.FindLinks([]string{"h2"})
	require.NoError(t, err)
	assert.Equal(t, []int{0, 2}, links)

	// Each host calls the others by the address at its own cable to them.
	assert.Contains(t, f.Etc(0), far.Addr().String()+" h3 h3-nic0\n")
	assert.Contains(t, f.Etc(1), f.Hosts[2].NICs[1].Addr.Addr().String()+" h3 h3-nic1\n")
	assert.Contains(t, f.Etc(1), far.Addr().String()+" h3-nic0\n")
}

// TestRefused: each error names the line, what is wrong, and what is allowed there.
func TestRefused(t *testing.T) {
	const base = "switch s t\nhost h1 h2: s t\n"
	for _, row := range [][2]string{
		{"", "no host: want a line such as"},
		{"hosts h1", `line 1: "hosts" begins no line: want one of name, switch, host, mesh, trunk, link, flags, run, at`},
		{": x", "line 1: nothing stands before the colon"},
		{"name", "name takes one word"},
		{"name a\nname b", "line 2: the fabric has the name a already"},
		{"name a/b", "want letters, digits, - and _, 32 at most"},
		{"switch", "switch takes names, such as"},
		{"switch s-1", `"s-1" is no name: want a letter`},
		{"switch s\nhost s: s", "line 2: there is a switch s already"},
		{"host h h", "there is a host h already"},
		{"host h: s", `there is no switch "s"; there are none yet`},
		{"switch s\nhost h: s t", `there is no switch "t"; there are s`},
		{"switch s\nhost h: a=s a=s", "a host has one NIC a"},
		{"switch s\nhost h: a.b=s", `"a.b" is no name for a NIC`},
		{"switch s\nhost h: lo=s", `"lo" is no name for a NIC`},
		{"host h1..g2", "want the same name with two numbers"},
		{"host h5..h2", "want the smaller number first"},
		{"host h1..h9999", "1024 names at most"},
		{base + "mesh h1", "mesh takes two hosts or more"},
		{base + "mesh h1 h2\nmesh h2 h1", "line 4: h2-h1 are joined already"},
		{base + "mesh h1 h3", `there is no host "h3"; there are h1, h2`},
		{base + "trunk s", "trunk takes two switches"},
		{base + "trunk s u", `there is no switch "u"; there are s, t`},
		{base + "trunk s s", "line 3: trunk s-s closes a circle"},
		{base + "switch u\ntrunk s t\ntrunk t u\ntrunk u s: delay 1ms", "line 6: trunk u-s closes a circle of switches"},
		{base + "link h1.nic0", "no property is here: want delay such as 2ms"},
		{base + "link h1.nic2: delay 1ms", `there is no link "h1.nic2"; there are h1.nic0, h1.nic1`},
		{base + "link h3: delay 1ms", `there is no host "h3"`},
		{base + "link h1: delay", `"delay" is not allowed here, or has no value`},
		{base + "link h1: jitter 1ms", `"jitter" is no property: want delay`},
		{base + "link h1: delay 1ms delay 2ms", "delay is there twice"},
		{base + "link h1: delay 11s", `delay takes a time from 0s to 10s, such as 500us or 2ms, not "11s"`},
		{base + "link h1: delay -1ms", "delay takes a time"},
		{base + "link h1: rate 10", `rate takes bits a second from 8k to 1000g, such as 100m or 10g, not "10"`},
		{base + "link h1: rate NaNg", "rate takes bits"},
		{base + "link h1: loss 1", `loss takes a share from 0% to 100%, such as 0.1%, not "1"`},
		{base + "link h1: loss NaN%", "loss takes a share"},
		{base + "flags h1: roce", `"roce" is no flag of rnic run`},
		{base + "flags h1: --as roce -- sh", `"--" is no flag of rnic run`},
		{base + "run h1", "run takes hosts, a colon and a command"},
		{base + "run: x", "run takes hosts, a colon and a command"},
		{base + "run h7: x", `there is no host "h7"`},
		{base + "at soon: break h1 down", "at takes a time from 0s to 24h"},
		{base + "at 1s: h1 down", "want break LINKS and down, up, delay TIME"},
		{base + "at 1s: break h1 broken", "line 3: want links and then down, up, delay TIME, rate BITS, loss SHARE or mend"},
		{base + "at 1s: break h1 loss 200%", "loss takes a share"},
		{base + "at 1s: break h9.nic0 down", `no link "h9.nic0"`},
		{base + "run h1: true \rname: evil", `line 3: the character '\r' is not allowed here: leave it out`},
		{base + "run h1: true\u0085name: evil", `line 3: the character '\u0085' is not allowed here`},
		{base + "at 1s: run h1: true\u2028name: evil", `line 3: the character '\u2028' is not allowed here`},
		{base + "run h1: \x1b[2J", `line 3: the character '\x1b' is not allowed here`},
		{base + "run h1: a\x00b", `line 3: the character '\x00' is not allowed here`},
		{strings.Repeat("#", MaxText+1), "want 65536 at most"},
	} {
		_, err := Parse(row[0])
		if assert.Error(t, err, row[0]) {
			assert.Contains(t, err.Error(), row[1], row[0])
		}
	}
}

func TestUnits(t *testing.T) {
	for in, out := range map[string]string{
		"8k": "8k", "100m": "100m", "2.5g": "2.5g", "10gbit": "10g", "1000000k": "1g", "1000g": "1000g", "1234567k": "1234.567m", "64kbit": "64k",
	} {
		n, err := parseRate(in)
		require.NoError(t, err, in)
		again, err := parseRate(FormatRate(n))
		require.NoError(t, err)
		assert.Equal(t, n, again, "what is written is read")
		assert.Equal(t, out, FormatRate(n), in)
	}
}

func TestApply(t *testing.T) {
	p := Properties{Delay: time.Second, Rate: 1e6, Loss: 0.5}
	assert.Equal(t, Properties{Delay: 2, Rate: 1e6, Loss: 0.5}, Change{Delay, Properties{Delay: 2}}.Apply(p))
	assert.Equal(t, Properties{Delay: time.Second, Rate: 0, Loss: 0.5}, Change{Rate, Properties{}}.Apply(p))
	assert.Equal(t, Properties{Delay: time.Second, Rate: 1e6}, Change{Loss, Properties{}}.Apply(p))
	assert.Equal(t, p, Change{Down, Properties{}}.Apply(p))
}

func TestExports(t *testing.T) {
	f := parsed(t, rails+"run h3: test \"$HOME\" = 'x'\nmesh h1 h2")
	var b bytes.Buffer
	require.NoError(t, f.Compose(&b, "Rails", "img:1"))
	text := b.String()
	for _, want := range []string{
		"name: \"rails\"\n", "  h1:\n    image: \"img:1\"\n    hostname: h1\n",
		"      rail0: {ipv4_address: 10.64.1.1}\n      rail1: {ipv4_address: 10.65.1.1}\n      h1-h2: {ipv4_address: 10.128.0.2}\n",
		"  rail1: {internal: true, ipam: {config: [{subnet: 10.65.0.0/16}]}}\n", "network_mode: none",
		"root netem delay 1000us rate 2500000000bit loss 0.1%;",
		`rnic run --device nic0=10.64.1.3 --device mlx5_1=10.65.1.3 -- sh -c 'test \"$$HOME\" = '\\''x'\\''' & exec sleep infinity`,
		"# trunk rail0-spine: its switches are one network here, without delay 3ms\n", "# line 11, at 2s: h1.nic0 down: is not done here\n",
		"rnic run --device nic0=10.64.1.1 --device mlx5_1=10.65.1.1 --device nic1=10.128.0.2 --as roce -- sh -c",
	} {
		assert.Contains(t, text, want)
	}
	b.Reset()
	require.NoError(t, f.Containerlab(&b, "rails", "img:1"))
	text = b.String()
	for _, want := range []string{
		"name: \"rails\"\n", "    rail0: {kind: bridge}\n", "        - ip addr add 10.65.1.1/16 dev mlx5_1\n",
		"    - endpoints: [\"h1:nic0\", \"rail0:port0\"]\n", "    - endpoints: [\"h1:nic1\", \"h2:nic1\"]\n",
		"        - tc qdisc add dev nic0 root netem delay 1000us\n",
	} {
		assert.Contains(t, text, want)
	}
}

// TestLines: lines may end as on other systems, and have tabs.
func TestLines(t *testing.T) {
	f := parsed(t, "switch s\r\nhost h1:\ts\r\nrun h1: a\tb\r\n")
	assert.Equal(t, []Run{{0, "a\tb"}}, f.Runs)
}

// TestTimes: events are in the order of time, however far apart they are: on 32 bits too.
func TestTimes(t *testing.T) {
	f := parsed(t, "host h\nat 3s: run h: b\nat 24h: run h: c\nat 0s: run h: a")
	var order strings.Builder
	for i := range f.Breaks {
		order.WriteString(f.Breaks[i].Runs[0].Command)
	}
	assert.Equal(t, "abc", order.String())
}

// TestSmallLetters: hosts whose names differ by the size of letters alone are two here, and for containerlab.
func TestSmallLetters(t *testing.T) {
	f := parsed(t, "host H1 h1")
	var b bytes.Buffer
	assert.EqualError(t, f.Compose(&b, "f", "i"), "the hosts H1 and h1 would be one service h1 of a compose file: give one of them another name")
	assert.Empty(t, b.String())
	assert.NoError(t, f.Containerlab(&b, "f", "i"))
}

func FuzzParse(f *testing.F) {
	f.Add(rails)
	f.Add("host h1..h3\nmesh *: delay 4ms\nlink h3-h1: loss 5%")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for h := range got.Hosts {
			for n := range got.Hosts[h].NICs {
				a := got.Hosts[h].NICs[n].Addr.String()
				if seen[a] || got.LinkOf(End{h, n}) < 0 {
					t.Fatalf("%s is there twice, or has no link", a)
				}
				seen[a] = true
			}
		}
		for _, e := range got.Breaks {
			for _, l := range e.Links {
				_ = got.Links[l]
			}
		}
		var b bytes.Buffer
		names := map[string]bool{}
		for h := range got.Hosts {
			names[strings.ToLower(got.Hosts[h].Name)] = true
		}
		if (got.Compose(&b, "f", "i") == nil) != (len(names) == len(got.Hosts)) || got.Containerlab(&b, "f", "i") != nil {
			t.Fatal("no export")
		}
		for line := range strings.Lines(b.String()) {
			if !topLevel[strings.SplitAfter(line, ":")[0]] && line[0] != ' ' && line[0] != '#' || strings.ContainsAny(line, "\r\x00\u0085\u2028\u2029") {
				t.Fatalf("a line of its own: %q", line)
			}
		}
	})
}

// topLevel are the keys of an export that begin a line.
var topLevel = map[string]bool{"name:": true, "services:": true, "networks:": true, "topology:": true}
