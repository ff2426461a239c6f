package vi

import (
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// viRow is one row of the table: the rounds of one series.
type viRow struct {
	Level    string  `json:"level"`
	CRC      bool    `json:"crc"`
	Op       string  `json:"op"`
	Size     uint64  `json:"size"`
	Count    int     `json:"count"`
	P50      float64 `json:"p50_us"`         // round trip
	Verified uint64  `json:"verified_bytes"` // of those that came back
}

// viReport is what a client has found.
type viReport struct {
	Server      string  `json:"server"`
	Connections int     `json:"connections"`
	Rows        []viRow `json:"rows"`
	Seconds     float64 `json:"seconds"`
}

func (r *viReport) print(w io.Writer) error {
	t := cli.NewTable(w)
	fmt.Fprintln(t, "level\tCRC\toperation\tsize\tcount\tp50 us\tverified\t")
	var octets uint64
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.1f\t%s\t\n", row.Level, cli.OnOff(&row.CRC), row.Op,
			cli.FormatSize(row.Size), cli.Grouped(uint64(row.Count)), row.P50, cli.Grouped(row.Verified))
		octets += row.Verified
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s octets there and back over %s in %.2f s; all verified\n",
		cli.Grouped(octets), viConnections(r.Connections), r.Seconds)
	return err
}

// viSummary is what a server has done for its client.
type viSummary struct {
	Client      string  `json:"client"`
	Connections int     `json:"connections"`
	CRC         int     `json:"crc_connections"` // of those, the ones with CRCs
	Rounds      int     `json:"rounds"`          // of Send and RDMA Write
	Verified    uint64  `json:"verified_bytes"`  // of those that came with them
	Seconds     float64 `json:"seconds"`
}

func (s viSummary) String() string {
	took := time.Duration(s.Seconds * float64(time.Second)).Round(time.Millisecond)
	return fmt.Sprintf("%s rounds with %s over %s (%d with CRC) in %v, %s octets verified", cli.Grouped(uint64(s.Rounds)),
		s.Client, viConnections(s.Connections), s.CRC, took, cli.Grouped(s.Verified))
}

func viConnections(n int) string {
	if n == 1 {
		return "1 connection"
	}
	return fmt.Sprintf("%d connections", n)
}
