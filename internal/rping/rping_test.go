package rping_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/rping"
	"github.com/softrnic/softrnic/wr"
)

// The first Send of the client in a capture of rdma-core's rping over siw.
const capturedMessage = "0000558aed21b3707f1b540000000040"

var capturedBuffer = rping.Buffer{
	Remote: wr.Remote{STag: 0x7f1b5400, TO: 0x0000558aed21b370},
	Length: 64,
}

func TestMessageOfCapture(t *testing.T) {
	want, err := hex.DecodeString(capturedMessage)
	require.NoError(t, err)

	got := make([]byte, rping.MessageSize)
	capturedBuffer.Put(got)
	assert.Equal(t, want, got)

	parsed, err := rping.Parse(want)
	require.NoError(t, err)
	assert.Equal(t, capturedBuffer, parsed)
}

func TestParseRefusesOtherLengths(t *testing.T) {
	msg := make([]byte, 2*rping.MessageSize)
	for n := range msg {
		_, err := rping.Parse(msg[:n])
		if n == rping.MessageSize {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, "want 16", "length %d", n)
		}
	}
}

func TestFill(t *testing.T) {
	tests := []struct {
		name  string
		size  int
		round int
		want  string
	}{
		// The first two are the 64 octets of the capture.
		{"captured, round 0", 64, 0, "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\x00"},
		{"captured, round 1", 64, 1, "rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrs\x00"},
		{"last start", 17, 57, "rdma-ping-57: zA\x00"},
		{"start wraps", 17, 58, "rdma-ping-58: AB\x00"},
		{"shorter than the text", 5, 3, "rdma\x00"},
		{"one octet", 1, 3, "\x00"},
		{"none", 0, 3, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			buf := bytes.Repeat([]byte{0xff}, tt.size)
			rping.Fill(buf, tt.round)
			assert.Equal(t, tt.want, string(buf))
		})
	}
}

func TestText(t *testing.T) {
	assert.Equal(t, "ab", string(rping.Text([]byte("ab\x00cd"))))
	assert.Equal(t, "ab", string(rping.Text([]byte("ab"))))
	assert.Empty(t, rping.Text(nil))
}

// FuzzParse checks that a message that parses is rebuilt to the same octets.
func FuzzParse(f *testing.F) {
	msg, _ := hex.DecodeString(capturedMessage)
	f.Add(msg)
	f.Add(msg[:15])
	f.Add([]byte(strings.Repeat("\xff", rping.MessageSize)))
	f.Fuzz(func(t *testing.T, in []byte) {
		b, err := rping.Parse(in)
		if err != nil {
			return
		}
		out := make([]byte, rping.MessageSize)
		b.Put(out)
		assert.Equal(t, in, out)
	})
}
