package udwire

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func samples() []Setup {
	return []Setup{
		{Transaction: 0x0102030405060708, Private: []byte("who?")},
		{Transaction: 1, Private: bytes.Repeat([]byte{7}, MaxRequestPrivate)},
		{Reply: true, Transaction: 2, QPN: 0xc35001, QKey: 0x1234567, Private: bytes.Repeat([]byte{7}, MaxReplyPrivate)},
		{Reply: true, Transaction: 3, Status: SetupRejected, Private: []byte{}},
	}
}

// TestSetupFormat holds the octets of a Request and of a Reply, which are as many.
func TestSetupFormat(t *testing.T) {
	want := []string{
		"53525543" + "01000004" + "0102030405060708" + "0000000000000000" + "77686f3f",
		"", "53525543" + "01010088" + "0000000000000002" + "00c3500101234567" + "07",
		"53525543" + "01010200" + "0000000000000003" + "0000000000000000",
	}
	for i, s := range samples() {
		b := s.Append([]byte("before"))[6:]
		assert.Len(t, b, SetupSize)
		assert.Equal(t, want[i], hex.EncodeToString(b)[:len(want[i])])
		got, err := DecodeSetup(b)
		require.NoError(t, err)
		assert.Equal(t, s, got)
	}
}

// TestSetupRefuses each octet that is not as it was sent, other lengths, and what says nothing that there is.
func TestSetupRefuses(t *testing.T) {
	for _, s := range samples() {
		good := s.Append(nil)
		for i := range good {
			b := bytes.Clone(good)
			b[i] ^= 4
			_, err := DecodeSetup(b)
			require.Error(t, err, "octet %d", i)
			_, err = DecodeSetup(good[:i])
			require.Error(t, err, "%d octets", i)
		}
		_, err := DecodeSetup(append(good, 0))
		require.ErrorIs(t, err, ErrFormat)
	}
	for want, list := range map[error][]Setup{
		ErrNumbers: {{Reply: true}, {Reply: true, QPN: 1 << 24}, {Reply: true, QPN: 255}},
		ErrFormat:  {{QPN: 1 << 8}, {QKey: 1}, {Status: 1}, {Reply: true, Status: 1, QPN: 1 << 8}, {Reply: true, Status: 1, QKey: 1}},
		ErrLength:  {{Reply: true, QPN: 1 << 8, Private: make([]byte, MaxReplyPrivate+1)}},
	} {
		for _, s := range list {
			_, err := DecodeSetup(s.Append(nil))
			assert.ErrorIs(t, err, want, "%+v", s)
		}
	}
	d := sample()
	_, err := DecodeSetup(d.Append(nil))
	require.ErrorIs(t, err, ErrFormat)
}

// FuzzDecodeSetup: what is taken is what Append makes of it.
func FuzzDecodeSetup(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSetup(b)
		if err != nil {
			return
		}
		assert.Equal(t, b, s.Append(nil))
	})
}
