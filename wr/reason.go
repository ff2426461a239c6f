package wr

import (
	"fmt"
	"strings"
)

// Reason says why something was refused, as data. It is an error, so that errors.As finds it
// in what verbs return and completions tell. What is not known is zero. It is for this side's
// program alone: nothing of it goes to the peer but the code of a Terminate Message.
type Reason struct {
	// Operation is what was asked for, or met on the wire, in the words of Op.Words:
	// "RDMA Write", say; those of the wire have "RDMA Read Response", "Atomic", "Atomic
	// Response" and "Terminate Message" too. Of a verb it is the verb: "Create QP". It is
	// empty where no operation is at fault.
	Operation string
	// QP is the queue pair.
	QP QPID
	// STag names the region or window at fault, if HasSTag: zero is an STag too.
	STag    STag
	HasSTag bool
	// Asked are the octets asked for: of STag, or if that is not Tagged, of the message, as
	// far as it had come.
	Asked Octets
	// Allowed are the octets there are: the region's or window's, or if that is not Tagged,
	// the room of the receive. Nothing is said of memory that the asking side may not use at
	// all.
	Allowed Octets
	// Missing are the access rights that were missing.
	Missing Access
	// MSN is that of the message on the wire; 0 if there is none.
	MSN uint32
	// What was wrong, in words.
	What string
	// Rule is what decides: a section ("RFC 5041 7.2") or the key of a requirement
	// ("RV-7.6.3-M1").
	Rule string
	// Remedy is what the program can do about it, in words; empty where there is nothing.
	Remedy string
	// ByPeer says that the peer noticed, whose Terminate Message says Terminate.
	ByPeer    bool
	Terminate TerminateReason
	// Err is, or wraps, the ImmediateError of a verb that refused; else it is nil.
	Err error
}

// Octets are Length of them, from tagged offset TO on if Tagged, and whether they are Known.
type Octets struct {
	Known, Tagged bool
	TO, Length    uint64
}

// Tagged is n octets from tagged offset to on.
func Tagged(to, n uint64) Octets { return Octets{Known: true, Tagged: true, TO: to, Length: n} }

// Untagged is n octets of a message.
func Untagged(n uint64) Octets { return Octets{Known: true, Length: n} }

// TerminateReason is the cause in a Terminate Message, decoded (RFC 5040 4.8).
type TerminateReason struct {
	Layer, Type, Code uint8
	// Text is what they mean.
	Text string
}

// String is one sentence: what was asked for, what was wrong with it, what to do, and the rule.
func (r *Reason) String() string { return r.Cite(r.sentence(r.subject())) }

// line is how many characters an error may have: two lines of a terminal, and a bit.
const line = 200

// Cite is s with the rule that decides behind it, if a line has room for that. Of a Terminate Message of the peer's the section on
// those would add nothing.
func (r *Reason) Cite(s string) string {
	if r.Rule == "" || r.ByPeer || s == "" || len(s)+len(r.Rule)+len(" ()") > line {
		return s
	}
	return s + " (" + r.Rule + ")"
}

// sentence is all but the subject, behind that, and the rule.
func (r *Reason) sentence(subject string) string {
	parts := make([]string, 0, 4)
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(subject)
	if r.Err != nil {
		add(r.Err.Error())
	}
	add(r.What)
	add(r.Remedy)
	return strings.Join(parts, ": ")
}

func (r *Reason) Error() string { return r.String() }

// Unwrap returns Err.
func (r *Reason) Unwrap() error { return r.Err }

// WithoutQP is r for a sentence that names the queue pair itself.
func (r *Reason) WithoutQP() *Reason {
	c := *r
	c.QP = 0
	return &c
}

// subject is what the sentence is about.
func (r *Reason) subject() string {
	if r.Operation == "" {
		if r.QP == 0 {
			return ""
		}
		return fmt.Sprintf("QP %d", r.QP)
	}
	s := r.Operation + r.about()
	if r.QP != 0 {
		s += fmt.Sprintf(" on QP %d", r.QP)
	}
	return s + " refused"
}

// about is the octets and the memory that the operation was about. Where there is an STag, that tells which message it was well enough.
func (r *Reason) about() string {
	var b strings.Builder
	if r.Asked.Known {
		fmt.Fprintf(&b, " of %s", octets(r.Asked.Length))
		if r.Asked.Tagged {
			fmt.Fprintf(&b, " at TO %#x", r.Asked.TO)
		}
	}
	if r.HasSTag {
		fmt.Fprintf(&b, " of STag %v", r.STag)
	}
	if r.MSN != 0 && !r.HasSTag {
		fmt.Fprintf(&b, " with MSN %d", r.MSN)
	}
	return b.String()
}

func octets(n uint64) string {
	if n == 1 {
		return "1 octet"
	}
	return fmt.Sprintf("%d octets", n)
}

// opWords are the operations as the documents call them.
var opWords = [...]string{
	OpSend: "Send", OpSendSE: "Send with Solicited Event",
	OpSendInvalidate: "Send with Invalidate", OpSendSEInvalidate: "Send with Solicited Event and Invalidate",
	OpWrite: "RDMA Write", OpRead: "RDMA Read", OpReadInvalidate: "RDMA Read with Invalidate",
	OpBind: "Bind Memory Window", OpFastRegister: "Fast-Register", OpInvalidate: "Invalidate Local STag",
	OpRecv: "Receive", OpImmediate: "Immediate Data", OpImmediateSE: "Immediate Data with Solicited Event",
	OpWriteImmediate: "RDMA Write with Immediate Data", OpWriteImmediateSE: "RDMA Write with Immediate Data and Solicited Event",
	OpFetchAdd: "Fetch and Add", OpSwap: "Swap", OpCompareSwap: "Compare and Swap",
}

// Words are the operation as a Reason and the documents call it.
func (o Op) Words() string { return name(opWords[:], int(o), "Operation") }
