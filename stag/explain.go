package stag

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/names"
	"github.com/softrnic/softrnic/wr"
)

// Why a fault is one, in words and as data. It is asked for behind a refusal, and looks at the
// table as it is then: where that has changed meanwhile, and would say something else,
// nothing is added.

// Explain adds to why, whose STag and octets asked for are set, what the table knows of f, the
// fault of an access by u that needs every right of need.
func (t *Table) Explain(why *wr.Reason, f AccessFault, u User, need wr.Access) {
	s, to, n := why.STag, why.Asked.TO, why.Asked.Length
	if _, now := t.Resolve(s, to, n, u, need); now != f && (now != OK || f != FaultAccess) {
		return
	}
	e := t.index.get(s.Index())
	if e == nil {
		explainNone(why, f)
		return
	}
	var g grant
	_, valid := e.look(&g)
	switch f {
	case FaultSTag:
		e.explainSTag(why, &g, valid, need)
	case FaultPD:
		e.explainPD(why, &g, u)
	default:
		e.explainRange(why, f, &g, need)
	}
}

// explainNone is for an STag that no region or window has: zero may be physical memory.
func explainNone(why *wr.Reason, f AccessFault) {
	switch {
	case f == FaultBounds:
		why.What, why.Rule = "it is not within one AllocatePages", "RV-7.2.1-M5"
		why.Remedy = "stay within Pages.Address and Bytes"
	case f == FaultWrap:
		why.What, why.Rule, why.Remedy = beyond, "RFC 5041 7.1", withinRemedy
	case why.STag == 0:
		why.What, why.Rule = "the STag of zero is for privileged local use", "RV-7.2.1-M5"
		why.Remedy = "name a region"
	default:
		why.What, why.Rule, why.Remedy = "no region or window has this STag", "RV-7.2.2-M1", staleRemedy
	}
}

const (
	beyond       = "the last octet is beyond TO 2^64-1"
	withinRemedy = "stay within it"
	staleRemedy  = "use that of memory that is still registered"
)

func (e *entry) kind() string {
	if e.window {
		return "window"
	}
	return "region"
}

func (e *entry) explainSTag(why *wr.Reason, g *grant, valid bool, need wr.Access) {
	why.Rule = "RV-7.2.2-M1"
	switch {
	case !valid && e.window:
		why.What, why.Rule = "the window is not bound", "RV-7.10.6.2-M2"
		why.Remedy = "bind it first, and each time that it was invalidated"
	case !valid:
		why.What = "the region is in the Invalid state"
		why.Remedy = "register it anew, or Fast-Register it"
	case g.key != why.STag.Key():
		why.What = fmt.Sprintf("the %s has another key, %#02x", e.kind(), g.key)
		why.Remedy = "use the STag that it has now"
	case e.window && need&localRights != 0:
		why.What, why.Rule = "a window serves remote rights only", "verbs draft 8.1.3.2"
		why.Remedy = "use that of the region"
	}
}

func (e *entry) explainPD(why *wr.Reason, g *grant, u User) {
	switch {
	case e.window && (g.qp == 0 || e.isRevoked()):
		why.What, why.Rule = fmt.Sprintf("the window is not bound, and of PD %d, not %d", g.pd, u.PD), "RV-7.10.4-M4"
		why.Remedy = "bind it first, to this queue pair"
	case e.window:
		why.What, why.Rule = fmt.Sprintf("the window is bound to QP %d", g.qp), "RV-7.10.6.2-M3"
		why.Remedy = "bind a window to this queue pair"
	case g.pd != u.PD:
		why.What, why.Rule = fmt.Sprintf("the region is of PD %d, not %d", g.pd, u.PD), "R5040-8.1.1-M2"
		why.Remedy = "register it in the PD of the queue pair"
	default:
		why.What, why.Rule = fmt.Sprintf("the region is for QP %d alone", g.qp), "R5040-8.1.1-M3"
		why.Remedy = "use it there, or leave out RegionConfig.QP"
	}
}

// explainRange is for an STag that the asking side may use: it learns what octets there are.
func (e *entry) explainRange(why *wr.Reason, f AccessFault, g *grant, need wr.Access) {
	access, bounds := "RV-7.6.3-M1", "RV-7.6.3-M2"
	if e.window {
		access, bounds = "RV-7.10.6.2-M6", "RV-7.10.6.2-M4"
	}
	why.Allowed = wr.Tagged(g.base, g.length)
	switch missing := need &^ g.access; {
	case f == FaultWrap:
		why.What, why.Rule, why.Remedy = beyond, "RFC 5041 7.1", withinRemedy
	case f == FaultBounds:
		why.Remedy = withinRemedy
		why.What, why.Rule = fmt.Sprintf("the %s has %d octets from TO %#x", e.kind(), g.length, g.base), bounds
	case missing != 0:
		why.Missing = missing
		why.What, why.Rule = fmt.Sprintf("the %s has no %s right", e.kind(), rights(missing)), access
		why.Remedy = fmt.Sprintf("register it with %s", goRights(missing))
		if e.window {
			why.Remedy = fmt.Sprintf("bind it with %s", goRights(missing))
		}
	default:
		why.What, why.Rule = "memory of the "+e.kind()+" has vanished", "RV-7.6.3-M1"
		why.Remedy = "keep it mapped and writable while registered"
	}
}

// rights are in words.
func rights(a wr.Access) string {
	return strings.NewReplacer("-", " ", "|", " and ").Replace(a.String())
}

// goRights are the constants of package verbs.
func goRights(a wr.Access) string {
	return strings.Join(names.Set([]string{"LocalRead", "LocalWrite", "RemoteRead", "RemoteWrite", "BindWindow", "RemoteAtomic"}, a), " and ")
}

// ExplainBind adds to why what the table knows of f, the fault of a Bind.
func (t *Table) ExplainBind(why *wr.Reason, f AccessFault, b *wr.BindRequest, u User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, r := t.index.get(b.Window.Index()), t.index.get(b.Region.Index())
	if checkBind(w, r, b, u) != f {
		return
	}
	switch f {
	case FaultAccess:
		r.explainBindAccess(why, b)
	case FaultBounds, FaultWrap:
		g := r.grant.load()
		r.explainRange(why, f, &g, 0)
		if f == FaultBounds {
			why.Rule = "RV-7.10.6.1-M10"
		}
	case FaultPD:
		why.Rule, why.Remedy = "RV-7.10.6.1-M6", "have window, region and queue pair in one PD"
	case FaultRegion:
		why.Rule, why.Remedy = "RV-7.10.6.1-M5", "name a VA-based region"
	case FaultWindow:
		why.Rule, why.Remedy = "RV-7.10.6.1-M3", "name a window of AllocateWindow that is there"
	case FaultNotInvalid:
		why.Rule, why.Remedy = "RV-7.10.2-M30", "invalidate it first"
	default:
	}
}

func (e *entry) explainBindAccess(why *wr.Reason, b *wr.BindRequest) {
	g := e.grant.load()
	why.Allowed = wr.Tagged(g.base, g.length)
	need := wr.BindWindow | b.Access.LocalOf()
	why.Missing = need &^ g.access
	if why.Missing == 0 {
		why.What, why.Rule = "a window has remote rights only, and one at least", "verbs draft fig. 20"
		why.Remedy = "ask for those"
		return
	}
	why.What, why.Rule = fmt.Sprintf("the region has no %s right", rights(why.Missing)), "RV-7.10.6.1-M7"
	why.Remedy = "register it with " + goRights(why.Missing)
	if why.Missing&wr.BindWindow == 0 {
		why.Rule = "verbs draft fig. 20"
	}
}

// ExplainInvalidate adds to why, whose STag is set, what the table knows of f, the fault of
// an invalidation by u, or if that is remote, by its peer.
func (t *Table) ExplainInvalidate(why *wr.Reason, f AccessFault, u User, remote bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.get(why.STag.Index())
	if e == nil {
		if f == FaultGone || f == FaultSTag {
			why.What, why.Rule, why.Remedy = "no region or window has this STag", "RV-7.8-M12", staleRemedy
		}
		return
	}
	g := e.grant.load()
	switch {
	case f == FaultPD:
		e.explainPD(why, &g, u)
	case f == FaultWindowsBound && e.windows > 0:
		why.What, why.Rule = fmt.Sprintf("windows are bound to the region, %d of them", e.windows), "RV-7.8-M14"
		why.Remedy = "invalidate those first"
	case f == FaultSTag && e.shared:
		why.What, why.Rule = "the region is shared", "RV-7.8-M3"
		why.Remedy = "deregister it instead"
	case f == FaultSTag && e.stag() != why.STag:
		e.explainSTag(why, &g, !e.isRevoked(), 0)
	case f == FaultAccess && remote && g.access&remoteRights == 0:
		why.Missing = remoteRights
		why.What, why.Rule = "the region has no remote right", "RV-7.8-M15"
		why.Remedy = "register it with a remote right"
	case f == FaultAccess && remote:
		why.What, why.Rule = "several queue pairs may use the region", "R5040-8.1.1-M8"
		why.Remedy = "set RemoteInvalidate or QP in RegionConfig"
	}
}
