// Package dissect finds the MPA connections in a packet capture, decodes their
// startup frames and FPDUs, and reports every MUST of RFC 5040, 5041, 5044,
// 6581 and 7306 that the capture proves broken.
//
// "Proves" is meant strictly. A capture can lack packets, end early, or have
// been taken at either end; where that leaves a doubt, nothing is reported.
// After an FPDU that broke a rule, what depended on it is taken as the next
// FPDU has it, so that one fault is reported once.
//
// The journey of a packet, file by file: capture.go reads it, flow.go finds its
// connection, tcp.go puts its octets in order, conn.go carries them through MPA
// startup, whose frames startup.go judges, stream.go cuts FPDUs, gap.go finds the
// next one behind octets that are missing, and message.go and read.go keep what
// DDP and RDMAP demand from one FPDU to the next. rules.go names the rules.
//
// A stream that was recorded whole needs none of that, and may be of any kind: cut.go takes it apart into startup frames,
// FPDUs and, by vi.go, segments of VI/TCP. parts.go says what each octet of them is, for both.
package dissect

import "time"

// Report is what a capture holds. Its JSON form is the output of
// `rnic dump --json`.
type Report struct {
	Connections []*Connection `json:"connections"`
	// Cut says that the file ends within a packet.
	Cut bool `json:"-"`
	// Short is how many packets were not captured whole, and Snap how many octets of the longest of them were.
	Short int `json:"short_packets,omitempty"`
	Snap  int `json:"snap,omitempty"`
	// Lost is how many packets the capture says that it lacks.
	Lost uint64 `json:"lost_packets,omitempty"`
}

// Violations counts the violations of all streams.
func (r *Report) Violations() int {
	n := 0
	for _, c := range r.Connections {
		for _, s := range c.Streams {
			n += len(s.Violations)
		}
	}
	return n
}

// Connection is a TCP connection on which MPA started. Client is MPA's
// Initiator, which need not be the end that opened the TCP connection.
type Connection struct {
	Client string `json:"client"` // address:port
	Server string `json:"server"`
	MPA    struct {
		Request *Startup `json:"request"` // nil: not in the capture, or malformed
		Reply   *Startup `json:"reply"`
	} `json:"mpa"`
	Streams [2]*StreamReport `json:"streams"` // from the client, from the server
}

// Startup is a Request or Reply frame (RFC 5044 7.1.1, RFC 6581 9).
type Startup struct {
	Rev            uint8    `json:"rev"`
	Markers        bool     `json:"markers"`
	CRC            bool     `json:"crc"`
	Reject         bool     `json:"reject"`
	Enhanced       bool     `json:"enhanced"`
	IRD            *uint16  `json:"ird"` // nil if not enhanced; 0x3FFF: not negotiated
	ORD            *uint16  `json:"ord"`
	P2P            bool     `json:"p2p"`
	RTR            []string `json:"rtr"`              // of "send", "write", "read"
	PrivateDataLen int      `json:"private_data_len"` // octets, without the enhanced word
}

// StreamReport is one direction of a connection. FPDUs count from 1.
type StreamReport struct {
	From  string         `json:"from"`
	FPDUs int            `json:"fpdus"`
	Ops   map[string]int `json:"ops"` // FPDUs by opcode
	CRC   struct {
		OK   int `json:"ok"`   // the field holds the right CRC
		Zero int `json:"zero"` // it is zero, and that is not the right CRC
		Bad  int `json:"bad"`
	} `json:"crc"`
	Incomplete int         `json:"incomplete"` // octets of a last partial FPDU
	Gaps       []Gap       `json:"gaps,omitempty"`
	Terminates []Terminate `json:"terminates"`
	Violations []Violation `json:"violations"`
}

// Gap is where octets of a stream are not in the capture: a packet is missing, or was not captured whole.
type Gap struct {
	FPDU    int    `json:"fpdu"`    // the last one before it
	Missing uint64 `json:"missing"` // octets
	// Skipped are octets around it that belong to no whole FPDU; Found says that there was one behind it.
	Skipped uint64 `json:"skipped"`
	Found   bool   `json:"found"`
}

// Terminate is a Terminate message. Layer, Type and Code are the word's fields
// where RFC 5040 4.8 has them; Text says so if the sender meant them otherwise.
type Terminate struct {
	FPDU  int    `json:"fpdu"`
	Raw   string `json:"raw"` // the control word, 8 hex digits
	Layer uint8  `json:"layer"`
	Type  uint8  `json:"type"`
	Code  uint8  `json:"code"`
	Text  string `json:"text"`
}

// Violation is a MUST that was broken. FPDU is 0 for a startup frame.
type Violation struct {
	FPDU int    `json:"fpdu"`
	Rule string `json:"rule"`
	Text string `json:"text"`
}

// FPDU describes one FPDU to a visitor, in the order of the capture.
type FPDU struct {
	Connection int // from 1, in the order in which connections start MPA
	FromClient bool
	Number     int // within its direction, from 1
	Op         string
	Detail     string // STag and TO, or QN, MSN and MO, and what the message says
	Octets     int    // of ULPDU
	Last       bool
	CRC        string // "ok", "zero" or "bad"

	// Packet is the number of the one with which it was whole, from 1, and Time when that was captured.
	Packet int
	Time   time.Time
	// Fields are those of its headers; Payload what is behind them, the visitor's only until it returns.
	Fields  []Field
	Payload []byte
}
