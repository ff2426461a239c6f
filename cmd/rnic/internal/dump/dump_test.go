package dump

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

const dumpCaptures = "../dissect/testdata"

// rnicDump runs `rnic dump` with args.
func rnicDump(t *testing.T, stdin []byte, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	r := clitest.RunInput(t.Context(), string(stdin), append([]string{"dump"}, args...)...)
	return r.Status, r.Stdout, r.Stderr
}

func TestDumpStatus(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk")
	require.NoError(t, os.WriteFile(junk, []byte("not a capture"), 0o600))
	clean, broken := filepath.Join(dumpCaptures, "rping.pcap"), filepath.Join(dumpCaptures, "term_norecv.pcap")
	tests := []struct {
		name   string
		args   []string
		status int
		stdout string // some of it; empty: nothing at all
		stderr string
	}{
		{"clean", []string{clean}, 0, "1 MPA connections, 0 violations", ""},
		{"a rule is broken", []string{broken}, 1, "#1 VIOLATION terminate-layout: RFC 5040 4.8", ""},
		{"a rule is broken, JSON", []string{"--json", broken}, 1, `"rule": "terminate-layout"`, ""},
		{"no such file", []string{junk + ".pcap"}, 2, "", "no such file"},
		{"not a capture", []string{junk}, 2, "", "not a readable pcap or pcapng file"},
		{"not a capture, JSON", []string{"--json", junk}, 2, `{"error":{"message":"`, "not a readable pcap or pcapng file"},
		{"no file", nil, 2, "", "argument FILE is missing"},
		{"two files", []string{clean, clean}, 2, "", "one too many"},
		{"unknown flag", []string{"--yaml", clean}, 2, "", "unknown flag"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			status, stdout, stderr := rnicDump(t, nil, tc.args...)
			assert.Equal(t, tc.status, status)
			if tc.stdout == "" {
				assert.Empty(t, stdout)
			}
			assert.Contains(t, stdout, tc.stdout)
			if tc.stderr == "" {
				assert.Empty(t, stderr)
			}
			assert.Contains(t, stderr, tc.stderr)
		})
	}
}

func TestDumpText(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(dumpCaptures, "rping-p2p.pcap"))
	require.NoError(t, err)
	status, stdout, _ := rnicDump(t, file, "-")
	assert.Zero(t, status)
	for _, want := range []string{
		"1 -> #1     Write            STag 0x00000001 TO 0x0, 14 octets L, crc zero\n",
		"1 <- #1     ReadRequest      QN 1 MSN 1 MO 0 read 64 from 0x7b975e00/0x55bb660fb370 to 0x83ed0500/0x55dce1e29550, 46 octets L, crc zero\n",
		"  request: rev 2, peer-to-peer, IRD 1, ORD 1, RTR write|read, 0 octets of private data\n",
		"  from 10.0.2.15:48851: 7 FPDUs (ReadResponse 2, Send 4, Write 1); crc 0 ok, 7 zero, 0 bad\n",
	} {
		assert.Contains(t, stdout, want)
	}
}

// The JSON has exactly the keys that programs rely on.
func TestDumpJSON(t *testing.T) {
	status, stdout, _ := rnicDump(t, nil, "--json", filepath.Join(dumpCaptures, "term_norecv.pcap"))
	assert.Equal(t, 1, status)
	var got any
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	keys := map[string]bool{}
	collectKeys(got, "", keys)
	for _, want := range strings.Fields(`
		.connections .connections.client .connections.server .connections.mpa
		.connections.mpa.request .connections.mpa.reply .connections.mpa.reply.rev .connections.mpa.reply.markers
		.connections.mpa.reply.crc .connections.mpa.reply.reject .connections.mpa.reply.enhanced
		.connections.mpa.reply.ird .connections.mpa.reply.ord .connections.mpa.reply.p2p
		.connections.mpa.reply.rtr .connections.mpa.reply.private_data_len
		.connections.streams .connections.streams.from .connections.streams.fpdus .connections.streams.ops
		.connections.streams.ops.Send .connections.streams.ops.Terminate
		.connections.streams.crc .connections.streams.crc.ok .connections.streams.crc.zero .connections.streams.crc.bad
		.connections.streams.incomplete .connections.streams.terminates .connections.streams.terminates.fpdu
		.connections.streams.terminates.raw .connections.streams.terminates.layer .connections.streams.terminates.type
		.connections.streams.terminates.code .connections.streams.terminates.text
		.connections.streams.violations .connections.streams.violations.fpdu
		.connections.streams.violations.rule .connections.streams.violations.text`) {
		assert.True(t, keys[want], "no %s", want)
		delete(keys, want)
	}
	for k := range keys {
		assert.Contains(t, k, ".mpa.request.", "not in the contract")
	}
}

// collectKeys gathers the paths of all object keys in v, arrays left out.
func collectKeys(v any, path string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			into[path+"."+k] = true
			collectKeys(e, path+"."+k, into)
		}
	case []any:
		for _, e := range v {
			collectKeys(e, path, into)
		}
	}
}
