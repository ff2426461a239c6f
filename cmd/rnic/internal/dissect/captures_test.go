package dissect

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the expected reports")

// expected are the rules that Linux siw breaks in the captures of it: its
// Terminate layout, and, in client-server mode, a Responder that sends first.
var expected = map[string][]string{
	"term_norecv":        {"server#1 terminate-layout"},
	"term_read_bounds":   {"server#1 terminate-layout"},
	"term_write_badstag": {"server#1 terminate-layout"},
	"ucmatose":           {"server#1 first-fpdu"},
}

// captures are the names of the siw captures under testdata.
func captures(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.pcap")
	require.NoError(t, err)
	require.Len(t, files, 12)
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".pcap")
	}
	return files
}

func capture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".pcap"))
	require.NoError(t, err)
	return b
}

func allBroken(r *Report) []string {
	var out []string
	for _, c := range r.Connections {
		out = append(out, broken(c)...)
	}
	return out
}

func TestCaptures(t *testing.T) {
	for _, name := range captures(t) {
		t.Run(name, func(t *testing.T) {
			var lines int
			r, err := Read(bytes.NewReader(capture(t, name)), func(FPDU) { lines++ })
			require.NoError(t, err)
			assert.Equal(t, expected[name], allBroken(r))
			assert.False(t, r.Cut)
			total := 0
			for _, c := range r.Connections {
				for _, s := range c.Streams {
					total += s.FPDUs
					assert.Equal(t, s.FPDUs, s.CRC.OK+s.CRC.Zero+s.CRC.Bad)
				}
			}
			assert.Equal(t, total, lines, "one visit an FPDU")

			got, err := json.MarshalIndent(r, "", "  ")
			require.NoError(t, err)
			golden := filepath.Join("testdata", name+".json")
			if *update {
				require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, strings.TrimSpace(string(want)), string(got))
		})
	}
}

// packets are the packets of a capture.
func packets(t testing.TB, name string) (layers.LinkType, [][]byte) {
	t.Helper()
	p, err := pcapgo.NewReader(bytes.NewReader(capture(t, name)))
	require.NoError(t, err)
	var out [][]byte
	for {
		b, _, err := p.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return p.LinkType(), out
		}
		require.NoError(t, err)
		out = append(out, b)
	}
}

// edited decodes a capture after edit changed its packets.
func edited(t testing.TB, name string, edit func([][]byte) [][]byte) *Report {
	t.Helper()
	s := newScript(t)
	s.link, s.packets = packets(t, name)
	s.packets = edit(s.packets)
	return s.read()
}

func without(p [][]byte, i int) [][]byte {
	return append(append([][]byte(nil), p[:i]...), p[i+1:]...)
}

// A capture that lacks a packet, begins late, or ends early proves nothing that
// the whole one does not.
func TestDamagedCapturesProveNoMore(t *testing.T) {
	for _, name := range captures(t) {
		t.Run(name, func(t *testing.T) {
			_, all := packets(t, name)
			may := append([]string{}, expected[name]...)
			for i := range all {
				assert.Subset(t, may, allBroken(edited(t, name, func(p [][]byte) [][]byte { return without(p, i) })), "without packet %d", i+1)
				assert.Subset(t, may, allBroken(edited(t, name, func(p [][]byte) [][]byte { return p[:i] })), "the first %d packets", i)
				assert.Subset(t, may, allBroken(edited(t, name, func(p [][]byte) [][]byte { return p[i:] })), "from packet %d on", i+1)
			}
		})
	}
}

// Retransmissions change nothing, nor does a segment that overtakes the next
// one of its direction.
func TestReorderedCaptures(t *testing.T) {
	for _, name := range captures(t) {
		t.Run(name, func(t *testing.T) {
			whole, err := Read(bytes.NewReader(capture(t, name)), nil)
			require.NoError(t, err)
			_, all := packets(t, name)
			for i := range all {
				again := edited(t, name, func(p [][]byte) [][]byte {
					return append(append(append([][]byte(nil), p[:i+1]...), p[i/2]), p[i+1:]...)
				})
				assert.Equal(t, whole, again, "packet %d again after %d", i/2+1, i+1)
				if i+1 == len(all) {
					break
				}
				swapped := edited(t, name, func(p [][]byte) [][]byte {
					p = append([][]byte(nil), p...)
					p[i], p[i+1] = p[i+1], p[i]
					return p
				})
				assert.Subset(t, append([]string{}, expected[name]...), allBroken(swapped), "packets %d and %d swapped", i+1, i+2)
			}
		})
	}
}

// Each octet of every FPDU is covered by the CRC, if that is in use.
func TestFlippedOctets(t *testing.T) {
	const name = "rping-crc"
	_, all := packets(t, name)
	flips := 0
	for i, p := range all {
		const tcp = 14 + 20 // Ethernet, IPv4 without options
		payload := tcp + int(p[tcp+12]>>4)*4
		if payload == len(p) || bytes.Contains(p, []byte("MPA ID")) {
			continue // a bare acknowledgement, or a startup frame
		}
		// Every FPDU here has its segment, and the length field leads it.
		for at := payload + 2; at < len(p); at += 3 {
			r := edited(t, name, func(ps [][]byte) [][]byte {
				ps[i][at] ^= 0x10
				return ps
			})
			flips++
			require.Len(t, allBroken(r), 1, "packet %d, octet %d", i+1, at)
			assert.Contains(t, allBroken(r)[0], "mpa-crc")
		}
	}
	assert.Greater(t, flips, 100)
}

func TestCutFile(t *testing.T) {
	whole := capture(t, "rping")
	cut := 0
	for n := range len(whole) {
		r, err := Read(bytes.NewReader(whole[:n]), nil)
		if n < 24 {
			require.Error(t, err, "%d octets", n)
			continue
		}
		assert.Empty(t, allBroken(r), "%d octets", n)
		cut += digit(r.Cut)
		if err != nil { // the first packet is not whole
			assert.Less(t, n, 200)
		}
	}
	assert.Greater(t, cut, 1000)
}

func TestUnreadable(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty": {}, "text": []byte("this is not a capture, though it is long enough for one"),
		"header of pcapng alone": {0x0A, 0x0D, 0x0D, 0x0A, 0x1C, 0, 0, 0},
	} {
		_, err := Read(bytes.NewReader(b), nil)
		assert.ErrorContains(t, err, "not a readable pcap or pcapng file", name)
	}
	s := newScript(t)
	s.plain()
	s.link = layers.LinkTypeIEEE802_11
	_, err := Read(bytes.NewReader(s.pcap()), nil)
	assert.ErrorContains(t, err, "link type 105")
}

func FuzzPcap(f *testing.F) {
	for _, name := range captures(f) {
		b := capture(f, name)
		f.Add(b[:min(len(b), 4096)])
	}
	s := newScript(f)
	s.start(startupWithMarkers, startupWithMarkers)
	s.fpdu(client, send(1, make([]byte, 600)...))
	f.Add(s.pcap())
	f.Add(s.pcapng())
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
			return // gzip: a small file may hold a huge capture, which is its right
		}
		fpdus := 0
		r, err := Read(bytes.NewReader(b), func(FPDU) { fpdus++ })
		require.NotNil(t, r)
		_ = err
		require.LessOrEqual(t, fpdus*6, len(b), "an FPDU has 6 octets at least")
		_, err = json.Marshal(r)
		require.NoError(t, err)
	})
}
