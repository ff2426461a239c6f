//go:build linux && (amd64 || arm64)

package uverbs

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestCounters: each file of counters and hw_counters says what the device has counted.
func TestCounters(t *testing.T) {
	a, b, _ := twoByHand(t, Config{}, 16)
	read := func(s *side) map[string]int {
		all := map[string]int{}
		for name := range sysfs.Counters {
			n, err := strconv.Atoi(fileText(t, s.dev, name))
			require.NoError(t, err, name)
			all[name] = n
		}
		return all
	}
	before := [...]map[string]int{read(a), read(b)}
	a.posted(rdma(signaled(uabi.WRRDMAWrite, 1), b, 0), a.sge(0, 8))
	a.one()
	a.posted(rdma(signaled(uabi.WRRDMARead, 2), b, 0), a.sge(0, 8))
	a.one()
	a.dev.SetLink(Link{Down: true})
	a.dev.SetLink(Link{})
	grown := func(i int, s *side) map[string]int {
		all := read(s)
		for name, n := range before[i] {
			if all[name] -= n; all[name] == 0 {
				delete(all, name)
			}
		}
		return all
	}
	// A Write is an FPDU of 2+14+8+4 octets, a Read Request of 2+18+28+4, its answer of 2+14+8+4, without markers.
	assert.Equal(t, map[string]int{
		"counters/port_xmit_data": (28 + 52) / 4, "counters/port_rcv_data": 28 / 4,
		"counters/port_xmit_packets": 2, "counters/unicast_xmit_packets": 2, "hw_counters/sent_pkts": 2, "hw_counters/tx_bytes": 28 + 52,
		"counters/port_rcv_packets": 1, "counters/unicast_rcv_packets": 1, "hw_counters/rcvd_pkts": 1, "hw_counters/rx_bytes": 28,
		"hw_counters/iwOutRdmaWrites": 1, "hw_counters/iwOutRdmaReads": 1, "counters/link_downed": 1,
	}, grown(0, a))
	assert.Equal(t, map[string]int{
		"counters/port_xmit_data": 28 / 4, "counters/port_rcv_data": (28 + 52) / 4,
		"counters/port_xmit_packets": 1, "counters/unicast_xmit_packets": 1, "hw_counters/sent_pkts": 1, "hw_counters/tx_bytes": 28,
		"counters/port_rcv_packets": 2, "counters/unicast_rcv_packets": 2, "hw_counters/rcvd_pkts": 2, "hw_counters/rx_bytes": 28 + 52,
		"hw_counters/iwInRdmaWrites": 1, "hw_counters/iwInRdmaReads": 1,
	}, grown(1, b))
}
