package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
)

// The table is an array of slots, and the slots where a key may be lie side by side, so that one RDMA Read fetches them. Nobody
// keeps a reader and the writer apart: a checksum tells a reader that it has seen half of a change.
//
//	octets  0..3    4          5            6..7  8..39  40..127
//	        CRC32C  key size   value size   zero  key    value
const (
	slotSize = 128
	slots    = 4096
	probes   = 4 // slots where a key may be
	maxKey   = 32
	maxValue = slotSize - 8 - maxKey
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode writes a slot, which is also what a client sends to put.
func encode(slot []byte, key string, value []byte) error {
	if key == "" || len(key) > maxKey || len(value) > maxValue {
		return fmt.Errorf("a key has 1 to %d octets, a value up to %d; these have %d and %d", maxKey, maxValue, len(key), len(value))
	}
	clear(slot[:slotSize])
	slot[4], slot[5] = byte(len(key)), byte(len(value))
	copy(slot[8:8+maxKey], key)
	copy(slot[8+maxKey:slotSize], value)
	binary.BigEndian.PutUint32(slot, crc32.Checksum(slot[4:slotSize], castagnoli))
	return nil
}

// decode reads a slot. An empty one has no key; ok is false if it is torn, or nonsense.
func decode(slot []byte) (key string, value []byte, ok bool) {
	if bytes.Equal(slot[:slotSize], make([]byte, slotSize)) {
		return "", nil, true
	}
	k, v := int(slot[4]), int(slot[5])
	if k == 0 || k > maxKey || v > maxValue || binary.BigEndian.Uint32(slot) != crc32.Checksum(slot[4:slotSize], castagnoli) {
		return "", nil, false
	}
	return string(slot[8 : 8+k]), bytes.Clone(slot[8+maxKey:][:v]), true
}

// place is the offset of the first slot where a key may be.
func place(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32()%(slots-probes+1)) * slotSize
}

// put stores a slot that a client has sent. It is refused if it is nonsense, or if other keys have all its places.
func put(table, slot []byte) error {
	key, _, ok := decode(slot)
	if !ok || key == "" {
		return fmt.Errorf("no slot")
	}
	free := -1
	for i := range probes {
		at := place(key) + i*slotSize
		switch there, _, _ := decode(table[at:]); there {
		case key:
			copy(table[at:at+slotSize], slot)
			return nil
		case "":
			if free < 0 {
				free = at
			}
		}
	}
	if free < 0 {
		return fmt.Errorf("no room for %q", key)
	}
	copy(table[free:free+slotSize], slot)
	return nil
}
