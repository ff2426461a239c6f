package dump

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/softrnic/softrnic/cmd/rnic/internal/dissect"
)

// frame is an FPDU in JSON.
type frame struct {
	Connection int               `json:"connection"`
	From       string            `json:"from"` // client or server
	FPDU       int               `json:"fpdu"`
	Packet     int               `json:"packet"`
	Time       string            `json:"time"`
	CRC        string            `json:"crc"`
	Octets     int               `json:"octets"`
	Fields     map[string]string `json:"fields"`
	Payload    string            `json:"payload"` // in hex: what is behind the DDP header
}

const timeFormat = "2006-01-02T15:04:05.000000000Z"

func frameOf(f dissect.FPDU) frame {
	j := frame{
		Connection: f.Connection, From: "client", FPDU: f.Number, Packet: f.Packet, Time: f.Time.UTC().Format(timeFormat),
		CRC: f.CRC, Octets: f.Octets, Fields: map[string]string{}, Payload: hex.EncodeToString(f.Payload),
	}
	if !f.FromClient {
		j.From = "server"
	}
	for _, x := range f.Fields {
		j.Fields[x.Name] = x.Value
	}
	return j
}

// printFrame lists an FPDU with all there is to know.
func printFrame(w io.Writer, f dissect.FPDU) {
	fmt.Fprintf(w, "%s\n    packet %d, %s\n", fpduLine(f), f.Packet, f.Time.UTC().Format(timeFormat))
	for _, x := range f.Fields {
		fmt.Fprintf(w, "    %-30s %s\n", x.Name, x.Value)
	}
	for line := range strings.Lines(hex.Dump(f.Payload)) {
		fmt.Fprint(w, "    ", line)
	}
}

// gapText describes a gap in the capture.
func gapText(g dissect.Gap) string {
	where := "in or before the startup"
	if g.FPDU > 0 || g.Found {
		where = fmt.Sprintf("behind #%d", g.FPDU)
	}
	s := fmt.Sprintf("GAP %s: %d octets are not in the capture", where, g.Missing)
	switch {
	case g.Found:
		return s + fmt.Sprintf("; the next FPDU was found, %d octets around the gap belong to none", g.Skipped)
	default:
		return s + "; no FPDU was found behind it"
	}
}
