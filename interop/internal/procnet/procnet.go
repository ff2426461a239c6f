// Package procnet looks at the sockets of another process' network.
package procnet

import (
	"fmt"
	"os"
	"strings"
)

// listening are the states of sockets that take what comes, by the name in /proc/net: TCP_LISTEN, and TCP_CLOSE of UDP.
var listening = map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}

// Listens tells whether a socket in the network of the process pid listens on a port.
func Listens(pid, port int) bool {
	for name, state := range listening {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err == nil && listens(string(text), port, state) {
			return true
		}
	}
	return false
}

// ListensTCP tells whether a socket in the text of /proc/net/tcp or tcp6, of some machine, listens on a port.
func ListensTCP(text string, port int) bool { return listens(text, port, listening["tcp"]) }

// listens looks for a socket in a state in the text of /proc/net/tcp: proc_pid_net(5).
func listens(text string, port int, want string) bool {
	for line := range strings.Lines(text) {
		const local, state = 1, 3
		fields := strings.Fields(line)
		if len(fields) > state && fields[state] == want && strings.HasSuffix(fields[local], fmt.Sprintf(":%04X", port)) {
			return true
		}
	}
	return false
}
