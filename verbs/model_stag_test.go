package verbs_test

import (
	"github.com/softrnic/softrnic/verbs"
)

// What changes the state of an STag: draft 7.3.2.5, 7.8, 7.10.

// invalidateLocal is an Invalidate Local STag, or that of an RDMA Read with
// Invalidate (7.8, 7.10.4).
func (q *modelQP) invalidateLocal(s verbs.STag) verbs.Status {
	r, w := q.node.named(s)
	switch {
	case r != nil:
		switch {
		case r.valid && r.stag() != s, r.shared:
			return verbs.StatusInvalidSTag
		case r.pd != q.pd:
			return verbs.StatusInvalidPD
		case r.windows > 0: // figure 36 has no status of its own
			return verbs.StatusInvalidSTag
		}
		r.valid = false
	case w != nil:
		switch {
		case w.valid && w.stag() != s:
			return verbs.StatusInvalidSTag
		case w.valid && w.qp != q, !w.valid && w.pd != q.pd:
			return verbs.StatusInvalidPD
		}
		w.unbind()
	default:
		return verbs.StatusInvalidSTag
	}
	return verbs.StatusSuccess
}

// invalidateRemote is that of an inbound Send with Invalidate. The code is that of
// the Terminate Message, RFC 5040 4.8.
func (q *modelQP) invalidateRemote(s verbs.STag) (verbs.Status, int) {
	const refused, missing = 0x0109, 0x0209
	if q.noRead && q.noWrite {
		return verbs.StatusInvalidateSTag, refused
	}
	r, w := q.node.named(s)
	switch {
	case r != nil:
		switch {
		case r.valid && r.stag() != s, r.shared:
			return verbs.StatusInvalidSTag, refused
		case r.pd != q.pd, r.scope != nil && r.scope != q, r.rights&remoteRightsOnly == 0, !r.open && r.scope == nil, r.windows > 0:
			return verbs.StatusInvalidateSTag, refused
		}
		r.valid = false
	case w != nil:
		switch {
		case w.valid && w.stag() != s:
			return verbs.StatusInvalidSTag, refused
		case w.valid && w.qp != q, !w.valid && w.pd != q.pd:
			return verbs.StatusInvalidateSTag, refused
		}
		w.unbind()
	case s>>8 == 0:
		return verbs.StatusInvalidSTag, refused
	default:
		return verbs.StatusInvalidSTag, missing
	}
	return verbs.StatusSuccess, 0
}

// unbind makes a window Invalid.
func (w *modelWindow) unbind() {
	if w.valid {
		w.valid = false
		w.qp.windows--
		w.region.windows--
		w.qp, w.region = nil, nil
	}
}

// bind is a Bind Memory Window (7.10.6.1).
func (q *modelQP) bind(b *verbs.BindRequest) verbs.Status {
	_, w := q.node.named(b.Window)
	r, _ := q.node.named(b.Region)
	switch {
	case q.noBind:
		return verbs.StatusAccess
	case w == nil:
		return verbs.StatusInvalidWindow
	case w.valid:
		return verbs.StatusSTagNotInvalid
	case r == nil, !r.valid, r.stag() != b.Region:
		return verbs.StatusInvalidRegion
	case w.pd != q.pd, r.pd != q.pd, r.scope != nil && r.scope != q:
		return verbs.StatusInvalidPD
	case r.rights&verbs.BindWindow == 0, !figure20(r.rights, b.Access):
		return verbs.StatusAccess
	case r.zero: // figure 19
		return verbs.StatusInvalidRegion
	case b.Length == 0:
		return verbs.StatusBaseBounds
	}
	if f := within(b.VA, b.Length, r.base, r.length); f != accessFine {
		return localStatus[f]
	}
	w.valid, w.key, w.rights, w.qp, w.region = true, uint8(b.Window), b.Access, q, r
	w.zero, w.base, w.length = b.Addressing == verbs.ZeroBased, b.VA, b.Length
	if w.zero {
		w.base = 0
	}
	w.span = r.span.cut(int(b.VA-r.base), int(b.Length))
	q.windows++
	r.windows++
	return verbs.StatusSuccess
}

// fastRegister is a Fast-Register Non-Shared Memory Region (7.3.2.5).
func (q *modelQP) fastRegister(f *verbs.FastRegisterRequest) verbs.Status {
	r, _ := q.node.named(f.STag)
	switch {
	case !q.privileged:
		return verbs.StatusNotPrivileged
	case r == nil, r.shared:
		return verbs.StatusInvalidSTag
	case r.pd != q.pd:
		return verbs.StatusInvalidPD
	case r.valid:
		return verbs.StatusSTagNotInvalid
	case !regionRights(f.Access), f.Access&remoteRightsOnly != 0 && !r.remote:
		return verbs.StatusInvalidAccessRights
	}
	zero := f.Addressing == verbs.ZeroBased
	base, span, bad := q.node.buffers(f.Buffers, r.pbl, zero, f.VA)
	if bad != listFine {
		return fastStatus(bad, q.node.block)
	}
	r.valid, r.key, r.rights = true, uint8(f.STag), f.Access
	r.zero, r.base, r.length = zero, base, f.Buffers.Length
	r.span, r.size, r.fbo = span, f.Buffers.Size, f.Buffers.FBO
	return verbs.StatusSuccess
}

func fastStatus(f modelListFault, block bool) verbs.Status {
	if f == badSize && block {
		return verbs.StatusInvalidPhysBufferSize
	}
	return map[modelListFault]verbs.Status{
		badSize: verbs.StatusInvalidPageSize, tooLong: verbs.StatusPhysBufferListTooLong,
		badFBO: verbs.StatusInvalidFBO, badLength: verbs.StatusInvalidFastRegLength,
		badVA: verbs.StatusInvalidVA, badEntry: verbs.StatusInvalidPhysBufferEntry,
	}[f]
}
