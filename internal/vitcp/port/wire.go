package port

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// What the process that accepts and another one say to each other (ownsock.Message). Numbers have their most
// significant octet first.
//
//	other                                     the one that accepts
//	hello: version, match timeout         ->
//	                                      <-  welcome, with the listening socket; or refusal: why
//	wait: number, filter                  ->
//	                                      <-  request: number, ConnectRequest; with its connection
//	leave: number                         ->
//	                                      <-  left: number
//
// A wait has one answer: a request, or after leave perhaps a left. A hello that comes again has another timeout.
const (
	msgHello byte = 1 + iota
	msgWelcome
	msgRefusal
	msgWait
	msgRequest
	msgLeave
	msgLeft
)

// version is the first octets of a hello.
const version = "VI port 1"

// maxReason is how much of a refusal is told.
const maxReason = 200

var errMessage = errors.New("it sends what makes no sense")

func malformed(what string) error { return fmt.Errorf("%w: %s", errMessage, what) }

// appendHello: the timeout has milliseconds.
func appendHello(b []byte, within time.Duration) []byte {
	ms := min(max(within.Milliseconds(), 0), math.MaxUint32)
	return binary.BigEndian.AppendUint32(append(b, version...), uint32(ms))
}

func parseHello(b []byte) (within time.Duration, err error) {
	rest, ok := strings.CutPrefix(string(b), version)
	if !ok || len(rest) != 4 {
		return 0, malformed("no hello of this version")
	}
	return time.Duration(binary.BigEndian.Uint32([]byte(rest))) * time.Millisecond, nil
}

// parseRefusal is the reason in words that can be shown.
func parseRefusal(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(b[:min(len(b), maxReason)]))
}

// parseNumber is the number at the beginning, and what follows.
func parseNumber(b []byte) (id uint32, rest []byte, err error) {
	if len(b) < 4 {
		return 0, nil, malformed("no number")
	}
	return binary.BigEndian.Uint32(b), b[4:], nil
}

// The flags of a filter.
const (
	filterPeer    = 1 << iota // PeerToPeer
	filterCalling             // there is one
	filterAll     = filterPeer | filterCalling
)

// appendFilter appends flags, and then four strings, each behind its length in one octet: the discriminator that is
// called, the one that calls, the address that calls, and the one that is called.
func appendFilter(b []byte, f *vitcp.Filter) []byte {
	var flags byte
	var calling segment.Discriminator
	if f.PeerToPeer {
		flags |= filterPeer
	}
	if f.Calling != nil {
		flags |= filterCalling
		calling = *f.Calling
	}
	b = append(b, flags)
	for _, s := range []string{string(f.Called), string(calling), address(f.From), address(f.At)} {
		b = append(append(b, byte(len(s))), s...)
	}
	return b
}

// address is 4 or 16 octets; none for none. Zones are compared by nobody.
func address(a netip.Addr) string { return string(a.AsSlice()) }

func parseFilter(b []byte) (f vitcp.Filter, err error) {
	if len(b) == 0 || b[0]&^filterAll != 0 {
		return f, malformed("flags of a filter")
	}
	flags := b[0]
	var fields [4]string
	b = b[1:]
	for i := range fields {
		if len(b) == 0 || len(b) <= int(b[0]) {
			return f, malformed("a filter that is cut off")
		}
		end := 1 + int(b[0])
		fields[i], b = string(b[1:end]), b[end:]
	}
	f.Called, f.PeerToPeer = segment.Discriminator(fields[0]), flags&filterPeer != 0
	calling := segment.Discriminator(fields[1])
	if flags&filterCalling != 0 {
		f.Calling = &calling
	}
	from, ok := netip.AddrFromSlice([]byte(fields[2]))
	at, ok2 := netip.AddrFromSlice([]byte(fields[3]))
	f.From, f.At = from, at
	switch {
	case len(b) != 0 || len(f.Called) > segment.MaxDiscriminator || len(calling) > segment.MaxDiscriminator,
		f.Calling == nil && calling != "", !ok && fields[2] != "", !ok2 && fields[3] != "":
		return f, malformed("a filter")
	}
	return f, nil
}
