package rdmap

// Known reports whether RFC 7306 5.2.1 defines o.
func (o AtomicOpcode) Known() bool { return o == FetchAdd || o == CmpSwap }

// Apply is what the operation, which is known, makes of old, the number in the memory of the
// Responder.
func (h *AtomicRequestHeader) Apply(old uint64) uint64 {
	if h.Op == CmpSwap {
		if (h.Compare^old)&h.CompareMask != 0 { // RFC 7306 5.1.2
			return old
		}
		return old&^h.Mask | h.Data&h.Mask
	}
	return addFields(old, h.Data, h.Mask)
}

// addFields adds a and b field by field. Each bit of tops is the highest of a field: no carry
// leaves it (RFC 7306 5.1.1).
func addFields(a, b, tops uint64) uint64 {
	// Without the top bits no carry leaves a field. The sum of three bits where they are is
	// their exclusive or.
	return (a&^tops + b&^tops) ^ (a^b)&tops
}
