package docs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/verbs"
)

// mistake is one that people make with RDMA. a makes it, or b, and a posts.
type mistake struct {
	what   string
	config rnictest.Config
	// post is what a posts, with memory of a of 64 octets. b's memory has the access and the domain that the mistake is about.
	access verbs.Access
	other  bool // b's memory is of another protection domain than its queue pair
	post   func(local *verbs.MR, remote verbs.Remote) verbs.Request
}

func write(local *verbs.MR, remote verbs.Remote) verbs.Request {
	return verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: local.All(), Remote: remote}
}

func send(local *verbs.MR, _ verbs.Remote) verbs.Request {
	return verbs.Request{ID: 1, SGL: local.All()}
}

const everything = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite

var mistakes = []mistake{
	{what: "RDMA Write to memory without the right", access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead, post: write},
	{what: "RDMA Write to memory of another protection domain", access: everything, other: true, post: write},
	{what: "Send of 64 octets to a receive of 16", config: rnictest.Config{Recvs: 1, RecvSize: 16}, access: everything, post: send},
	{what: "Send, and no receive is posted", access: everything, post: send},
	{what: "RDMA Read with a depth of 0 (`ORD`)", config: rnictest.Config{QP: verbs.QPConfig{NoReads: true}}, access: everything, post: func(local *verbs.MR, remote verbs.Remote) verbs.Request {
		return verbs.Request{ID: 1, Op: verbs.OpRead, Local: local.SGE(0, 64), Remote: remote}
	}},
}

// sentence is an error behind what names the connection, with an STag for that of remote, which is drawn at random.
func sentence(err error, remote *verbs.MR) string {
	if err == nil {
		return "nothing"
	}
	s := err.Error()
	if end := (*verbs.StreamError)(nil); errors.As(err, &end) {
		s = end.Sentence()
	}
	return strings.NewReplacer("|", `\|`, remote.STag().String(), "0x00000100").Replace(s)
}

// makes makes the mistake, and returns its row.
func (m mistake) makes(t *testing.T) string {
	c := m.config
	c.Loopback = true
	a, b := rnictest.Pair(t, c)
	local, err := a.QP.PD().Register(make([]byte, 64), everything)
	require.NoError(t, err)
	pd := b.QP.PD()
	if m.other {
		pd, err = b.NIC.AllocatePD()
		require.NoError(t, err)
	}
	remote, err := pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 64), Access: m.access, VA: 0x1000})
	require.NoError(t, err)
	_, err = a.QP.PostSend(m.post(local, remote.Remote(0)))
	if err != nil {
		return fmt.Sprintf("| %s | the post: %s | nothing |\n", m.what, sentence(err, remote))
	}
	<-a.Conn.Done()
	<-b.Conn.Done()
	return fmt.Sprintf("| %s | %s | %s |\n", m.what, sentence(a.Conn.Err(), remote), sentence(b.Conn.Err(), remote))
}

// TestMistakes has the table of docs/errors.md be what a run gives.
func TestMistakes(t *testing.T) {
	text := "| mistake | the side that posts is told (`Conn.Err`) | the peer is told |\n|---|---|---|\n"
	for _, m := range mistakes {
		t.Run(m.what, func(t *testing.T) { text += m.makes(t) })
	}
	docgen.Generated(t, "errors.md", "mistakes", "\n"+text)
}
