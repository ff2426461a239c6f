//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// The RNIC gives its reasons in the words of the RFCs and of Go's API. People who read what a C program was refused know
// those of libibverbs. This file is the one place that translates, for stderr and --strace alike: Words of any error, and
// words of a Reason.

// terms are what is said otherwise, as whole words.
var terms = map[string]string{
	"STag": "key", "STags": "keys", "an STag": "a key", "TO": "address",
	"S-RQ": "shared receive queue", "S-RQs": "shared receive queues", "an S-RQ": "a shared receive queue",
	"RNIC": "device", "RNICs": "devices", "an RNIC": "a device", "RNIC's": "device's",
	"ORD": "max_rd_atomic", "IRD": "max_dest_rd_atomic",
	"LLP": "TCP", "Idle": "RESET",

	"RemoteRead": "IBV_ACCESS_REMOTE_READ", "RemoteWrite": "IBV_ACCESS_REMOTE_WRITE", "RemoteAtomic": "IBV_ACCESS_REMOTE_ATOMIC",
	"LocalWrite": "IBV_ACCESS_LOCAL_WRITE", "BindWindow": "IBV_ACCESS_MW_BIND",
	"remote-read": "IBV_ACCESS_REMOTE_READ", "remote-write": "IBV_ACCESS_REMOTE_WRITE", "remote-atomic": "IBV_ACCESS_REMOTE_ATOMIC",
	"remote read": "IBV_ACCESS_REMOTE_READ", "remote write": "IBV_ACCESS_REMOTE_WRITE", "remote atomic": "IBV_ACCESS_REMOTE_ATOMIC",
	"local write": "IBV_ACCESS_LOCAL_WRITE", "local-write": "IBV_ACCESS_LOCAL_WRITE", "bind right": "IBV_ACCESS_MW_BIND right",

	"SendSGE": "max_send_sge", "WriteSGE": "max_send_sge", "RecvSGE": "max_recv_sge", "SRQConfig.SGE": "max_sge",
	"SendSGE, WriteSGE": "max_send_sge", "QPConfig.IRD": "max_dest_rd_atomic", "by QPConfig": "by max_rd_atomic",
	"QPConfig.SRQ": "srq", "QPConfig.PD": "pd", "QPConfig.ID": "the number", "QPConfig.SendCQ or RecvCQ": "send_cq or recv_cq",
	"RegionConfig.QP": "the queue pair of the region", "SharedConfig.Existing": "the region given",
	"FeatureBlockMode": "block mode", "FeatureSRQ": "shared receive queues", "WithImmediate": "IBV_WR_SEND_WITH_IMM",
	"AllocatePages": "buffer", "FMR": "Fast-Register",
	"leave out QPConfig.NoInboundWrite":                                                  "set IBV_ACCESS_REMOTE_WRITE in qp_access_flags",
	"leave out QPConfig.NoInboundRead":                                                   "set IBV_ACCESS_REMOTE_READ in qp_access_flags",
	"leave out QPConfig.NoInboundAtomic":                                                 "set IBV_ACCESS_REMOTE_ATOMIC in qp_access_flags",
	"leave out NoInboundRead and NoInboundAtomic":                                        "set IBV_ACCESS_REMOTE_READ and IBV_ACCESS_REMOTE_ATOMIC in qp_access_flags",
	"wait for what was posted before closing (QP.Drain)":                                 "wait for what was posted before closing",
	"set Extensions in cm.Config, or QPConfig, at both ends":                             "connect to a peer that takes atomics and immediate data (RFC 7306)",
	"set Extensions at both ends, if it is of RFC 7306":                                  "connect to a peer that takes atomics and immediate data (RFC 7306)",
	"set QPConfig.Extensions, or cm.Config.Extensions at both ends":                      "connect to a peer that takes atomics and immediate data (RFC 7306)",
	"set QPConfig.SendImmediate at both ends, and use it with OpSend and OpSendSE alone": "send no payload with it, or connect to another softrnic",
	"register it there with RemoteInvalidate, in the PD of the queue pair":               "invalidate a window of type 2 that is bound there on the same queue pair",
	"set RemoteInvalidate or QP in RegionConfig":                                         "have the peer invalidate a window of type 2 that is bound on the same queue pair",
	"name a window of AllocateWindow that is there":                                      "name a window of ibv_alloc_mw that is there",

	"RNIC.AllocatePD": "ibv_alloc_pd", "RNIC.CreateCQ": "ibv_create_cq", "RNIC.CreateSRQ": "ibv_create_srq", "RNIC.CreateQP": "ibv_create_qp",

	"SendSE": "IBV_WR_SEND", "SendInvalidate": "IBV_WR_SEND_WITH_INV", "SendSEInvalidate": "IBV_WR_SEND_WITH_INV",
	"WriteImmediate": "IBV_WR_RDMA_WRITE_WITH_IMM", "WriteImmediateSE": "IBV_WR_RDMA_WRITE_WITH_IMM", "ImmediateSE": "IBV_WR_SEND_WITH_IMM",
	"FetchAdd": "IBV_WR_ATOMIC_FETCH_AND_ADD", "CompareSwap": "IBV_WR_ATOMIC_CMP_AND_SWP", "ReadInvalidate": "IBV_WR_RDMA_READ",
	"FastRegister": "Fast-Register",
}

// calls are the functions of libibverbs for the verbs that a Reason names.
var verbCalls = map[string]string{
	"Allocate PD": "ibv_alloc_pd", "Deallocate PD": "ibv_dealloc_pd", "Create CQ": "ibv_create_cq", "Modify CQ": "ibv_resize_cq", "Destroy CQ": "ibv_destroy_cq",
	"Poll for Completion": "ibv_poll_cq", "Request Completion Notification": "ibv_req_notify_cq", "Create QP": "ibv_create_qp",
	"Query QP": "ibv_query_qp", "Modify QP": "ibv_modify_qp", "Destroy QP": "ibv_destroy_qp", "Create S-RQ": "ibv_create_srq", "Query S-RQ": "ibv_query_srq",
	"Modify S-RQ": "ibv_modify_srq", "Destroy S-RQ": "ibv_destroy_srq", "Register Memory Region": "ibv_reg_mr", "Reregister Memory Region": "ibv_rereg_mr",
	"Deregister Memory Region": "ibv_dereg_mr", "Allocate Memory Window": "ibv_alloc_mw", "Deallocate Memory Window": "ibv_dealloc_mw", "Query RNIC": "ibv_query_device",
}

var (
	termsIn  = pattern(terms)
	callsIn  = pattern(verbCalls)
	qpNumber = regexp.MustCompile(`\bQP (\d+)\b`)
	// goName finds a name of Go's API, which says nothing to people who write C.
	goName = regexp.MustCompile(`\b[A-Za-z]*[a-z][A-Z]\w*|\w\.[A-Z]\w*|\bQPConfig\b|\bExtensions\b|\bcm\b|\bPBL\b|\bPageMode\b`)
	// units are no such names.
	units = regexp.MustCompile(`\b[KMG]iB\b`)
)

// ofGo reports whether a sentence has a name of Go's API.
func ofGo(s string) bool { return goName.MatchString(units.ReplaceAllString(s, "")) }

// pattern finds the keys of a table, the longest first.
func pattern(table map[string]string) *regexp.Regexp {
	var all []string
	for k := range table {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for i, k := range all {
		all[i] = regexp.QuoteMeta(k)
		if c := k[len(k)-1]; c != ')' {
			all[i] += `\b`
		}
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(all, "|") + `)`)
}

// text is a sentence in the words of libibverbs.
func text(s string) string {
	s = callsIn.ReplaceAllStringFunc(s, func(k string) string { return verbCalls[k] })
	s = qpNumber.ReplaceAllStringFunc(s, func(m string) string {
		n, err := strconv.ParseUint(m[len("QP "):], 10, 32)
		if err != nil {
			return m
		}
		return fmt.Sprintf("queue pair %#x", n)
	})
	return termsIn.ReplaceAllStringFunc(s, func(k string) string { return terms[k] })
}

// remedy is what can be done, of which the ways that only Go's programs have are left out.
func remedy(s string) string {
	const or = ", or "
	ways := slices.DeleteFunc(strings.Split(text(s), or), ofGo)
	return strings.Join(ways, or)
}

// spoken are sentences that have been translated, keptWords at most: a program may post to a full queue again and again.
var (
	spoken      sync.Map
	spokenCount atomic.Int32
)

const keptWords = 256

// Words is an error in the words of libibverbs.
func Words(err error) string {
	all := err.Error()
	if s, ok := spoken.Load(all); ok {
		return s.(string)
	}
	var why *verbs.Reason
	var s string
	if errors.As(err, &why) {
		before, after, _ := strings.Cut(all, why.Error())
		s = text(before) + words(why, "lkey") + text(after)
	} else {
		s = text(all)
	}
	if spokenCount.Add(1) <= keptWords {
		spoken.Store(all, s)
	}
	return s
}

// words is a Reason as a sentence. key is what its STag is: "lkey", or "rkey" if a peer named it; what its rights say counts more.
func words(why *verbs.Reason, key string) string {
	const remote = verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
	switch {
	case why.ByPeer, why.Missing&remote != 0:
		key = "rkey"
	case why.Operation == verbs.OpRecv.Words(), why.Missing&verbs.LocalWrite != 0:
		key = "lkey"
	}
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(subject(why, key))
	if why.Err != nil {
		add(text(why.Err.Error()))
	}
	add(text(strings.ReplaceAll(why.What, "STag", key)))
	add(remedy(strings.ReplaceAll(why.Remedy, "STag", key)))
	return why.Cite(strings.Join(parts, ": "))
}

// subject is what was refused: of memory the bytes, by address and key.
func subject(why *verbs.Reason, key string) string {
	if why.Operation == "" {
		if why.QP == 0 {
			return ""
		}
		return fmt.Sprintf("queue pair %#x", uint32(why.QP))
	}
	var b strings.Builder
	b.WriteString(text(why.Operation))
	if why.Asked.Known {
		fmt.Fprintf(&b, " of %d octets", why.Asked.Length)
		if why.Asked.Tagged {
			fmt.Fprintf(&b, " at address %#x", why.Asked.TO)
		}
	}
	if why.HasSTag {
		fmt.Fprintf(&b, " of %s %#x", key, uint32(why.STag))
	}
	if why.MSN != 0 && !why.HasSTag {
		fmt.Fprintf(&b, " with MSN %d", why.MSN)
	}
	if why.QP != 0 {
		fmt.Fprintf(&b, " on queue pair %#x", uint32(why.QP))
	}
	return b.String() + " refused"
}
