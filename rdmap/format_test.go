package rdmap_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmap"
)

func TestReadRequestGolden(t *testing.T) {
	b := parse(t, goldenULPDU(t, "G5")).Payload()
	h, ok := rdmap.ParseReadRequest(b)
	require.True(t, ok)
	assert.Equal(t, rdmap.ReadRequestHeader{
		SinkSTag: 0x100, SinkTO: 0x2000, Size: 16, SourceSTag: 0x200, SourceTO: 0x3000,
	}, h)
	assert.Equal(t, b, h.Append(nil))
}

// Every field differs from every other, so a wrong offset cannot hide.
func TestReadRequestFields(t *testing.T) {
	h := rdmap.ReadRequestHeader{
		SinkSTag: 0xa1a2a3a4, SinkTO: 0xb1b2b3b4b5b6b7b8, Size: 0xc1c2c3c4,
		SourceSTag: 0xd1d2d3d4, SourceTO: 0xe1e2e3e4e5e6e7e8,
	}
	b := h.Append([]byte{0xee})
	assert.Equal(t, unhex(t, "ee a1a2a3a4 b1b2b3b4b5b6b7b8 c1c2c3c4 d1d2d3d4 e1e2e3e4e5e6e7e8"), b)
	for n := range rdmap.ReadRequestSize {
		_, ok := rdmap.ParseReadRequest(b[1 : 1+n])
		assert.False(t, ok, "%d octets", n)
	}
	_, ok := rdmap.ParseReadRequest(b)
	assert.False(t, ok, "29 octets")
}

func TestReadRequestAdvanced(t *testing.T) {
	h := rdmap.ReadRequestHeader{SinkSTag: 1, SinkTO: 10, Size: 5000, SourceSTag: 2, SourceTO: 20}
	assert.Equal(t, rdmap.ReadRequestHeader{
		SinkSTag: 1, SinkTO: 2058, Size: 2952, SourceSTag: 2, SourceTO: 2068,
	}, h.Advanced(2048), "the example of RFC 5040 4.8")
	assert.Equal(t, h, h.Advanced(0))
	assert.Zero(t, h.Advanced(6000).Size)
	assert.Equal(t, uint64(5010), h.Advanced(6000).SinkTO)
}

func TestImmediate(t *testing.T) {
	b := parse(t, goldenULPDU(t, "G9")).Payload()
	v, ok := rdmap.ParseImmediate(b)
	require.True(t, ok)
	assert.Equal(t, uint64(0xdeadbeef), v)
	assert.Equal(t, b, rdmap.AppendImmediate(nil, v))
	for n := range 12 {
		_, ok := rdmap.ParseImmediate(make([]byte, n))
		assert.Equal(t, n == 8, ok, "%d octets", n)
	}
}

func TestAtomicGolden(t *testing.T) {
	b := parse(t, goldenULPDU(t, "G10")).Payload()
	h, ok := rdmap.ParseAtomicRequest(b)
	require.True(t, ok)
	assert.Equal(t, rdmap.AtomicRequestHeader{
		Op: rdmap.FetchAdd, RequestID: 0x55, STag: 0x100, TO: 0x1008, Data: 1, CompareMask: ^uint64(0),
	}, h)
	assert.Equal(t, b, h.Append(nil))

	b = parse(t, goldenULPDU(t, "G11")).Payload()
	r, ok := rdmap.ParseAtomicResponse(b)
	require.True(t, ok)
	assert.Equal(t, rdmap.AtomicResponseHeader{RequestID: 0x55, Value: 41}, r)
	assert.Equal(t, b, r.Append(nil))
}

func TestAtomicFields(t *testing.T) {
	h := rdmap.AtomicRequestHeader{
		Op: rdmap.CmpSwap, RequestID: 0xa1a2a3a4, STag: 0xb1b2b3b4, TO: 0xc1c2c3c4c5c6c7c8,
		Data: 0xd1d2d3d4d5d6d7d8, Mask: 0xe1e2e3e4e5e6e7e8,
		Compare: 0xf1f2f3f4f5f6f7f8, CompareMask: 0x0102030405060708,
	}
	b := h.Append(nil)
	assert.Equal(t, unhex(t, "00000002 a1a2a3a4 b1b2b3b4 c1c2c3c4c5c6c7c8 d1d2d3d4d5d6d7d8 e1e2e3e4e5e6e7e8 f1f2f3f4f5f6f7f8 0102030405060708"), b)
	got, ok := rdmap.ParseAtomicRequest(b)
	require.True(t, ok)
	assert.Equal(t, h, got)

	b[0], b[1], b[2], b[3] = 0xff, 0xff, 0xff, 0xf2
	got, ok = rdmap.ParseAtomicRequest(b)
	require.True(t, ok)
	assert.Equal(t, rdmap.CmpSwap, got.Op, "reserved bits are ignored")

	for n := range b {
		_, ok := rdmap.ParseAtomicRequest(b[:n])
		assert.False(t, ok, "%d octets", n)
	}
	for n := range 16 {
		_, ok := rdmap.ParseAtomicResponse(make([]byte, n))
		assert.Equal(t, n == 12, ok, "%d octets", n)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(unhex(f, "00000100 0000000000002000 00000010 00000200 0000000000003000"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := rdmap.ParseReadRequest(b)
		require.Equal(t, len(b) == rdmap.ReadRequestSize, ok)
		if ok {
			require.Equal(t, b, h.Append(nil))
		}
	})
}
