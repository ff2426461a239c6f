package wr

import "strconv"

// Status is a Completion Status (verbs draft 9.5.2, figure 36). It is a code,
// not an error: see Completion.Err.
type Status uint8

// The Completion Statuses.
const (
	StatusSuccess Status = iota
	StatusFlushed
	StatusInvalidWQE
	StatusLocalQPCatastrophic
	StatusRemoteTermination
	StatusInvalidSTag
	StatusBaseBounds
	StatusAccess
	StatusInvalidPD
	StatusWrap
	StatusInvalidateSTag
	StatusZeroReadResources
	StatusNotPrivileged
	StatusSTagNotInvalid
	StatusInvalidPageSize
	StatusInvalidPhysBufferSize
	StatusInvalidPhysBufferEntry
	StatusInvalidFBO
	StatusInvalidFastRegLength
	StatusInvalidAccessRights
	StatusPhysBufferListTooLong
	StatusInvalidVA
	StatusInvalidRegion
	StatusInvalidWindow
	StatusInvalidLength
	statusEnd
)

var statusNames = [...]string{
	StatusSuccess:                "Success",
	StatusFlushed:                "Flushed",
	StatusInvalidWQE:             "Invalid WQE",
	StatusLocalQPCatastrophic:    "Local QP Catastrophic Error",
	StatusRemoteTermination:      "Remote Termination Error",
	StatusInvalidSTag:            "Invalid STag",
	StatusBaseBounds:             "Base and Bounds Violation",
	StatusAccess:                 "Access Violation",
	StatusInvalidPD:              "Invalid PD ID",
	StatusWrap:                   "Wrap Error",
	StatusInvalidateSTag:         "STag to Invalidate had Invalid PD or Access Rights",
	StatusZeroReadResources:      "Zero RDMA Read Resources",
	StatusNotPrivileged:          "QP Not In Privileged Mode",
	StatusSTagNotInvalid:         "STag Not In Invalid State",
	StatusInvalidPageSize:        "Invalid Page Size",
	StatusInvalidPhysBufferSize:  "Invalid Physical Buffer Size",
	StatusInvalidPhysBufferEntry: "Invalid Physical Buffer List Entry",
	StatusInvalidFBO:             "Invalid FBO",
	StatusInvalidFastRegLength:   "Invalid Fast-Register Length",
	StatusInvalidAccessRights:    "Invalid Access Rights Specified",
	StatusPhysBufferListTooLong:  "Physical Buffer List Too Long",
	StatusInvalidVA:              "Invalid Virtual Address",
	StatusInvalidRegion:          "Invalid Region",
	StatusInvalidWindow:          "Invalid Window",
	StatusInvalidLength:          "Invalid Length",
}

// statusReasons say more than the draft's names, where there is more to say.
var statusReasons = [...]string{
	StatusFlushed:             "the connection ended, or the queue pair was modified to Error, before it was done",
	StatusInvalidWQE:          "the RNIC cannot make sense of it",
	StatusLocalQPCatastrophic: "the queue pair failed while it was being processed",
	StatusRemoteTermination:   "the peer ended the connection because of it: the Terminate Message in Query QP says why",
	StatusInvalidSTag:         "an SGE, or the address at the peer, names an STag that is not valid here: has the region been registered and not invalidated?",
	StatusBaseBounds:          "what it names is not within the region, or the message is longer than the receive",
	StatusAccess:              "the region or window lacks the right for it: see Access",
	StatusInvalidPD:           "the region belongs to another protection domain than the queue pair, or to another queue pair",
	StatusWrap:                "tagged offset and length together exceed 64 bits",
	StatusInvalidateSTag:      "the STag to invalidate may not be invalidated there: another PD, a shared region, or windows are bound",
	StatusZeroReadResources:   "the queue pair has no ORD, so it can post no RDMA Reads",
	StatusNotPrivileged:       "Fast-Register and the STag of zero need QPConfig.Privileged",
	StatusSTagNotInvalid:      "the STag is in use: invalidate it first",
}

// reason is s with what it means.
func (s Status) reason() string {
	if int(s) < len(statusReasons) && statusReasons[s] != "" {
		return s.String() + " (" + statusReasons[s] + ")"
	}
	return s.String()
}

func (s Status) String() string { return name(statusNames[:], int(s), "Status") }

func name(names []string, i int, kind string) string {
	if i < len(names) && names[i] != "" {
		return names[i]
	}
	return kind + "(" + strconv.Itoa(i) + ")"
}
