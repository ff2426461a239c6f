package cli

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

func TestConnFlags(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want cm.Config
	}{
		{"defaults", nil, cm.Config{Rev: 2, Timeout: 10 * time.Second}},
		{"all", []string{"--crc", "off", "--markers", "--mpa-rev", "2", "--p2p", "--timeout", "2s"},
			cm.Config{NoCRC: true, Markers: true, Rev: 2, Model: cm.PeerToPeer, Timeout: 2 * time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c ConnFlags
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			c.register(fs)
			require.NoError(t, fs.Parse(tt.args))
			require.NoError(t, c.check())
			assert.Equal(t, tt.want, c.Config())
		})
	}
}

// What a parent hands to its child must come out the same there.
func TestConnFlagsArgs(t *testing.T) {
	for _, want := range []ConnFlags{
		DefaultConnFlags(),
		{CRC: false, markers: true, rev: 2, model: cm.ClientServer, IRD: 3, ORD: 4096, Timeout: 1500 * time.Millisecond},
	} {
		var got ConnFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		got.register(fs)
		require.NoError(t, fs.Parse(want.Args()))
		assert.Equal(t, want, got)
	}
}

// The RNIC's limits themselves are allowed.
func TestConnFlagsCheckLimits(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	has, err := nic.Query()
	require.NoError(t, err)
	c := DefaultConnFlags()
	c.IRD, c.ORD = has.Limits.IRD, has.Limits.ORD
	require.NoError(t, c.check())
	c.IRD++
	assert.ErrorContains(t, c.check(), "--ird 4097: want a number from 0 to 4096")
	c.IRD--
	c.ORD++
	assert.ErrorContains(t, c.check(), "--ord 4097: want a number from 0 to 4096")
}

func TestStartupErrorOfTheSystem(t *testing.T) {
	var log bytes.Buffer
	c := DefaultConnFlags()
	c.ListenConfig(NewLogger(&log)).OnStartupError(nil, syscall.EMFILE)
	assert.Equal(t, "rnic: accepting a connection: "+syscall.EMFILE.Error()+"\n", log.String())
}
