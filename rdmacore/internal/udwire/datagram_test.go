package udwire

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sample() Datagram {
	return Datagram{Dest: 0xc35001, Source: 0xc35102, QKey: 0x11111111, Immediate: 0xdeadbeef, HasImmediate: true, Payload: []byte("hello")}
}

// TestFormat holds the octets of one datagram.
func TestFormat(t *testing.T) {
	d := sample()
	b := d.Append(nil)
	assert.Equal(t, "535255440101000500c3500100c3510211111111deadbeef68656c6c6f", hex.EncodeToString(b[:len(b)-crcSize]))
	got, err := Decode(b)
	require.NoError(t, err)
	assert.Equal(t, d, got)
}

// TestDecodeRefuses what is not a datagram, and each octet that is not as it was sent.
func TestDecodeRefuses(t *testing.T) {
	d := sample()
	good := d.Append(nil)
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 4
		_, err := Decode(b)
		assert.Error(t, err, "octet %d", i)
		_, err = Decode(good[:i])
		assert.Error(t, err, "%d octets", i)
	}
	_, err := Decode(append(bytes.Clone(good), 0))
	require.ErrorIs(t, err, ErrLength)
	for _, change := range []func(*Datagram){
		func(d *Datagram) { d.Dest = 1 << 24 }, func(d *Datagram) { d.Source = 1 << 24 }, func(d *Datagram) { d.Source = 5 },
	} {
		d := sample()
		change(&d)
		_, err := Decode(d.Append(nil))
		require.ErrorIs(t, err, ErrNumbers)
	}
	d.Payload = make([]byte, MTU)
	b := d.Append(nil)
	assert.Len(t, b, MaxDatagram)
	_, err = Decode(b)
	require.NoError(t, err)
	d.Payload = make([]byte, MTU+1)
	_, err = Decode(d.Append(nil))
	require.ErrorIs(t, err, ErrLength)
}

func TestGRH(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, GRHSize+1)
	PutGRH(b, netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fe80::9"), 300)
	assert.Equal(t, "60000000012c1140"+"00000000000000000000ffff0a010203"+"fe800000000000000000000000000009"+"ff", hex.EncodeToString(b))
}

// FuzzDecode: what is taken is what Append makes of it.
func FuzzDecode(f *testing.F) {
	d := sample()
	f.Add(d.Append(nil))
	f.Add([]byte("SRUD"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Decode(b)
		if err != nil {
			return
		}
		assert.LessOrEqual(t, len(d.Payload), MTU)
		assert.Equal(t, b, d.Append(nil))
	})
}
