package main

import (
	"net"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { clitest.Main(m, root) }

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		args string
		want string // part of the message
	}{
		{"", "no command given"},
		{"bogus", `unknown command "bogus"`},
		{"bogus --help", `unknown command "bogus"`},
		{"bogus -h", `unknown command "bogus"`},
		{"help bogus", `unknown command "bogus"`},
		{"perf bogus --help", `unknown command "bogus"`},
		{"perf send bogus --help", `unknown command "bogus"`},
		{"help perf bogus", `unknown command "bogus"`},
		{"ping bogus --help", `"bogus" is one too many`},
		{"help ping bogus", `"bogus" is one too many`},
		{"perf send bw a b --help", `"b" is one too many`},
		{"perf server a b -h", `"b" is one too many`},
		{"version extra", "one too many"},
		{"ping -c -a 127.0.0.1 --idle 1s", "are for the server"},
		{"ping -c -a 127.0.0.1 --clients 3", "are for the server"},
		{"--bogus", "unknown flag"},
		{"info extra", `"extra" is one too many`},
		{"ping", "choose one of -s"},
		{"ping -s -c", "choose one of -s"},
		{"ping -c", "needs -a"},
		{"ping -c -a 127.0.0.1 -P", "-P is for the server"},
		{"ping -s -v --json", "choose one"},
		{"ping -s -S 0", "want 1 to 1M"},
		{"ping -s -S 1025K", "want 1 to 1M"},
		{"ping -s -p 65536", "from 0 to 65535"},
		{"ping -s -C -1", "from 0 to"},
		{"ping -s --crc maybe", "want on or off"},
		{"ping -s --mpa-rev 3", "from 1 to 2"},
		{"ping -c -a 127.0.0.1 -p 0", "-p 0 is for the server"},
		{"ping -s --ird 4097", "from 0 to 4096"},
		{"ping -c -a 127.0.0.1 --ord 16384", "from 0 to 4096"},
		{"ping -s --ird 9999999999", "from 0 to 2147483647"},
		{"ping -s --mpa-rev 1 --p2p", "--p2p needs --mpa-rev 2"},
		{"ping -c -a 127.0.0.1 --p2p --mpa-rev 1", "--p2p needs --mpa-rev 2"},
		{"ping -s --timeout soon", "want a time"},
		{"ping -s extra", "one too many"},
		{"demo --bytes 2", "want 3 to"},
		{"demo --bytes lots", "such as 4096"},
		{"demo --bytes 18446744073709551616", "want less than 2^64 octets"},
		{"demo --bytes 562949953421313", "want 3 to 524288G octets"},
		{"demo --mpa-rev 1 --p2p", "--p2p needs --mpa-rev 2"},
		{"demo --ord 4097", "from 0 to 4096"},
		{"demo --bytes", "needs an argument"},
		{"perf", "no command given"},
		{"perf bogus", "unknown command"},
		{"perf send", "want one of bw, rate, lat"},
		{"perf send bw", "ADDR is missing"},
		{"perf send bw a b", `"b" is one too many`},
		{"perf send bw a --size 64,0", "want 1 to 64M"},
		{"perf send bw a --size 64,,65", "such as 4096"},
		{"perf send bw a --depth 8193", "from 0 to 8192"},
		{"perf send bw a --duration 0s", "from 1ms"},
		{"perf send bw a --mpa-rev 1 --p2p", "--p2p needs --mpa-rev 2"},
		{"perf read lat a --ird 4097", "from 0 to 4096"},
		{"perf server --mpa-rev 1 --p2p", "--p2p needs --mpa-rev 2"},
		{"perf server --ord 4097", "from 0 to 4096"},
		{"perf server a b", "one too many"},
		{"perf suite --lines --json", "choose one"},
		{"perf baseline --rounds 0", "from 1 to"},
		{"perf scale extra", "one too many"},
		{"perf scale --qps 1", "from 2 to 60000"},
		{"perf scale --qps many", "from 2 to 60000"},
		{"perf scale --duration 0s", "from 1ms"},
		{"perf many extra", "one too many"},
		{"perf many --qps 16,0", "from 1 to 60000"},
		{"perf many --qps 1,,2", "from 1 to 60000"},
		{"perf many --crc maybe", "want on or off"},
		{"perf many --plain --poll", "leave them out"},
		{"perf many --plain --crc off", "leave them out"},
		{"perf suite --only few", "want one or many"},
		{"perf sweep extra", "one too many"},
		{"perf sweep --out charts.png", "ends with .html or .svg"},
		{"perf sweep --size 0", "want 1 to 64M"},
		{"perf mtu extra", "one too many"},
		{"perf mtu --mtu 575", "from 576 to 65535"},
		{"perf mtu --rounds 0", "from 1 to"},
		{"completion", "SHELL is missing"},
		{"completion tcsh", `unknown shell "tcsh", want one of bash`},
		{"man", "FOLDER is missing"},
		{"conform", "no command given"},
		{"conform list x", "one too many"},
		{"conform run x", "one too many"},
		{"conform run --run nothing-at-all", "no case matches"},
		{"conform run --run 5.1 --run nothing-at-all", "--run nothing-at-all: no case matches, and no key"},
		{"conform run --run 5.1 --skip nothing-at-all", "--skip nothing-at-all: no case matches"},
		{"conform run --run 5.1 --skip 5.1", "--skip leaves none"},
		{"conform run --run VA-10.4-S1", "add --strict"},
		{"conform run --run [", "is no pattern"},
		{"conform run --timeout 0s", "from 1ms"},
		{"conform run --parallel 0", "from 1 to"},
		{"conform run --role initiator", "--role is for a --target"},
		{"conform run --rping", "--rping is for a --target"},
		{"conform run --target a:1 --role both", "want initiator or responder"},
		{"conform run --target a", "want HOST:PORT"},
		{"conform run --run 5.1 --json - --html -", "only one output"},
		{"conform serve", "ADDR is missing"},
		{"conform report", "FILE is missing"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			r := clitest.Run(t.Context(), strings.Fields(tt.args)...)
			assert.Equal(t, 2, r.Status)
			assert.Contains(t, r.Stderr, tt.want)
			assert.Regexp(t, `^rnic: .*; see rnic.* --help\n$`, r.Stderr)
			if strings.Contains(tt.args, "--json") {
				assert.NotEmpty(t, failed(t, r.Stdout)["remedy"])
			} else {
				assert.Empty(t, r.Stdout)
			}
		})
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	var visit func(path []string)
	visit = func(path []string) {
		r := clitest.Run(t.Context(), append(path, "--help")...)
		assert.Zero(t, r.Status, path)
		assert.Empty(t, r.Stderr, path)
		root := root()
		cmd, _, err := root.Find(path)
		require.NoError(t, err)
		if cmd.Runnable() {
			assert.Contains(t, r.Stdout, "Usage:", path)
		} else {
			assert.Contains(t, r.Stdout, cmd.Long, "a topic")
		}
		for _, c := range cmd.Commands() {
			assert.NotEmpty(t, c.Short, c.CommandPath())
			visit(append(path[:len(path):len(path)], c.Name()))
		}
	}
	visit(nil)
}

// A group alone is an error, so its help must not show that as a usage.
func TestHelpOfGroups(t *testing.T) {
	for _, path := range []string{"rnic", "rnic perf", "rnic perf send"} {
		r := clitest.Run(t.Context(), append(strings.Fields(path)[1:], "--help")...)
		assert.Contains(t, r.Stdout, "Usage:\n  "+path+" COMMAND\n\n", path)
		assert.NotContains(t, r.Stdout, path+" [flags]")
	}
	r := clitest.Run(t.Context(), "perf", "send", "bw", "--help")
	assert.Contains(t, r.Stdout, "Usage:\n  rnic perf send bw ADDR [flags]\n")
}

// Where something listens, but not an RNIC, the hint would mislead.
func TestHintOnlyIfRefused(t *testing.T) {
	const hint = "is a server listening there?"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		if nc, err := l.Accept(); err == nil {
			nc.Close()
		}
	}()
	r := clitest.Run(t.Context(), "perf", "send", "lat", l.Addr().String())
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "connecting to "+l.Addr().String())
	assert.NotContains(t, r.Stderr, hint)
	require.NoError(t, l.Close())
	<-accepted

	r = clitest.Run(t.Context(), "perf", "send", "lat", l.Addr().String()) // now closed
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, hint)
}

// Who connects but does not speak MPA is named, and the server goes on.
func TestServersLogStartupErrors(t *testing.T) {
	for _, args := range []string{"ping -s -a 127.0.0.1 -p 0", "perf server 127.0.0.1:0"} {
		t.Run(args, func(t *testing.T) {
			s := clitest.StartServer(t, strings.Fields(args)...)
			nc, err := net.Dial("tcp", s.Addr)
			require.NoError(t, err)
			defer nc.Close()
			_, err = nc.Write([]byte("GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n"))
			require.NoError(t, err)
			line := <-s.Log
			assert.Regexp(t, `^rnic: .*`+regexp.QuoteMeta(nc.LocalAddr().String())+`: .+`, line)
			assert.Equal(t, 1, strings.Count(line, nc.LocalAddr().String()), line)
			select {
			case r := <-s.Done:
				assert.Fail(t, "the server ended", r.Stderr)
			default:
			}
		})
	}
}

func TestFailuresAreOneLine(t *testing.T) {
	for args, hint := range map[string]string{
		// Port 1 of the loopback address: nobody listens there.
		"ping -c -a 127.0.0.1 -p 1 --timeout 5s": "is a server listening there?",
		"perf read lat 127.0.0.1:1 --timeout 5s": "is a server listening there?",
		"ping -s -a 192.0.2.1 -p 0":              "; choose another", // not an address of this machine
		"perf server 192.0.2.1:0":                "; choose another",
	} {
		t.Run(args, func(t *testing.T) {
			r := clitest.Run(t.Context(), strings.Fields(args)...)
			assert.Equal(t, 1, r.Status)
			assert.Regexp(t, `^rnic: [^\n]*`+regexp.QuoteMeta(hint)+`[^\n]*\n$`, r.Stderr)
			assert.Empty(t, r.Stdout)
		})
	}
}

func TestHelpCommand(t *testing.T) {
	for _, words := range []string{"", "ping", "perf send", "perf send lat"} {
		want := clitest.Run(t.Context(), append(strings.Fields(words), "--help")...)
		got := clitest.Run(t.Context(), append([]string{"help"}, strings.Fields(words)...)...)
		assert.Equal(t, want, got, words)
	}
}

// Help is for who asks for it, whatever else the command line has that may be there.
func TestHelpWithArguments(t *testing.T) {
	want := clitest.Run(t.Context(), "perf", "send", "bw", "--help")
	assert.Zero(t, want.Status)
	assert.Equal(t, want, clitest.Run(t.Context(), "perf", "send", "bw", "a", "--help"))
	assert.Equal(t, want, clitest.Run(t.Context(), "help", "perf", "send", "bw", "a"))
}

func TestVersion(t *testing.T) {
	flag := clitest.Run(t.Context(), "--version")
	assert.Zero(t, flag.Status)
	assert.Regexp(t, `^rnic \d+\.\d+\.\d+\S* \(.+\), go\S.*, `+runtime.GOOS+"/"+runtime.GOARCH+`\n$`, flag.Stdout)
	assert.Equal(t, flag, clitest.Run(t.Context(), "version"))
	var v map[string]any
	r := clitest.Run(t.Context(), "version", "--json")
	clitest.Decode(t, r.Stdout, &v)
	assert.Equal(t, verbs.Version().Release, v["version"])
	assert.Equal(t, runtime.GOOS+"/"+runtime.GOARCH, v["system"])
}
