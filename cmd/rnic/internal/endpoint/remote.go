package endpoint

import (
	"encoding/json"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// RemoteBuffer is how a buffer's address travels in private data and notes.
type RemoteBuffer struct {
	STag uint32 `json:"stag"`
	TO   uint64 `json:"to"`
}

// AddressOf is octet off of a region, as a peer names it.
func AddressOf(mr *verbs.MR, off int) RemoteBuffer { return FromRemote(mr.Remote(off)) }

// FromRemote is r as it travels.
func FromRemote(r verbs.Remote) RemoteBuffer { return RemoteBuffer{uint32(r.STag), r.TO} }

// At is the address off octets into the buffer.
func (b RemoteBuffer) At(off int) verbs.Remote {
	return verbs.Remote{STag: verbs.STag(b.STag), TO: b.TO + uint64(off)}
}

// Marshal encodes private data and notes. The types of this program always encode.
func Marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return data
}
