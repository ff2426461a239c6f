//go:build linux && (amd64 || arm64)

package ucma

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// tracing reports whether --strace wants to see commands.
func (c *call) tracing() bool { return c.dev.config.Trace != nil }

// traceAnswer adds to what the trace says of the answer.
func (c *call) traceAnswer(format string, args ...any) {
	if c.tracing() {
		c.told = fmt.Sprintf(format, args...)
	}
}

// trace shows a command and its result as a line; cmd is nil if there is no such command.
func (f *File) trace(cmd *command, c *call, r *uverbs.Refusal) {
	if !c.tracing() {
		return
	}
	name := "?"
	if cmd != nil {
		name = cmd.name
	}
	line := fmt.Sprintf("rdma_cm %s(%s) = ", name, c.args)
	switch {
	case r != nil:
		line += fmt.Sprintf("-1 %s (%s)", unix.ErrnoName(r.Errno), r.Why)
	case c.told != "":
		line += "0 (" + c.told + ")"
	default:
		line += "0"
	}
	f.dev.config.Trace(line)
}

// note shows something that is nobody's command.
func (d *Device) note(format string, args ...any) {
	if d.config.Trace != nil {
		d.config.Trace("rdma_cm " + fmt.Sprintf(format, args...))
	}
}

var eventNames = [...]string{
	"ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST", "CONNECT_RESPONSE",
	"CONNECT_ERROR", "UNREACHABLE", "REJECTED", "ESTABLISHED", "DISCONNECTED",
	"DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE", "TIMEWAIT_EXIT",
	"ADDRINFO_RESOLVED", "ADDRINFO_ERROR", "USER", "INTERNAL",
}

// text is an event for a person.
func (ev *event) text() string {
	e := &ev.resp
	s := fmt.Sprintf("%s, id=%d", eventNames[e.Event], e.ID)
	if no := unix.ErrnoName(unix.Errno(-int32(e.Status))); no != "" {
		s += ", status=-" + no
	}
	if ev.id.options.datagrams {
		p := e.UDParam()
		return s + fmt.Sprintf(", qpn=%#x, private_data_len=%d", p.QPNum, p.PrivateDataLen)
	}
	switch e.Event {
	case uabi.CMEventConnectRequest, uabi.CMEventConnectResponse, uabi.CMEventEstablished, uabi.CMEventRejected:
		s += fmt.Sprintf(", responder_resources=%d, initiator_depth=%d, private_data_len=%d",
			e.Conn.ResponderResources, e.Conn.InitiatorDepth, e.Conn.PrivateDataLen)
	}
	return s
}
