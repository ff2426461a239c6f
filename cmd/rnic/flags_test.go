package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
)

func TestConnFlags(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want cm.Config
	}{
		{"defaults", nil, cm.Config{Rev: 2, Timeout: 10 * time.Second}},
		{"all", []string{"--crc", "off", "--markers", "--mpa-rev", "1", "--p2p", "--timeout", "2s"},
			cm.Config{NoCRC: true, Markers: true, Rev: 1, P2P: true, Timeout: 2 * time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c connFlags
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			c.register(fs)
			require.NoError(t, fs.Parse(tt.args))
			assert.Equal(t, tt.want, c.config())
		})
	}
}

// What a parent hands to its child must come out the same there.
func TestConnFlagsArgs(t *testing.T) {
	for _, want := range []connFlags{
		defaultConnFlags(),
		{crc: false, markers: true, rev: 1, p2p: true, ird: 3, ord: 16383, timeout: 1500 * time.Millisecond},
	} {
		var got connFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		got.register(fs)
		require.NoError(t, fs.Parse(want.args()))
		assert.Equal(t, want, got)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "64K": 64 << 10, "64k": 64 << 10, "3M": 3 << 20, "2G": 2 << 30, "1500": 1500,
	} {
		n, err := parseSize(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, n, text)

		again, err := parseSize(formatSize(want))
		require.NoError(t, err)
		assert.Equal(t, want, again, formatSize(want))
	}
	for _, text := range []string{"", "K", "-1", "1.5M", "1T", "1KK", "4294967296", "0x10", " 1"} {
		_, err := parseSize(text)
		assert.Error(t, err, text)
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"", "1", "64K", "4294967295G", "K", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseSize(s)
		if err != nil {
			return
		}
		if n < 1<<32 { // larger ones may need more digits than a flag takes
			again, err := parseSize(formatSize(n))
			require.NoError(t, err)
			assert.Equal(t, n, again)
		}
	})
}
