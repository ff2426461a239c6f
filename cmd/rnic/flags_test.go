package main

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
			cm.Config{NoCRC: true, Markers: true, Rev: 2, P2P: true, Timeout: 2 * time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c connFlags
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			c.register(fs)
			require.NoError(t, fs.Parse(tt.args))
			require.NoError(t, c.check())
			assert.Equal(t, tt.want, c.config())
		})
	}
}

// What a parent hands to its child must come out the same there.
func TestConnFlagsArgs(t *testing.T) {
	for _, want := range []connFlags{
		defaultConnFlags(),
		{crc: false, markers: true, rev: 2, p2p: true, ird: 3, ord: 4096, timeout: 1500 * time.Millisecond},
	} {
		var got connFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		got.register(fs)
		require.NoError(t, fs.Parse(want.args()))
		assert.Equal(t, want, got)
	}
}

func TestSizeRangeBeyond32Bits(t *testing.T) {
	var n uint64
	r := sizeRange{&n, 3, maxDemo}
	require.NoError(t, r.Set("5368709120"))
	assert.Equal(t, uint64(5<<30), n)
	assert.ErrorContains(t, r.Set("562949953421313"), "want 3 to 524288G octets")
	assert.Equal(t, uint64(5<<30), n)
}

// The RNIC's limits themselves are allowed.
func TestConnFlagsCheckLimits(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	has, err := nic.Query()
	require.NoError(t, err)
	c := defaultConnFlags()
	c.ird, c.ord = has.MaxIRD, has.MaxORD
	require.NoError(t, c.check())
	c.ird++
	assert.ErrorContains(t, c.check(), "--ird 4097: want a number from 0 to 4096")
	c.ird--
	c.ord++
	assert.ErrorContains(t, c.check(), "--ord 4097: want a number from 0 to 4096")
}

func TestStartupErrorOfTheSystem(t *testing.T) {
	var log bytes.Buffer
	c := defaultConnFlags()
	c.listenConfig(&log).OnStartupError(nil, syscall.EMFILE)
	assert.Equal(t, "rnic: accepting a connection: "+syscall.EMFILE.Error()+"\n", log.String())
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "64K": 64 << 10, "64k": 64 << 10, "3M": 3 << 20, "2G": 2 << 30, "1500": 1500,
		"4294967296": 1 << 32, "5368709120": 5 << 30, "18446744073709551615": 1<<64 - 1, "17179869183G": 1<<64 - 1<<30,
	} {
		n, err := parseSize(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, n, text)

		again, err := parseSize(formatSize(want))
		require.NoError(t, err)
		assert.Equal(t, want, again, formatSize(want))
	}
	for _, text := range []string{"", "K", "-1", "1.5M", "1T", "1KK", "18446744073709551616", "17179869184G", "0x10", " 1"} {
		_, err := parseSize(text)
		assert.Error(t, err, text)
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"", "1", "64K", "17179869183G", "17179869184G", "K", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseSize(s)
		if err != nil {
			return
		}
		again, err := parseSize(formatSize(n))
		require.NoError(t, err)
		assert.Equal(t, n, again)
	})
}
