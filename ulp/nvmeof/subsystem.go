package nvmeof

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// DiscoveryNQN is the name of the discovery subsystem, which every target has.
const DiscoveryNQN = "nqn.2014-08.org.nvmexpress.discovery"

// maxNamespaces bounds the nsid.
const maxNamespaces = 1024

// Subsystem is a set of namespaces under a name. It may be changed while it is served: hosts are told.
type Subsystem struct {
	nqn   string
	hosts []string

	mu          sync.Mutex
	disks       map[uint32]*namespace
	controllers map[uint16]*controller
}

// NewSubsystem makes one with the given NQN, whose namespaces are 1, 2, ... It is for all hosts, or for those NQNs only.
func NewSubsystem(nqn string, disks []Disk, hosts ...string) (*Subsystem, error) {
	if nqn == "" || len(nqn) > maxNQN || nqn == DiscoveryNQN {
		return nil, fmt.Errorf("nvmeof: NQN %q: want 1 to 223 octets, and not the discovery subsystem's", nqn)
	}
	s := &Subsystem{nqn: nqn, hosts: hosts, disks: map[uint32]*namespace{}, controllers: map[uint16]*controller{}}
	for i, d := range disks {
		if err := s.Set(uint32(i+1), d); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Set makes d the namespace nsid, 1 to 1024, or removes it if d is nil, and tells the hosts. Commands that have begun
// go on with the disk that was there: close it when their hosts are gone.
func (s *Subsystem) Set(nsid uint32, d Disk) error {
	if nsid == 0 || nsid > maxNamespaces {
		return fmt.Errorf("nvmeof: nsid %d: want 1 to %d", nsid, maxNamespaces)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d == nil {
		delete(s.disks, nsid)
	} else {
		s.disks[nsid] = &namespace{Disk: d}
	}
	for _, c := range s.controllers {
		c.namespaceChanged(nsid)
	}
	return nil
}

func (s *Subsystem) disk(nsid uint32) *namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disks[nsid]
}

func (s *Subsystem) nsids() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.disks))
}

// id is a stable identifier of a namespace (16 octets), a version 8 UUID too.
func (s *Subsystem) id(nsid uint32) []byte {
	h := sha256.Sum256(binary.LittleEndian.AppendUint32([]byte(s.nqn+"\x00"), nsid))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return h[:16]
}
