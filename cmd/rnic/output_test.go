package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 1 << 40: "1,099,511,627,776"} {
		assert.Equal(t, want, grouped(n))
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	newProgress(&out).show("Send", 1, 2)
	assert.Empty(t, out.String(), "not a terminal")

	p := progress{w: &out}
	p.show("Send", 500, 1000)
	p.show("Send", 501, 1000) // too soon
	assert.Equal(t, "\rSend   [###############               ] 500 of 1,000 octets\x1b[K", out.String())
	p.clear()
	assert.Contains(t, out.String(), "\r\x1b[K")

	out.Reset()
	connections := progress{w: &out, unit: "connections"}
	connections.show("QPs", 60000, 60000)
	assert.Contains(t, out.String(), "60,000 of 60,000 connections\x1b[K")

	out.Reset()
	wide := progress{w: &out}
	wide.show("Write", 33e9, 33e9) // a third of 100 GB
	assert.Equal(t, 30, strings.Count(out.String(), "#"))
	assert.LessOrEqual(t, len(strings.Trim(out.String(), "\r\x1b[K")), 79, "it must not wrap")
}

func TestPrintAttributes(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printAttributes(&out, struct {
		Vendor     string
		MaxQPs     int
		MaxSendSGE int
		SRQ        bool
	}{"x", 5, 16, true}))
	assert.Equal(t, "vendor        x\nmax QPs       5\nmax send SGE  16\nSRQ           yes\n", out.String())
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "X": "X", "QPs": "QPs", "MaxQPs": "max QPs", "MaxQPsPerPD": "max QPs per PD",
		"SRQLimit": "SRQ limit", "MaxSendSGE": "max send SGE", "Accesses": "accesses", "PDs": "PDs",
	} {
		assert.Equal(t, want, words(name))
	}
}

func TestInfo(t *testing.T) {
	text := rnic(t.Context(), "info")
	assert.Zero(t, text.status, text.stderr)
	assert.Greater(t, len(text.stdout), 100)

	asJSON := rnic(t.Context(), "info", "--json")
	assert.Zero(t, asJSON.status)
	var attributes map[string]any
	decode(t, asJSON.stdout, &attributes)
	assert.Equal(t, bytes.Count([]byte(text.stdout), []byte("\n")), len(attributes), "one line each")
	for name := range attributes {
		assert.Regexp(t, `^[a-z]+(_[a-z]+)*$`, name)
	}
	for _, name := range []string{"id", "max_qp", "max_write_sge", "max_ird_shared", "max_private_data", "crc_default"} {
		assert.Contains(t, attributes, name)
	}
}
