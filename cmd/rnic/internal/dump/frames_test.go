package dump

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rping(t *testing.T) []byte {
	b, err := os.ReadFile(filepath.Join(dumpCaptures, "rping-crc.pcap"))
	require.NoError(t, err)
	return b
}

func TestFrames(t *testing.T) {
	status, text, _ := rnicDump(t, rping(t), "--frames", "-")
	assert.Zero(t, status)
	for _, want := range []string{"    packet 8, 20", "RDMA Read Message Size", "    STag                           0x", "    00000000  "} {
		assert.Contains(t, text, want)
	}
	status, text, _ = rnicDump(t, rping(t), "--frames", "--json", "-")
	assert.Zero(t, status)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines[:len(lines)-1] {
		var f frame
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		assert.NotEmpty(t, f.Fields["Opcode"])
		assert.Positive(t, f.Packet)
		assert.Equal(t, "ok", f.CRC)
		assert.NotEmpty(t, f.Payload, "rping sends no empty ones")
	}
	assert.Contains(t, lines[len(lines)-1], `"connections":[{`)
}

// TestGapIsSaid: of a capture that lacks a packet, and of one of short packets.
func TestGapIsSaid(t *testing.T) {
	whole := rping(t)
	var packets [][]byte
	for b := whole[24:]; len(b) > 0; {
		n := 16 + int(b[8]) + int(b[9])<<8
		packets = append(packets, b[:n])
		b = b[n:]
	}
	said := 0
	for i := range packets {
		cut := bytes.Clone(whole[:24])
		for k, p := range packets {
			if k != i {
				cut = append(cut, p...)
			}
		}
		_, text, _ := rnicDump(t, cut, "-")
		if strings.Contains(text, "octets are not in the capture; the next FPDU was found") {
			said++
		}
	}
	assert.Greater(t, said, 5)

	short := bytes.Clone(whole[:24])
	for i, p := range packets {
		n := len(p) - 16
		if i > 6 { // the startup is whole
			n = min(n, 70)
		}
		p = bytes.Clone(p[:16+n])
		p[8], p[9] = byte(n), byte(n>>8)
		short = append(short, p...)
	}
	_, text, _ := rnicDump(t, short, "-")
	assert.Contains(t, text, "packets were not captured whole, 70 octets of them at most")
	assert.Contains(t, text, "GAP ")
}

// TestFollow: what is written to the file is shown as it comes.
func TestFollow(t *testing.T) {
	whole := rping(t)
	half := len(whole) * 2 / 3
	f, err := os.Create(filepath.Join(t.TempDir(), "grows.pcap"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Write(whole[:half])
	require.NoError(t, err)
	in, err := os.Open(f.Name())
	require.NoError(t, err)
	defer in.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := dump(w, "it", following{in, ctx}, options{follow: true})
		_ = w.Close()
		done <- err
	}()
	lines := bufio.NewScanner(r)
	fpdus := 0
	for fpdus < 3 && lines.Scan() {
		fpdus++
	}
	_, err = f.Write(whole[half:])
	require.NoError(t, err)
	for lines.Scan() {
		if strings.Contains(lines.Text(), " crc ok") {
			if fpdus++; fpdus == 12 {
				cancel()
			}
		}
	}
	assert.GreaterOrEqual(t, fpdus, 12)
	assert.NoError(t, <-done)
}
