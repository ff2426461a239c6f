package fault

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// sends are the FPDUs of n Sends.
func sends(crc, markers bool, n int) (b []byte) {
	f := mpa.NewFramer(crc, markers)
	for i := range n {
		u := ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.Send), 0, ddp.QNSend, uint32(i+1), 0)
		b = f.AppendFPDU(b, u, make([]byte, 100*i))
	}
	return b
}

// through is what comes of b by a plan, fed in pieces of step octets.
func through(t testing.TB, plan string, crc, markers bool, b []byte, step int) (out []byte, struck []string) {
	in, err := New(MustParse(plan), func(s Strike) { struck = append(struck, s.String()) })
	require.NoError(t, err)
	f := in.open(0).flows[1]
	f.Begin(crc, markers)
	for len(b) > 0 {
		n := min(step, len(b))
		for _, p := range f.feed(b[:n]) {
			out = append(out, p.Octets...)
		}
		b = b[n:]
	}
	return append(out, f.Rest()...), struck
}

// TestNothingStrikes: what no rule strikes goes through as it came, with a bad CRC too, and the beginning of an FPDU at the end.
func TestNothingStrikes(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, markers := range []bool{false, true} {
			b := sends(crc, markers, 20)
			b = b[:len(b)-7]
			if crc {
				b[600] ^= 1
			}
			for _, step := range []int{1, 7, 1000, 1 << 20} {
				out, struck := through(t, "segment 1000: drop", crc, markers, b, step)
				assert.Equal(t, b, out)
				assert.Empty(t, struck)
			}
		}
	}
}

// TestNoIWARP goes through as it came.
func TestNoIWARP(t *testing.T) {
	b := append(sends(true, false, 3), strings.Repeat("\xff\xff other", 50)...)
	out, _ := through(t, "segment 2: double", true, false, b, 11)
	assert.Equal(t, len(b)+len(sends(true, false, 2))-len(sends(true, false, 1)), len(out))
}

// TestOctetsOfAnything: octets are counted from the first one of a stream that is no iWARP, as through a proxy, and have faults; a startup that is
// one, and segments, have none.
func TestOctetsOfAnything(t *testing.T) {
	const plan = "octet every 10: flip 0 behind crc\nsegment: drop"
	for _, step := range []int{1, 3, 100} {
		in, err := New(MustParse(plan), nil)
		require.NoError(t, err)
		f := in.open(0).flows[0]
		var out []byte
		for b := make([]byte, 100); len(b) > 0; b = b[min(step, len(b)):] {
			for _, p := range f.feed(b[:min(step, len(b))]) {
				out = append(out, p.Octets...)
			}
		}
		require.Len(t, out, 100)
		for i, b := range out {
			assert.Equal(t, i > 0 && i%10 == 0, b == 1, i)
		}
	}
	req, err := (&mpa.Startup{Rev: 1, Reply: true, Reject: true}).Append(nil)
	require.NoError(t, err)
	in, err := New(MustParse(plan), nil)
	require.NoError(t, err)
	assert.Equal(t, []interpose.Piece{{Octets: req}}, in.open(0).flows[0].feed(req))
}

// TestSameFaultsAgain: the same plan and seed strike the same, however the octets come.
func TestSameFaultsAgain(t *testing.T) {
	const plan = "seed 5\nmessage chance 0.3: flip behind crc\nmessage chance 0.2: double\noctet every 333 : flip behind crc"
	b := sends(true, true, 50)
	out, struck := through(t, plan, true, true, b, 1<<20)
	assert.Greater(t, len(struck), 20)
	for _, step := range []int{1, 100, 5000} {
		again, also := through(t, plan, true, true, b, step)
		assert.Equal(t, out, again)
		assert.Equal(t, struck, also)
	}
	other, _ := through(t, strings.Replace(plan, "5", "6", 1), true, true, b, 100)
	assert.NotEqual(t, out, other)
}

// TestFlipCRC: before the CRC it is right, behind it is not, and markers stay where they are.
func TestFlipCRC(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for plan, right := range map[string]bool{"segment 9: flip 77 before crc": true, "segment 9: flip 77 behind crc": false} {
			b := sends(true, markers, 12)
			out, _ := through(t, plan, true, markers, b, 900)
			d := mpa.NewDeframer(true, markers)
			d.SetBuffer(make([]byte, mpa.MinBuffer))
			require.Equal(t, len(out), d.Feed(out))
			for i := range 12 {
				u, ok, err := d.NextRaw()
				require.True(t, ok)
				require.NoError(t, err)
				assert.Equal(t, right || i != 8, u.CRC == u.Computed)
				assert.True(t, u.MarkersOK)
				if i == 8 {
					assert.Equal(t, byte(1<<5), u.ULPDU[18+9])
				}
			}
		}
	}
}

// TestRelay finds the FPDU stream behind the startup, with markers one way.
func TestRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, err := New(MustParse("segment 2 out: drop"), nil)
		require.NoError(t, err)
		client, c := net.Pipe()
		s, server := net.Pipe()
		go func() { assert.NoError(t, in.Relay(c, s)) }()
		req, err := (&mpa.Startup{Rev: 1, CRC: true}).Append(nil)
		require.NoError(t, err)
		rep, err := (&mpa.Startup{Rev: 1, Reply: true, Markers: true}).Append(nil)
		require.NoError(t, err)
		go func() { _, _ = server.Write(rep) }()
		go func() {
			_, _ = client.Write(req)
			_, _ = io.ReadFull(client, make([]byte, len(rep)))
			_, _ = client.Write(sends(true, true, 3))
			_ = client.Close()
		}()
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Equal(t, req, got[:len(req)])
		d := mpa.NewDeframer(true, true)
		d.SetBuffer(make([]byte, mpa.MinBuffer))
		d.Feed(got[len(req):])
		var msns []uint32
		for {
			u, ok, err := d.Next()
			require.NoError(t, err)
			if !ok {
				break
			}
			seg, _ := ddp.Parse(u)
			msns = append(msns, seg.MSN())
		}
		assert.Equal(t, []uint32{1, 3}, msns)
		_ = server.Close()
	})
}

func FuzzFlow(f *testing.F) {
	f.Add("segment 2: drop\noctet every 10: split\nsegment every 2: coalesce 3", sends(true, false, 5), uint8(3), true, false)
	f.Add("octet every 7: flip behind crc\nsegment: terminate 1", sends(true, true, 5), uint8(3), true, true)
	f.Fuzz(func(t *testing.T, plan string, b []byte, step uint8, crc, markers bool) {
		p, err := Parse(plan)
		if err != nil || len(p.Rules) > 20 || len(b) > 1<<16 {
			return
		}
		out, _ := through(t, plan, crc, markers, b, int(step)+1)
		_ = out
	})
}
