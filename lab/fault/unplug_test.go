package fault

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// TestOpenFails: a plan refuses a Go program an RNIC, as often as it says.
func TestOpenFails(t *testing.T) {
	var struck []string
	in, err := New(MustParse("open 1: no device"), func(s Strike) { struck = append(struck, s.String()) })
	require.NoError(t, err)
	_, err = verbs.Open(verbs.Config{Faults: in})
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	require.ErrorContains(t, err, "by the fault plan, line 1: open 1: no device")
	assert.Equal(t, []string{"line 1: open 1: no device"}, struck)
	nic, err := verbs.Open(verbs.Config{Faults: in})
	require.NoError(t, err)
	require.NoError(t, nic.Close())
}

// TestUnplug: an RNIC that is unplugged fails, once, and another cannot be opened until it is plugged in.
func TestUnplug(t *testing.T) {
	in, err := New(&Plan{}, nil)
	require.NoError(t, err)
	nic, err := verbs.Open(verbs.Config{Faults: in})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nic.Close() })
	events := make(chan verbs.EventID, 4)
	require.NoError(t, nic.SetEventHandler(func(e verbs.Event) { events <- e.ID }))
	in.Unplug(nic)
	in.Unplug(nic)
	assert.Equal(t, verbs.EventRNICCatastrophic, <-events)
	assert.True(t, in.Unplugged())
	_, err = nic.AllocatePD()
	require.ErrorIs(t, err, verbs.ErrInvalidRNIC)
	_, err = verbs.Open(verbs.Config{Faults: in})
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	require.ErrorContains(t, err, "the RNIC is unplugged: plug it in: Injector.Plug, or rnic nic quiet")
	assert.Equal(t, map[string]uint64{"unplug": 1}, nic.Stats().Faults)
	in.Plug()
	other, err := verbs.Open(verbs.Config{Faults: in})
	require.NoError(t, err)
	require.NoError(t, other.Close())
	_, err = nic.AllocatePD()
	require.ErrorIs(t, err, verbs.ErrInvalidRNIC)
	assert.Empty(t, events)
}

// TestUnplugWithoutPlan: what was opened without an Injector has nothing that keeps another Open back.
func TestUnplugWithoutPlan(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nic.Close() })
	_, err = Control("a", nic, nil).Control(stats.Command{Do: "unplug"})
	require.ErrorContains(t, err, "nothing keeps it from opening another (--faults, verbs.Config.Faults)")
	_, err = nic.AllocatePD()
	require.NoError(t, err)
}
