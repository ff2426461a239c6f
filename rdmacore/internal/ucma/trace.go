//go:build linux && (amd64 || arm64)

package ucma

import (
	"fmt"
	"strings"

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

// arguments are the fields of a command that tell a person something.
func arguments(q any) string {
	switch q := q.(type) {
	case *uabi.CreateID:
		return fmt.Sprintf("ps=%s", portSpace(q.PS))
	case *uabi.DestroyID:
		return idText(q.ID)
	case *uabi.BindIP:
		return list(idText(q.ID), "addr="+addrText(&q.Addr))
	case *uabi.CMBindAddr:
		return list(idText(q.ID), "addr="+addrText(&q.Addr.SockaddrIn6))
	case *uabi.ResolveIP:
		return list(idText(q.ID), "src="+addrText(&q.Src), "dst="+addrText(&q.Dst))
	case *uabi.ResolveAddr:
		return list(idText(q.ID), "src="+addrText(&q.Src.SockaddrIn6), "dst="+addrText(&q.Dst.SockaddrIn6))
	case *uabi.ResolveRoute:
		return idText(q.ID)
	case *uabi.CMQueryCmd:
		return list(idText(q.ID), fmt.Sprintf("option=%d", q.Option))
	case *uabi.Connect:
		return list(idText(q.ID), paramText(&q.ConnParam))
	case *uabi.Listen:
		return list(idText(q.ID), fmt.Sprintf("backlog=%d", q.Backlog))
	case *uabi.Accept:
		return list(idText(q.ID), paramText(&q.ConnParam))
	case *uabi.Reject:
		return list(idText(q.ID), fmt.Sprintf("private_data_len=%d", q.PrivateDataLen))
	case *uabi.Disconnect:
		return idText(q.ID)
	case *uabi.InitQPAttr:
		return list(idText(q.ID), fmt.Sprintf("qp_state=%d", q.QPState))
	case *uabi.SetOption:
		return list(idText(q.ID), fmt.Sprintf("level=%d", q.Level), fmt.Sprintf("optname=%d", q.OptName))
	case *uabi.Notify:
		return list(idText(q.ID), fmt.Sprintf("event=%d", q.Event))
	case *uabi.MigrateID:
		return list(idText(q.ID), fmt.Sprintf("fd=%d", int32(q.FD)))
	case *uabi.JoinIPMcast:
		return idText(q.ID)
	case *uabi.JoinMcast:
		return idText(q.ID)
	}
	return ""
}

func list(s ...string) string  { return strings.Join(s, ", ") }
func idText(num uint32) string { return fmt.Sprintf("id=%d", num) }

func addrText(s *uabi.SockaddrIn6) string {
	if a, ok := addrPort(s); ok {
		return a.String()
	}
	return fmt.Sprintf("family %d", s.Family)
}

func portSpace(ps uint16) string {
	switch ps {
	case uabi.PSTCP:
		return "TCP"
	case uabi.PSUDP:
		return "UDP"
	case uabi.PSIB:
		return "IB"
	case uabi.PSIPoIB:
		return "IPOIB"
	}
	return fmt.Sprintf("%#x", ps)
}

func paramText(p *uabi.ConnParam) string {
	if p.Valid == 0 {
		return "no parameters"
	}
	return fmt.Sprintf("qpn=%#x, responder_resources=%d, initiator_depth=%d, private_data_len=%d",
		p.QPNum, p.ResponderResources, p.InitiatorDepth, p.PrivateDataLen)
}
