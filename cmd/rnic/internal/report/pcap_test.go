package report

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/dissect"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
)

func pcapOf(t *testing.T, marks []conformance.Mark) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, WritePcap(&out, conformance.Result{
		Case: "5.1/x", Verdict: conformance.Fail, Keys: []string{"RV-5.1-M1"}, Detail: "because", Trace: marks,
	}, time.Unix(1e9, 0)))
	return out.Bytes()
}

// What is captured can be decoded, with the FPDUs that were recorded.
func TestPcapIsReadable(t *testing.T) {
	for _, startup := range []bool{true, false} {
		for _, crc := range []bool{true, false} {
			for _, markers := range []bool{true, false} {
				p := newTape(t, 5, crc, markers)
				p.conversation(startup, crc, markers)
				var lines []string
				r, err := dissect.Read(bytes.NewReader(pcapOf(t, p.marks)), func(f dissect.FPDU) {
					lines = append(lines, f.Op+" "+f.Detail)
				})
				require.NoError(t, err)
				assert.False(t, r.Cut)
				require.Len(t, r.Connections, 1)
				c := r.Connections[0]
				assert.Zero(t, r.Violations(), "%+v", c.Streams)
				assert.Equal(t, []string{
					"Write STag 0x11223344 TO 0x1000",
					"Send QN 0 MSN 1 MO 0",
					"Terminate QN 2 MSN 1 MO 0 word 0x0102c000",
				}, lines)
				assert.Equal(t, "192.0.2.1:50001", c.Client)
				assert.Equal(t, "192.0.2.2:7174", c.Server)
				require.NotNil(t, c.MPA.Request)
				require.NotNil(t, c.MPA.Reply)
				assert.Equal(t, startup, c.MPA.Request.Rev == 2, "else it is made up")
				assert.Equal(t, crc, c.MPA.Request.CRC)
				assert.Equal(t, markers, c.MPA.Reply.Markers)
			}
		}
	}
}

// A Responder's stream, of which the target sends first, and one that is damaged.
func TestPcapOfOtherStreams(t *testing.T) {
	p := newTape(t, 5, true, false)
	p.whole = true
	p.startup(conformance.Received, mpa.Startup{Rev: 1, CRC: true})
	p.startup(conformance.Sent, mpa.Startup{Reply: true, Rev: 1, CRC: true})
	p.raw(2, conformance.Sent, []byte("GET / HTTP/1.1\r\n"))
	b := p.framers[conformance.Received].AppendFPDU(nil, nil, rawpeer.Send(1, nil).Octets())
	b[len(b)-1] ^= 1
	p.raw(1, conformance.Received, b)
	p.raw(3, conformance.Sent, make([]byte, 200_000)) // more than a packet holds
	p.end(conformance.Sent, "RST")
	r, err := dissect.Read(bytes.NewReader(pcapOf(t, p.marks)), nil)
	require.NoError(t, err)
	require.NotEmpty(t, r.Connections)
	assert.Equal(t, "192.0.2.2:7174", r.Connections[0].Client)
	assert.Equal(t, 1, r.Connections[0].Streams[0].CRC.Bad)
}

func TestPcapComments(t *testing.T) {
	p := newTape(t, 5, true, false)
	p.conversation(false, true, false)
	p.note("failed: " + strings.Repeat("x", 1<<17))
	r, err := pcapgo.NewNgReader(bytes.NewReader(pcapOf(t, p.marks)), pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	info := r.SectionInfo()
	assert.Equal(t, "5.1/x: FAIL\nRV-5.1-M1\nbecause", info.Comment)
	var comments []string
	times := 0
	for {
		_, ci, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		assert.Equal(t, int64(1e9), ci.Timestamp.Unix())
		comments = append(comments, opts.Comments...)
		times++
	}
	require.Len(t, comments, 4)
	assert.Contains(t, comments[1], "made up")
	assert.Contains(t, comments, "first a write")
	assert.Len(t, comments[3], 4096+len("..."))
	assert.Equal(t, 9, times, "handshake, made up startup, three FPDUs, FIN")
}

func TestHasStreams(t *testing.T) {
	assert.False(t, HasStreams(conformance.Result{Trace: []conformance.Mark{{Text: "x"}}}))
	assert.True(t, HasStreams(conformance.Result{Trace: []conformance.Mark{{Stream: 1}}}))
}
