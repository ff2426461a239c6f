package mpa

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	reqHex = "4d504120494420526571204672616d65"
	repHex = "4d504120494420526570204672616d65"
)

// goldenFrames: G vectors are the project's wire reference's, siw frames are
// from captures of Linux Soft-iWARP.
var goldenFrames = []struct {
	name  string
	frame string
	want  Startup
}{
	{"G12", reqHex + "40010000", Startup{CRC: true, Rev: 1}},
	{"G13", reqHex + "50020006 8004c004 7879", Startup{CRC: true, Rev: 2, Enhanced: true,
		IRD: 4, ORD: 4, P2P: true, RTR: RTRWrite | RTRRead, PrivateData: []byte("xy")}},
	{"G14", repHex + "50020004 80044004", Startup{Reply: true, CRC: true, Rev: 2, Enhanced: true,
		IRD: 4, ORD: 4, P2P: true, RTR: RTRRead}},
	{"siw rping-crc Request", reqHex + "50020004 00010001", Startup{CRC: true, Rev: 2, Enhanced: true, IRD: 1, ORD: 1}},
	{"siw rping-crc Reply", repHex + "50020004 00010001", Startup{Reply: true, CRC: true, Rev: 2, Enhanced: true, IRD: 1, ORD: 1}},
	{"siw rping-p2p Request", reqHex + "10020004 8001c001", Startup{Rev: 2, Enhanced: true,
		IRD: 1, ORD: 1, P2P: true, RTR: RTRWrite | RTRRead}},
	{"siw rping-p2p Reply", repHex + "10020004 80018001", Startup{Reply: true, Rev: 2, Enhanced: true,
		IRD: 1, ORD: 1, P2P: true, RTR: RTRWrite}},
	{"siw rping-v1 Request", reqHex + "00010000", Startup{Rev: 1}},
	{"siw rping-v1 Reply", repHex + "00010000", Startup{Reply: true, Rev: 1}},
	{"every flag", repHex + "f0020004 ffffffff", Startup{Reply: true, Markers: true, CRC: true, Reject: true,
		Rev: 2, Enhanced: true, IRD: NotNegotiated, ORD: NotNegotiated, P2P: true, RTR: rtrAll}},
	{"a higher revision", reqHex + "00070001 41", Startup{Rev: 7, PrivateData: []byte("A")}},
}

func TestStartupGolden(t *testing.T) {
	for _, g := range goldenFrames {
		t.Run(g.name, func(t *testing.T) {
			frame := unhex(t, g.frame)
			got, err := g.want.Append([]byte("before"))
			require.NoError(t, err)
			assert.Equal(t, append([]byte("before"), frame...), got)

			parsed, n, err := ParseStartup(append(frame, "FPDUs"...))
			require.NoError(t, err)
			assert.Equal(t, len(frame), n)
			if len(parsed.PrivateData) == 0 {
				parsed.PrivateData = nil
			}
			assert.Equal(t, g.want, parsed)

			for i := range frame {
				_, need, err := ParseStartup(frame[:i])
				require.ErrorIs(t, err, ErrShort, "prefix of %d", i)
				require.Greater(t, need, i)
				require.LessOrEqual(t, need, len(frame), "to ask for more would read past the frame")
			}
		})
	}
}

func TestStartupIgnored(t *testing.T) {
	for _, tc := range []struct {
		name  string
		frame string
		want  Startup
	}{
		{"reserved flags", reqHex + "0f010000", Startup{Rev: 1}},
		{"R in a Request", reqHex + "20010000", Startup{Rev: 1}},
		{"S with revision 1", reqHex + "10010004 ffffffff", Startup{Rev: 1, PrivateData: []byte("\xff\xff\xff\xff")}},
		{"S with revision 1, no data", reqHex + "10010000", Startup{Rev: 1}},
		{"B, C and D without A", reqHex + "10020004 4003c002", Startup{Rev: 2, Enhanced: true, IRD: 3, ORD: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, err := ParseStartup(unhex(t, tc.frame))
			require.NoError(t, err)
			if len(got.PrivateData) == 0 {
				got.PrivateData = nil
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestStartupMalformed(t *testing.T) {
	for _, tc := range []struct{ name, frame string }{
		{"another protocol, at the first octet", "47"},
		{"key differs in the last octet", reqHex[:30] + "64"},
		{"key of neither kind", "4d504120494420526571"[:18] + "72"},
		{"PD_Length 513", reqHex + "00010201"},
		{"PD_Length 65535", repHex + "0002ffff"},
		{"PD_Length too short for S", reqHex + "10020003 000000"},
		{"PD_Length 0 with S", reqHex + "10020000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := ParseStartup(unhex(t, tc.frame))
			var e *Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, CodeStartup, e.Code)
			assert.NotEmpty(t, e.Detail)
		})
	}
}

func TestStartupAppendLimits(t *testing.T) {
	data := bytes.Repeat([]byte("d"), 513)
	for _, tc := range []struct {
		name string
		s    Startup
		ok   bool
	}{
		{"512", Startup{Rev: 1, PrivateData: data[:512]}, true},
		{"513", Startup{Rev: 1, PrivateData: data}, false},
		{"508 enhanced", Startup{Rev: 2, Enhanced: true, PrivateData: data[:508]}, true},
		{"509 enhanced", Startup{Rev: 2, Enhanced: true, PrivateData: data[:509]}, false},
		{"enhanced needs revision 2", Startup{Rev: 1, Enhanced: true}, false},
		{"IRD of 15 bits", Startup{Rev: 2, Enhanced: true, IRD: 0x4000}, false},
		{"ORD of 15 bits", Startup{Rev: 2, Enhanced: true, ORD: 0x4000}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.s.Append(nil)
			if !tc.ok {
				assert.Error(t, err)
				assert.Empty(t, got)
				return
			}
			require.NoError(t, err)
			parsed, n, err := ParseStartup(got)
			require.NoError(t, err)
			assert.Equal(t, len(got), n)
			assert.Equal(t, tc.s, parsed)
		})
	}
	request, err := (&Startup{Rev: 1, Reject: true}).Append(nil)
	require.NoError(t, err)
	assert.Zero(t, request[16], "a Request has R 0")
	clientServer, err := (&Startup{Rev: 2, Enhanced: true, RTR: rtrAll}).Append(nil)
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 4), clientServer[20:], "A=0 has B, C and D 0")
}

func TestStrings(t *testing.T) {
	assert.Equal(t, "none", RTR(0).String())
	assert.Equal(t, "Send|Write|Read", rtrAll.String())
	assert.Equal(t, "Write", RTRWrite.String())
	assert.Equal(t, "Initiator", Initiator.String())
	assert.Equal(t, "Responder", Responder.String())
	assert.Equal(t, "Role(9)", Role(9).String())
	seen := map[string]bool{}
	for c := CodeLLPLost; c <= CodeRTR; c++ {
		assert.False(t, strings.HasPrefix(c.String(), "Code("), "0x%x", uint16(c))
		seen[c.String()] = true
	}
	assert.Len(t, seen, 7)
	assert.Equal(t, "Code(0x2008)", Code(0x2008).String())
	assert.Equal(t, "mpa: CRC mismatch", (&Error{Code: CodeCRC}).Error())
	assert.Equal(t, "mpa: TCP connection lost: reading: EOF", (&Error{Code: CodeLLPLost, Detail: "reading", Err: io.EOF}).Error())
}

func FuzzStartup(f *testing.F) {
	for _, g := range goldenFrames {
		f.Add(unhex(f, g.frame))
	}
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, n, err := ParseStartup(b)
		if errors.Is(err, ErrShort) {
			require.Greater(t, n, len(b))
			require.LessOrEqual(t, n, startupHeadLen+MaxPrivateData)
			return
		}
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			return
		}
		require.LessOrEqual(t, n, len(b))
		// What was parsed can be sent, and says the same again.
		again, err := s.Append(nil)
		require.NoError(t, err)
		require.Len(t, again, n)
		s2, _, err := ParseStartup(again)
		require.NoError(t, err)
		require.Equal(t, s, s2)
	})
}
