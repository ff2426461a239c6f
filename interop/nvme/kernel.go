//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	alarming = regexp.MustCompile(`BUG|WARNING|Oops|Call Trace|hung task|blocked for more|I/O error|timeout`)
	badCRC   = regexp.MustCompile(`siw: crc error\. in: ([0-9a-f]{1,8}), own ([0-9a-f]{1,8}),`)
	recovery = regexp.MustCompile(`starting error recovery`)
)

// kernelLog looks at what the guest's kernel said: apart from that on the connections that were pulled on purpose,
// its controllers may end for one reason only, which is siw's.
func kernelLog(ctx context.Context, l *lab) (string, error) {
	pulled, err := l.guest.Run(ctx, time.Minute, "dmesg -c >>/tmp/dmesg; cat /tmp/pulled")
	if err != nil {
		return pulled, err
	}
	rest, err := l.guest.Run(ctx, time.Minute, "cat /tmp/dmesg")
	if err != nil {
		return rest, err
	}
	return judge(pulled, rest)
}

// judge says what a log comes to. pulled is the part in which connections were pulled on purpose.
func judge(pulled, rest string) (printed string, err error) {
	splits, recoveries := 0, 0
	for i, part := range []string{pulled, rest} {
		for line := range strings.Lines(part) {
			if m := badCRC.FindStringSubmatch(line); m != nil {
				if !split(m[1], m[2]) {
					return line, errors.New("an FPDU with a bad CRC")
				}
				if i == 1 {
					splits++
				}
				continue
			}
			if alarming.MatchString(line) {
				return line, errors.New(strings.TrimSpace(line))
			}
			if i == 1 && recovery.MatchString(line) {
				recoveries++
			}
		}
	}
	if recoveries > splits {
		return rest, fmt.Errorf("%d recoveries that nobody asked for", recoveries-splits)
	}
	printed = "no warning, no I/O error"
	if splits > 0 {
		printed += fmt.Sprintf("; siw misread a CRC that TCP had cut (%d times), and the host reconnected", splits)
	}
	return printed, nil
}

// split reports whether a CRC that siw found wrong is one that it put together wrongly: of a CRC whose octets come in two
// pieces siw writes the second over the beginning of the first, so that what it compares (in) has the second piece in
// front, what is left of the first behind it, and maybe an octet of the FPDU before at the end.
func split(in, own string) bool {
	var got, want [4]byte
	for text, b := range map[string]*[4]byte{in: &got, own: &want} {
		v, err := strconv.ParseUint(text, 16, 32)
		if err != nil {
			return false
		}
		binary.LittleEndian.PutUint32(b[:], uint32(v)) // the guest's order
	}
	for first := 1; first < 4; first++ {
		second := 4 - first
		if string(got[:second]) == string(want[first:]) && string(got[second:max(second, first)]) == string(want[second:max(second, first)]) {
			return true
		}
	}
	return false
}
