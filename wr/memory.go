package wr

// Addressing says what the tagged offset of the first octet of a Memory Region
// or Window is (verbs draft 7.6.1).
type Addressing uint8

// The addressing types.
const (
	// VABased: the Virtual Address that the Consumer gives (7.6.1.1).
	VABased Addressing = iota
	// ZeroBased: zero (7.6.1.2).
	ZeroBased
)

func (a Addressing) String() string {
	return name([]string{VABased: "VA-based", ZeroBased: "zero-based"}, int(a), "Addressing")
}

// PhysicalBuffers is a Physical Buffer List (verbs draft 7.6.2): a page list on
// an RNIC in page mode, a block list on one in block mode. The memory it
// describes begins FBO octets into the first buffer and goes on, over whole
// buffers, for Length octets.
type PhysicalBuffers struct {
	// Size is that of every buffer, in octets.
	Size uint64
	// Addresses are physical addresses of the RNIC, one for each buffer. Those
	// of pages are multiples of Size.
	Addresses []uint64
	// FBO is the First Byte Offset, less than Size.
	FBO uint64
	// Length is in octets, at least 1.
	Length uint64
}

// BindRequest are the modifiers of a Bind Memory Window work request (verbs draft
// 9.3.1.1).
type BindRequest struct {
	// Window names the window by its STag index; its key becomes the window's.
	Window STag
	// Region is the STag of the Memory Region, index and key.
	Region STag
	// VA is the tagged offset in the region of the first octet bound. It is
	// the base of a VA-based window; a zero-based one begins at 0.
	VA uint64
	// Length is in octets.
	Length uint64
	// Addressing is that of the window.
	Addressing Addressing
	// Access is one or more of RemoteRead, RemoteWrite (figure 20) and RemoteAtomic.
	Access Access
}

// FastRegisterRequest are the modifiers of a Fast-Register Non-Shared Memory Region
// work request (verbs draft 9.3.1.1).
type FastRegisterRequest struct {
	// STag names the region by its index; its key becomes the region's.
	STag STag
	// Buffers is the memory. PostSend copies it.
	Buffers PhysicalBuffers
	// Addressing is that of the region; VA is its base if VA-based.
	Addressing Addressing
	VA         uint64
	// Access is a valid combination of figure 18.
	Access Access
}
