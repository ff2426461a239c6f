package fabric

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/box"
	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"
	"github.com/softrnic/softrnic/stats"
)

// TestTop: a line a NIC, with what its RNICs of all programs have done in the time, and one for RNICs of no NIC.
func TestTop(t *testing.T) {
	s := &state{
		Hosts: []hostState{{"h1", []nicState{{"nic0", "a", 0}, {"nic1", "b", 1}}}, {"h2", nil}},
		Links: []box.State{{Name: "h1.nic0", Up: true, Is: layout.Properties{Delay: time.Millisecond}}, {Name: "h1.nic1"}},
	}
	at := time.Now()
	program := func(after time.Duration, name string, messages uint64) stats.Snapshot {
		n := stats.RNIC{Name: name, Values: stats.Values{
			Counters: map[string]uint64{"qp": 2},
			By:       map[string]map[string]uint64{"out_messages": {"send": messages}, "completions": {"Success": 5, "Flushed": 1}},
		}}
		return stats.Snapshot{Time: at.Add(after), RNICs: []stats.RNIC{n}}
	}
	before := map[string][]stats.Snapshot{"h1": {program(0, "nic0", 100), program(0, "nic0", 0)}, "h2": {program(0, "", 7)}}
	now := map[string][]stats.Snapshot{
		"h1": {program(2*time.Second, "nic0", 300), program(2*time.Second, "nic0", 400)}, "h2": {program(time.Second, "mine", 7)},
	}
	var b bytes.Buffer
	require.NoError(t, top(&b, s, before, now))
	assert.Equal(t, `HOST  NIC   PROGRAMS  QPs  OUT msg/s  MB/s  IN msg/s  MB/s  FAILED  TERMINATES  LINK
h1    nic0  2         4    300        0.0   0         0.0   2       0           up delay 1ms
h1    nic1  0         0    0          0.0   0         0.0   0       0           down
h2    -     1         2    0          0.0   0         0.0   1       0
`, b.String())
}
