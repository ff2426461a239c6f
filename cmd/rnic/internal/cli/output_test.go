package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 1 << 40: "1,099,511,627,776"} {
		assert.Equal(t, want, Grouped(n))
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	NewProgress(&out).Show("Send", 1, 2)
	assert.Empty(t, out.String(), "not a terminal")

	p := Progress{w: &out}
	p.Show("Send", 500, 1000)
	p.Show("Send", 501, 1000) // too soon
	assert.Equal(t, "\rSend   [###############               ] 500 of 1,000 octets\x1b[K", out.String())
	p.Clear()
	assert.Contains(t, out.String(), "\r\x1b[K")

	out.Reset()
	connections := Progress{w: &out, Unit: "connections"}
	connections.Show("QPs", 60000, 60000)
	assert.Contains(t, out.String(), "60,000 of 60,000 connections\x1b[K")

	out.Reset()
	wide := Progress{w: &out}
	wide.Show("Write", 33e9, 33e9) // a third of 100 GB
	assert.Equal(t, 30, strings.Count(out.String(), "#"))
	assert.LessOrEqual(t, len(strings.Trim(out.String(), "\r\x1b[K")), 79, "it must not wrap")
}

func TestProgressOfCases(t *testing.T) {
	var out strings.Builder
	p := Progress{w: &out}
	p.Cases(1, 3, 0)
	p.Cases(2, 3, 1) // too soon
	assert.Equal(t, "\r[##########                    ] 1 of 3 cases, 0 failed\x1b[K", out.String())
	(&Progress{}).Cases(1, 3, 0)
}
