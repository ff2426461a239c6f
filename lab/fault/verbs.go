package fault

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/softrnic/softrnic/wr"
)

// Verbs are the names by which plans know the verbs of a C program: those of libibverbs and librdmacm without ibv_. Each is a command
// that the program gives its device.
var Verbs = []string{
	"open_device", "query_device", "query_port", "alloc_pd", "dealloc_pd", "reg_mr", "rereg_mr", "dereg_mr", "alloc_mw",
	"dealloc_mw", "create_comp_channel", "create_cq", "resize_cq", "destroy_cq", "create_qp", "modify_qp", "query_qp", "destroy_qp",
	"create_srq", "modify_srq", "query_srq", "destroy_srq", "create_ah", "destroy_ah", "rdma_create_id", "rdma_destroy_id",
	"rdma_bind_addr", "rdma_resolve_addr", "rdma_resolve_route", "rdma_connect", "rdma_listen", "rdma_accept", "rdma_reject",
	"rdma_disconnect", "rdma_migrate_id", "rdma_set_option",
}

// insteadOf are verbs that no command of the device stands for, and what a plan says in their place.
var insteadOf = map[string]string{
	"post_send":     "posts wait in memory that the program shares with its device; say post 3 of send: fail",
	"post_recv":     "posts wait in memory that the program shares with its device; say post 3 in: fail",
	"poll_cq":       "completions wait in memory that the program shares with its device; say completion 3: status, delay or full",
	"req_notify_cq": "it cannot fail on an adapter; say completion 3: delay 50ms",
}

// errnos are those that a verb can end with, and their numbers, which are Linux's.
var errnos = map[string]int{
	"EPERM": 1, "ENOENT": 2, "EINTR": 4, "EIO": 5, "ENXIO": 6, "EBADF": 9, "EAGAIN": 11, "ENOMEM": 12, "EACCES": 13, "EFAULT": 14,
	"EBUSY": 16, "EEXIST": 17, "ENODEV": 19, "EINVAL": 22, "ENFILE": 23, "EMFILE": 24, "ENOSPC": 28, "ERANGE": 34, "ENOSYS": 38,
	"ENODATA": 61, "EPROTO": 71, "EOPNOTSUPP": 95, "EADDRINUSE": 98, "EADDRNOTAVAIL": 99, "ENETDOWN": 100, "ENETUNREACH": 101,
	"ECONNABORTED": 103, "ECONNRESET": 104, "ENOBUFS": 105, "EISCONN": 106, "ENOTCONN": 107, "ETIMEDOUT": 110, "ECONNREFUSED": 111,
	"EHOSTDOWN": 112, "EHOSTUNREACH": 113, "EALREADY": 114,
}

// statuses are those of completions by their numbers: enum ibv_wc_status without IBV_WC_. The first is no fault.
var statuses = []string{
	"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR",
	"LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",
	"REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR", "INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR",
}

var nameOfDevice = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func plainName(s string) bool { return nameOfDevice.MatchString(s) }

// ofC reports whether only a C program's device can carry the rule out.
func (r *Rule) ofC() bool { return r.When == Verb || r.What == Status || r.Device != "" }

// NeedsC finds a rule that only `rnic run` can carry out, for C programs.
func (p *Plan) NeedsC() error {
	for _, r := range p.Rules {
		if !r.ofC() {
			continue
		}
		return fmt.Errorf("line %d: %v: that is of C programs alone, by the names of libibverbs (rnic run): a Go program says "+
			"open, registration, post or completion, and has no names of devices", r.Line, r)
	}
	return nil
}

// For is the plan as the device of a name has it: without the rules for others.
func (p *Plan) For(device string) *Plan {
	of := &Plan{Seed: p.Seed}
	for _, r := range p.Rules {
		if r.Device == "" || r.Device == device {
			of.Rules = append(of.Rules, r)
		}
	}
	return of
}

// Devices are the names that the rules have.
func (p *Plan) Devices() (names []string) {
	for _, r := range p.Rules {
		if r.Device != "" && !slices.Contains(names, r.Device) {
			names = append(names, r.Device)
		}
	}
	return names
}

// ForC makes an Injector for a device of a C program (package rdmacore), whose plan may name verbs. All else is as New has it.
func ForC(p *Plan, report func(Strike)) (*Injector, error) { return newInjector(p, report, true) }

// Verb says what becomes of a verb of the C program: it takes late longer, and fails with errno, which is Linux's number; 0: it does
// not fail.
func (in *Injector) Verb(name string) (errno int, late time.Duration) {
	for _, k := range in.strikes(Verb, place{}, subject{verb: name}) {
		in.report(k)
		late = max(late, k.Rule.For)
		errno = cmp.Or(errno, errnos[k.Rule.Errno])
	}
	return errno, late
}

// Opens reports whether an open by the C program finds the device.
func (in *Injector) Opens() bool { return in.opens() == nil }

// Completed says whether a completion that the C program is about to see, of its queue pair, ends otherwise: with which number of enum
// ibv_wc_status.
func (in *Injector) Completed(qp wr.QPID, op wr.Op) (status uint32, ok bool) {
	for _, k := range in.strikes(seen, place{uint64(qp), queueOf(op)}, subject{qp: qp, op: opOf[op]}) {
		in.report(k)
		if !ok {
			status, ok = uint32(index(statuses, k.Rule.Status)), true
		}
	}
	return status, ok
}
