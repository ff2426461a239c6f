package verbs

import "github.com/google/uuid"

// RNICID names an RNIC: a UUID of RFC 9562, in network order. A uuid.UUID of another module converts to it. The zero
// RNICID is none.
type RNICID [16]byte

// NewRNICID is a random one.
func NewRNICID() RNICID { return RNICID(uuid.New()) }

// String is the form of RFC 9562 4: 6ba7b810-9dad-11d1-80b4-00c04fd430c8.
func (id RNICID) String() string { return uuid.UUID(id).String() }

// MarshalText makes JSON show that form.
func (id RNICID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads it.
func (id *RNICID) UnmarshalText(text []byte) error { return (*uuid.UUID)(id).UnmarshalText(text) }
