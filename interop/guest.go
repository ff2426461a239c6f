package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/interop/internal/siw"
)

// rpingPort is where rping listens in the guest.
const rpingPort = 7174

// guest is a running guest, whose Port leads to rpingPort.
type guest struct{ *siw.Guest }

// startGuest boots a guest. With parameters the driver is the one whose compile-time switches were
// made module parameters, else it is the stock one.
func startGuest(ctx context.Context, dir, kind, parameters string) (guest, error) {
	var options []string
	if parameters != "" {
		options = []string{"-s", parameters}
	}
	g, err := siw.Start(ctx, filepath.Join(dir, "siw-guest"), "interop-"+kind, rpingPort, options...)
	return guest{g}, err
}

// set changes what the driver with parameters does for connections made from now on.
func (g guest) set(ctx context.Context, s settings) error {
	script := fmt.Sprintf("cd /sys/module/siw/parameters && echo %d >mpa_version && echo %d >peer_to_peer && echo %d >mpa_crc_required",
		s.rev, digit(s.p2p), digit(s.crc))
	if out, err := g.Command(ctx, cellTime, script).CombinedOutput(); err != nil {
		return fmt.Errorf("setting siw's parameters: %w: %s", err, out)
	}
	return nil
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// What a server script prints besides rping's output, each at the start of a line.
const (
	listening = "LISTENING" // the socket listens now
	stalled   = "STALLED"   // siw left octets of the stream unread for several seconds; rping was stopped
	wedged    = "WEDGED"    // an rping of before still holds the port, and nothing was run
)

// late is what rping prints when errLate befalls it.
const late = "rdma_get_cm_event: Bad file descriptor"

var (
	// errStalled is a connection on which siw stopped reading. siw's responder sends its reply before it
	// takes over the socket's callbacks; an FPDU that arrives in between is read only when the
	// next one arrives. softrnic sends one (docs/decisions/0014-first-fpdu.md), siw's own client does not.
	errStalled = errors.New("siw left received octets unread: it missed the first FPDU, which arrived right behind its reply")
	// errLate is an rping that exits with an error after all went well: its first thread closes the channel that
	// its second one still reads. rdma-core 59 mends it.
	errLate = errors.New("rping's two threads got into each other's way when it ended")
	// errWedged is a guest that has to be booted again before it is of use.
	errWedged = errors.New("an earlier rping in the guest did not end")
)

// serverScript starts rping's server, says so once it listens, and then runs the commands of meanwhile. These
// may set client, the status that the script ends with if the server's is 0. rping waits for ever for
// a client that does not come, hence timeout. If the server fails, what the driver said in the kernel's log follows.
func serverScript(size int, meanwhile string) string {
	return fmt.Sprintf(`
sockets() { grep ':%04[3]X [0-9A-F]*:[0-9A-F]* '$1 /proc/net/tcp; }

# Octets, in hex, that wait in the receive queue of the connection to the server.
unread() { sockets 01 | sed -n 's/.* [0-9A-F]\{8\}:\([0-9A-F]\{8\}\) .*/\1/p' | grep -v 00000000; }

watch() {
  same=0
  last=
  while kill -0 $server 2>/dev/null; do
    now=$(unread)
    if [ -n "$now" ] && [ "$now" = "$last" ]; then same=$((same + 1)); else same=0; fi
    if [ $same -ge 4 ]; then
      echo "%[6]s 0x$now octets unread"
      kill $server
      return
    fi
    last=$now
    sleep 1
  done
}

dmesg -c >/dev/null
n=0
while sockets 0A >/dev/null; do
  n=$((n + 1))
  [ $n -lt 60 ] || { echo "%[7]s"; exit 1; }
  usleep 50000
done
timeout %[1]d rping -s -a %[2]s -p %[3]d -S %[4]d >/tmp/server.out 2>&1 &
server=$!
n=0
while ! sockets 0A >/dev/null; do
  n=$((n + 1))
  [ $n -lt 100 ] || { echo "rping did not listen"; cat /tmp/server.out; exit 1; }
  usleep 50000
done
echo %[5]s
watch &
client=0
%[8]s
wait $server
rc=$?
cat /tmp/server.out
[ $rc = 0 ] || dmesg | sed -n 's/.*\(siw: .*\)/\1/p' | tail -2
[ $rc = 0 ] || exit $rc
exit $client
`, int(rpingTime.Seconds()), siw.GuestAddr, rpingPort, size, listening, stalled, wedged, meanwhile)
}

// clientScript runs rping's client. Its status is the client's: 0 after all rounds with valid data. rping hangs
// when it cannot connect, hence timeout.
func clientScript(addr string, port, rounds, size int) string {
	return fmt.Sprintf("timeout %d rping -c -a %s -p %d -C %d -S %d -V 2>&1", int(rpingTime.Seconds()), addr, port, rounds, size)
}

// controlScript runs rping's server and client on the same guest. A server that fails is the cause, whatever
// the client says, so its status comes first.
func controlScript(size, rounds int) string {
	return serverScript(size, clientScript(siw.GuestAddr, rpingPort, rounds, size)+"\nclient=$?")
}

// startServer runs a server script and returns when it listens. wait then returns how it ended.
func (g guest) startServer(ctx context.Context, size int) (wait func() error, err error) {
	cmd := g.Command(ctx, cellTime, serverScript(size, ""))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := bufio.NewReader(stdout)
	line, err := r.ReadString('\n')
	finish := func() error {
		rest, readErr := io.ReadAll(r)
		return said("siw server", errors.Join(cmd.Wait(), readErr), string(rest)+stderr.String())
	}
	if strings.TrimSpace(line) == wedged {
		return nil, errors.Join(errWedged, finish())
	}
	if err != nil || strings.TrimSpace(line) != listening {
		return nil, errors.Join(fmt.Errorf("siw server: %q instead of %q", line, listening), finish())
	}
	return finish, nil
}

// noise is what rping prints when all is well, and what says no more than a line before it.
var noise = []string{
	"rping server failed: -1",
	"client DISCONNECT EVENT...",
	"server DISCONNECT EVENT...",
	"wait for RDMA_READ_ADV state 10", // DISCONNECTED: how a server ends
	listening,
}

// said turns an exit status into an error that ends with the last telling lines that the program
// printed, three at most. A nil err stays nil. A stall or a wedged guest is recognised by what the script printed.
func said(who string, err error, output string) error {
	if err == nil {
		return nil
	}
	var telling []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, stalled):
			return errStalled
		case line == wedged:
			return errWedged
		}
		if line != "" && !slices.Contains(noise, line) {
			telling = append(telling, line)
		}
	}
	switch {
	case len(telling) == 1 && telling[0] == late:
		return errLate
	case telling == nil:
		telling = []string{"printed nothing"}
	}
	return fmt.Errorf("%s: %w: %s", who, err, strings.Join(telling[max(0, len(telling)-3):], "; "))
}
