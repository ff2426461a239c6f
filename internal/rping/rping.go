// Package rping holds what rdma-core's rping puts on the wire: the control
// message by which one side names a buffer to the other, and the text that a
// round carries. It does no I/O; `rnic ping` drives both roles with it.
//
// A round, driven by the client:
//
//	client                                server
//	  | Send  Buffer (the data)             |
//	  |------------------------------------>|
//	  |                 RDMA Read of it     |
//	  |<----------------------------------->|
//	  |             Send  go ahead (zeros)  |
//	  |<------------------------------------|
//	  | Send  Buffer (the sink)             |
//	  |------------------------------------>|
//	  |                 RDMA Write to it    |
//	  |<------------------------------------|
//	  |             Send  go ahead (zeros)  |
//	  |<------------------------------------|
//
// The Sends alternate strictly, so one posted Receive a side is enough.
package rping

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/softrnic/softrnic/wr"
)

// MessageSize is the length in octets of every control message, in both
// directions. A receiver treats another length as an error.
const MessageSize = 16

// Buffer is the contents of a control message: Length octets at Remote.
// The server's "go ahead" is the zero Buffer, and its contents are ignored.
//
//	 0                   8          12          16
//	+-------------------+-----------+-----------+
//	|  tagged offset    |   STag    |  length   |
//	+-------------------+-----------+-----------+
//
// All fields are big-endian.
type Buffer struct {
	Remote wr.Remote
	Length uint32
}

// Put writes b to the first MessageSize octets of dst, which must have them.
func (b Buffer) Put(dst []byte) {
	binary.BigEndian.PutUint64(dst, b.Remote.TO)
	binary.BigEndian.PutUint32(dst[8:], uint32(b.Remote.STag))
	binary.BigEndian.PutUint32(dst[12:], b.Length)
}

// Parse reads a control message. It fails if msg is not MessageSize octets.
func Parse(msg []byte) (Buffer, error) {
	if len(msg) != MessageSize {
		return Buffer{}, fmt.Errorf("control message of %d octets, want %d: the peer does not speak the rping protocol", len(msg), MessageSize)
	}
	return Buffer{
		Remote: wr.Remote{
			TO:   binary.BigEndian.Uint64(msg),
			STag: wr.STag(binary.BigEndian.Uint32(msg[8:])),
		},
		Length: binary.BigEndian.Uint32(msg[12:]),
	}, nil
}

// The octets that follow the text of a round, 'A' to 'z'.
const (
	first = 'A'
	last  = 'z'
)

// Fill writes the data of a round (0, 1, ...) to buf: the text
// "rdma-ping-ROUND: ", then octets that count up from a start that moves by
// one each round, and one NUL at the end. A buffer that is too short for the
// text holds its beginning, and the NUL.
func Fill(buf []byte, round int) {
	if len(buf) == 0 {
		return
	}
	var scratch [40]byte
	text := append(scratch[:0], "rdma-ping-"...)
	text = strconv.AppendInt(text, int64(round), 10)
	text = append(text, ": "...)
	n := copy(buf, text)
	c := byte(first + round%(last-first+1))
	for i := n; i < len(buf); i++ {
		buf[i] = c
		if c++; c > last {
			c = first
		}
	}
	buf[len(buf)-1] = 0
}

// Text returns the data as rping prints it: up to the first NUL.
func Text(data []byte) []byte {
	text, _, _ := bytes.Cut(data, []byte{0})
	return text
}
