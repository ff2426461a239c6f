package cli

import (
	"net"
	"strconv"
	"strings"
)

// WithPort adds a port to an address that has none.
func WithPort(addr string, port int) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	return net.JoinHostPort(BareHost(addr), strconv.Itoa(port))
}

// BareHost is a host without the brackets that an IPv6 address may come in.
func BareHost(host string) string {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok {
			return inner
		}
	}
	return host
}
