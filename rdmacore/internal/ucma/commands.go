//go:build linux && (amd64 || arm64)

package ucma

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"unsafe"

	"context"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// command is what the device does about one command of the ABI: min and size are the least and the most
// octets of its struct that are looked at.
type command struct {
	name      string
	verb      string // as plans know it
	min, size int
	run       func(*call) error
}

// commands are all commands by number. GET_OPTION is ENOSYS on Linux too.
var commands = [...]*command{
	uabi.CMCreateID:         control("CREATE_ID", 0, createID),
	uabi.CMDestroyID:        control("DESTROY_ID", 0, destroyID),
	uabi.CMBindIP:           control("BIND_IP", 0, bindIP),
	uabi.CMResolveIP:        control("RESOLVE_IP", 0, resolveIP),
	uabi.CMResolveRoute:     control("RESOLVE_ROUTE", 0, resolveRoute),
	uabi.CMQueryRoute:       control("QUERY_ROUTE", queryRouteMin, queryRoute),
	uabi.CMConnect:          control("CONNECT", uabi.ConnectMin, connect),
	uabi.CMListen:           control("LISTEN", 0, listen),
	uabi.CMAccept:           control("ACCEPT", uabi.AcceptMin, accept),
	uabi.CMReject:           control("REJECT", 0, reject),
	uabi.CMDisconnect:       control("DISCONNECT", 0, disconnect),
	uabi.CMInitQPAttr:       control("INIT_QP_ATTR", 0, initQPAttr),
	uabi.CMGetEvent:         control("GET_EVENT", 0, getEvent),
	uabi.CMGetOption:        nil,
	uabi.CMSetOption:        control("SET_OPTION", 0, setOption),
	uabi.CMNotify:           control("NOTIFY", 0, notify),
	uabi.CMJoinIPMcast:      control("JOIN_IP_MCAST", 0, joinIPMcast),
	uabi.CMLeaveMcast:       control("LEAVE_MCAST", 0, leaveMcast),
	uabi.CMMigrateID:        control("MIGRATE_ID", 0, migrateID),
	uabi.CMQuery:            control("QUERY", 0, query),
	uabi.CMBind:             control("BIND", 0, bind),
	uabi.CMResolveAddr:      control("RESOLVE_ADDR", 0, resolveAddr),
	uabi.CMJoinMcast:        control("JOIN_MCAST", 0, joinMcast),
	uabi.CMResolveIBService: control("RESOLVE_IB_SERVICE", 0, resolveIBService),
	uabi.CMWriteCMEvent:     control("WRITE_CM_EVENT", 0, writeCMEvent),
}

// control makes a command of a function that gets its struct, which has to be there from the beginning
// to least, 0 for all; what is not there is zeros.
func control[Q any](name string, least int, do func(*call, *Q) error) *command {
	size := int(unsafe.Sizeof(*new(Q)))
	return &command{name: name, verb: verbOf(name), min: cmp.Or(least, size), size: size, run: func(c *call) error {
		var q Q
		copy(umem.Bytes(&q), c.body)
		if c.tracing() {
			c.args = uverbs.Fields(&q)
		}
		return do(c, &q)
	}}
}

// verbOf is the verb of a command, by the name that plans have for it.
func verbOf(command string) string {
	switch command {
	case "BIND_IP", "BIND":
		return "rdma_bind_addr"
	case "RESOLVE_IP":
		return "rdma_resolve_addr"
	}
	return "rdma_" + strings.ToLower(command)
}

// refuse makes a refusal: its errno, and why.
func refuse(no syscall.Errno, format string, args ...any) *uverbs.Refusal {
	return &uverbs.Refusal{Errno: no, Why: fmt.Sprintf(format, args...)}
}

// errnoOf is the errno of an error of connecting, as siw would say it.
func errnoOf(err error) syscall.Errno {
	var no syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return syscall.ETIMEDOUT
	case errors.As(err, &no):
		return no
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return syscall.ECONNRESET
	}
	return syscall.EPROTO
}
