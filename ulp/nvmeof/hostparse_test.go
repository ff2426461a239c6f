package nvmeof

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPages is what a host parses of what a target says: nothing of it panics, and what passes is within its bounds.
func FuzzPages(f *testing.F) {
	c := &controller{target: &Target{config: Config{Depth: 128, InlineData: 4096}}, subsys: &Subsystem{}, nqn: testNQN, id: 1}
	good := make([]byte, identifySize)
	c.identifyController(good)
	f.Add(good)
	good = make([]byte, identifySize)
	s, err := NewSubsystem(testNQN, []Disk{Memory(1 << 20)})
	require.NoError(f, err)
	s.identify(good, 1)
	f.Add(good)
	t := &Target{subsystems: map[string]*Subsystem{testNQN: s}}
	f.Add(t.discoveryLog("127.0.0.1:4420"))
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0})
	f.Add(hello{hsqsize: 31}.accepted())
	f.Add(rejected(rejectInvalidQID))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = decodeRejected(b).Error()
		_ = decodeAccepted(b, hello{hsqsize: 31})
		page := make([]byte, identifySize)
		copy(page, b)
		_ = CommandError{Command: "Read", Status: decodeCompletion(page).status, Detail: connectDetail(ConnectParameter, le.Uint64(page))}
		for _, discovery := range []bool{true, false} {
			c, err := parseController(page, uint(page[0]&0xf), discovery)
			if err == nil && (c.MaxTransfer < 4096 || c.MaxTransfer > maxTransfer || !discovery && (c.capsule < commandSize || c.capsule > commandSize+mostInCapsule)) {
				t.Fatalf("%+v", c)
			}
		}
		if n, err := parseNamespace(page); err == nil && (n.size <= 0 || n.block < blockSize || n.block > maxTransfer || n.size%int64(n.block) != 0) {
			t.Fatalf("%+v", n)
		}
		if nsids, _, err := parseActive(page, 0); err == nil && !slices.IsSorted(nsids) {
			t.Fatal(nsids)
		}
		_ = parseDiscovery(page[:discoveryEntry])
	})
}
