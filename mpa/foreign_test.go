package mpa

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpeaks(t *testing.T) {
	for octets, want := range map[string]string{
		"GET / HTTP/1.1\r\n":                     SpeaksHTTP,
		"DELETE /":                               SpeaksHTTP,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":       SpeaksHTTP,
		"HTTP/1.0 400 Bad Request\r\n":           SpeaksHTTP,
		"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n":     SpeaksSSH,
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc":   SpeaksTLS,
		"\x15\x03\x03\x00\x02\x02\x46":           SpeaksTLS,
		"\x15\x03\x05\x00\x02":                   "",
		"\x00\x12\x41\x43\x00\x00\x00\x00":       "",
		"GETTING":                                "",
		"MPA ID Xxx Frame":                       "",
		"G":                                      "",
		strings.Repeat("\x00", 20):               "",
		"220 mail.example.org ESMTP Postfix\r\n": "",
	} {
		_, _, err := ParseStartup([]byte(octets))
		var e *Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, want, e.Speaks, "%q", octets)
	}
}

// TestAnswer: a peer of another protocol reads all of the answer, and the end, though it has sent more than Await reads of it.
func TestAnswer(t *testing.T) {
	for octets, want := range map[string]string{"GET / " + strings.Repeat("x", 20_000): "HTTP!", "SSH-2.0-x\r\n": "SSH!", "MPA ID Xxx Frame": ""} {
		client, server := tcpPair(t)
		_, err := client.Write([]byte(octets))
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() {
			_, err := Await(context.Background(), server, Config{Answer: func(speaks string) []byte { return []byte(speaks + "!") }})
			done <- err
		}()
		got, err := io.ReadAll(client)
		require.NoError(t, err, "closed, and not reset")
		assert.Equal(t, want, string(got))
		require.NoError(t, client.Close())
		err = <-done
		if want != "" {
			require.EqualError(t, err, "mpa: invalid startup frame: the peer speaks "+strings.TrimSuffix(want, "!")+", and this port iWARP")
		}
		require.Error(t, err)
	}
}

// TestAnswerUnread: a peer that neither reads nor closes costs a second, and none when the context has ended.
func TestAnswerUnread(t *testing.T) {
	for name, want := range map[string]time.Duration{"unread": farewell, "canceled": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				defer b.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				start := time.Now()
				go func() {
					_, err := Await(ctx, a, Config{Answer: func(string) []byte { return []byte("no") }})
					done <- err
				}()
				_, err := b.Write([]byte("GET / HTTP/1.1\r\n"))
				require.NoError(t, err)
				synctest.Wait()
				if want == 0 {
					cancel()
				}
				var e *Error
				require.ErrorAs(t, <-done, &e)
				assert.Equal(t, SpeaksHTTP, e.Speaks)
				assert.Equal(t, want, time.Since(start))
			})
		})
	}
}

// TestServersOfOthers: the Initiator says what has answered.
func TestServersOfOthers(t *testing.T) {
	for octets, want := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n\r\n": "the peer answered with HTTP: it is no RDMA listener",
		"SSH-2.0-x\r\n":                    "the peer answered with SSH: it is no RDMA listener",
		"\x15\x03\x03\x00\x02\x02\x46":     "the peer answered with TLS: it is no RDMA listener",
		"+OK ready\r\n":                    `the key is "+OK ready\r\n"`,
	} {
		client, server := tcpPair(t)
		_, err := server.Write([]byte(octets))
		require.NoError(t, err)
		_, err = Initiate(t.Context(), client, Config{})
		require.EqualError(t, err, "mpa: invalid startup frame: "+want)
	}
}
