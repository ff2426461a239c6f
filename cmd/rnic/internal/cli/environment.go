package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Variable is one of the environment that means something to rnic, or to what it runs.
type Variable struct {
	Name  string
	Means string // a sentence without its end
}

// Variables are all of them. Those that begin with SOFTRNIC_ are what `rnic run` tells the libraries in a program (package rdmacore).
var Variables = []Variable{
	{"XDG_RUNTIME_DIR", "where processes put their sockets, in softrnic below it: those of --stats, which rnic top looks for, and of VI programs that share a port. Without it: softrnic-UID below TMPDIR"},
	{"XDG_CACHE_HOME", "where a rnic that has the libraries of rnic run in itself puts them, in softrnic below it; HOME/.cache without it"},
	{"TMPDIR", "the folder for temporary files, /tmp without it. rnic run takes /dev/shm if it cannot write there"},
	{"LD_PRELOAD", "rnic run puts its library first in the program's, and keeps what is there"},
	{"SYSFS_PATH", "rnic run gives the program a folder of its own, in which rdma-core finds the device"},
	{"SOFTRNIC_ENGINE", "the path of libsoftrnic-engine.so"},
	{"SOFTRNIC_TREE", "without rnic run, in place of SYSFS_PATH: a folder that rnic cdi generate has made. What depends on the address in it, the engine says"},
	{"SOFTRNIC_ADDR", "the address of the device: --addr. Without it one is chosen"},
	{"SOFTRNIC_DEVICES", "the devices: --device and --devices, each with its addresses"},
	{"SOFTRNIC_AS", "iwarp or roce: --as"},
	{"SOFTRNIC_CRC", "on or off: --crc"},
	{"SOFTRNIC_STRACE", "a file for the commands of the program, a line each: --strace"},
	{"SOFTRNIC_FAULTS", "a file with a fault plan: --faults"},
	{"SOFTRNIC_PCAP", "a file for a capture: --pcap"},
	{"SOFTRNIC_PCAP_PAYLOAD", "on or off, the program's octets in it: --pcap-payload"},
	{"SOFTRNIC_TRACE", "a file for a trace: --trace"},
	{"SOFTRNIC_STATS", "on or off, counters for rnic top: --stats"},
	{"SOFTRNIC_FABRIC", "the folder of the fabric that a program runs in, which rnic fabric finds its keeper by"},
	{"SOFTRNIC_FABRIC_HOST", "the host of the fabric that a program runs on"},
}

// environmentTopic is `rnic help environment`.
func environmentTopic() *cobra.Command {
	var text strings.Builder
	text.WriteString(`These variables mean something to rnic. Those that begin with SOFTRNIC_ are what
rnic run tells the libraries in the program that it runs, from its flags: give the
flags. A program that clears its environment before it starts another one leaves
that without an RDMA device.

`)
	for _, v := range Variables {
		fmt.Fprintf(&text, "  %s\n%s", v.Name, indented(v.Means+".", "      ", 80))
	}
	return &cobra.Command{Use: "environment", Short: "The variables that mean something to rnic", Long: strings.TrimSuffix(text.String(), "\n")}
}

// indented is text in lines of at most width characters.
func indented(text, indent string, width int) string {
	var b strings.Builder
	line := indent
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			b.WriteString(line + "\n")
			line = indent + word
		}
	}
	return b.String() + line + "\n"
}
