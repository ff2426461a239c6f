package main

import (
	"bufio"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/internal/siw"
)

func TestSaid(t *testing.T) {
	exit := errors.New("exit status 1")
	tests := []struct{ name, output, want string }{
		{"what made the server fail", "cq completion failed status 5\nwait for RDMA_WRITE_ADV state 11\nrping server failed: -1\n", "siw: exit status 1: cq completion failed status 5; wait for RDMA_WRITE_ADV state 11"},
		{"three lines at most", "1\n2\n3\n4\n", "siw: exit status 1: 2; 3; 4"},
		{"last telling line", "post send error 22\nserver DISCONNECT EVENT...\nwait for RDMA_READ_ADV state 10\n", "siw: exit status 1: post send error 22"},
		{"nothing", "", "siw: exit status 1: printed nothing"},
		{"noise only", "LISTENING\nclient DISCONNECT EVENT...\n", "siw: exit status 1: printed nothing"},
		{"no newline at the end", "data mismatch!", "siw: exit status 1: data mismatch!"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := said("siw", exit, tt.output)
			require.ErrorIs(t, err, exit)
			assert.EqualError(t, err, tt.want)
		})
	}
	assert.NoError(t, said("siw", nil, "anything"))
	assert.ErrorIs(t, said("siw", exit, "LISTENING\nSTALLED 0x00000028 octets unread\nTerminated\n"), errStalled)
	assert.ErrorIs(t, said("siw", exit, "WEDGED\n"), errWedged)
}

func TestListeningPort(t *testing.T) {
	tests := []struct {
		name, log string
		want      int
	}{
		{"IPv4", "rnic: listening on 127.0.0.1:40123\nmore\n", 40123},
		{"IPv6", "rnic: listening on [::]:7174\n", 7174},
		{"no port", "rnic: cannot listen\n", 0},
		{"ended", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := listeningPort(bufio.NewReader(strings.NewReader(tt.log)))
			assert.Equal(t, tt.want != 0, err == nil)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestComplete(t *testing.T) {
	h := &harness{rounds: 3}
	assert.NoError(t, h.complete([]byte(`{"role":"client","rounds":3,"validated":true}`)))
	assert.ErrorContains(t, h.complete([]byte(`{"rounds":2,"validated":true}`)), "2 of 3 rounds")
	assert.ErrorContains(t, h.complete([]byte(`{"rounds":3,"validated":false}`)), "validated false")
	assert.ErrorContains(t, h.complete(nil), "summary")
}

// The scripts run in a guest that tests do not boot; here a shell parses them.
func TestScriptsParse(t *testing.T) {
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	scripts := []string{
		serverScript(64, ""),
		clientScript(siw.HostAddr, 1234, 3, 65535),
		controlScript(64, 3),
	}
	for _, s := range scripts {
		cmd := exec.Command(sh, "-n")
		cmd.Stdin = strings.NewReader(s)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s\n%s", s, out)
	}
	assert.Contains(t, serverScript(64, ""), ":1C06 ", "port 7174 as /proc/net/tcp prints it")
	assert.NotContains(t, strings.Join(scripts, ""), "%!", "a format verb without its argument")
	// If both ends fail the server's status is the one that counts.
	assert.Contains(t, controlScript(64, 3), "[ $rc = 0 ] || exit $rc\nexit $client")
}
