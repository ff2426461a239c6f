package fault_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

func TestDegradation(t *testing.T) {
	for text, want := range map[string]fault.Link{
		"10g":         {Rate: 1_250_000_000},
		"2.5g,5ms,1%": {Rate: 312_500_000, Delay: 5 * time.Millisecond, Loss: 0.01},
		"300m":        {Rate: 37_500_000},
		"64k 0.5%":    {Rate: 8000, Loss: 0.005},
		"1s":          {Delay: time.Second},
	} {
		l, err := fault.ParseDegradation(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, l, text)
		again, err := fault.ParseDegradation(l.Degradation())
		require.NoError(t, err, l.Degradation())
		assert.Equal(t, l, again)
	}
	for text, says := range map[string]string{
		"":        "a port is degraded to a rate such as 10g",
		"fast":    "fast: a port is degraded to a rate",
		"1g 2g":   "2g: there is one of that kind already",
		"1% 2%":   "2%: there is one",
		"1ms 2ms": "2ms: there is one",
		"95%":     "a loss is within 0% to 90%, not 95%",
		"NaN%":    "a port is degraded",
		"-1%":     "a port is degraded",
		"2h":      "a delay is within 0s to 1m0s",
		"1k":      "a rate is 1000 octets a second or more, not 125",
		"1e300g":  "a port is degraded",
		"0.005k":  "a port is degraded",
	} {
		_, err := fault.ParseDegradation(text)
		assert.ErrorContains(t, err, says, text)
	}
}

// TestLinkIsTold: the counters have each change by its kind.
func TestLinkIsTold(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	for _, l := range []fault.Link{{Down: true}, {Down: true}, {}, {Delay: time.Millisecond}, {Delay: time.Millisecond, Down: true}, {Delay: time.Millisecond}, {}} {
		require.NoError(t, fault.SetLink(nic, l))
		assert.Equal(t, l, fault.LinkOf(nic))
	}
	assert.Equal(t, map[string]uint64{"port down": 2, "port up": 3, "degrade": 1}, nic.Stats().Faults)
	require.ErrorContains(t, fault.SetLink(nic, fault.Link{Loss: 1}), "fault: a loss is within 0% to 90%, not 100%")
}
