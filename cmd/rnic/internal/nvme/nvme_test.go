package nvme

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/verbs"
)

// image makes a disk image of n octets.
func image(t *testing.T, n int64) string {
	name := filepath.Join(t.TempDir(), "disk.img")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.NoError(t, os.Truncate(name, n))
	return name
}

// TestServe: a host whose private data are not NVMe's is refused with them, and the target goes on until it is stopped.
func TestServe(t *testing.T) {
	s := clitest.StartServer(t, "nvme", "serve", "--listen", "127.0.0.1:0", image(t, 1<<20), "mem:1")
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, nic.Close()) }()
	pd, err := nic.AllocatePD()
	require.NoError(t, err)
	for range 2 {
		cq, err := nic.CreateCQ(verbs.CQConfig{})
		require.NoError(t, err)
		qp, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
		require.NoError(t, err)
		_, err = cm.Dial(t.Context(), s.Addr, qp, cm.Config{PrivateData: []byte("not NVMe")})
		var refused *cm.RejectedError
		require.ErrorAs(t, err, &refused)
		assert.NotEmpty(t, refused.PrivateData, "the status that the transport gives")
	}
	s.Stop()
	r := <-s.Done
	assert.Zero(t, r.Status, r.Stderr)
}

// TestLoopback: without --listen nobody from elsewhere gets to the disks.
func TestLoopback(t *testing.T) {
	assert.Equal(t, "127.0.0.1:4420", serveCommand().Flag("listen").DefValue)
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "DISK is missing"},
		{[]string{"mem:0"}, "want mem: and 1 to"},
		{[]string{"mem:a lot"}, "want mem: and 1 to"},
		{[]string{filepath.Join(t.TempDir(), "none")}, "no such file"},
		{[]string{t.TempDir()}, "directory"},
		{[]string{image(t, 511)}, "make it longer first"},
		{[]string{"--advertise", "here", "mem:1"}, "want an address and a port"},
		{[]string{"--queues", "0", "mem:1"}, "queues"},
	} {
		r := clitest.Run(t.Context(), append([]string{"nvme", "serve", "--listen", "127.0.0.1:0"}, c.args...)...)
		assert.NotZero(t, r.Status, c.args)
		assert.Contains(t, r.Stderr, c.says)
	}
}
