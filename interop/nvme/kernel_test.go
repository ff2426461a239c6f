//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	assert.True(t, split("2e3c83d3", "d33c8395"), "three octets and one, as siw printed it")
	assert.True(t, split("40d05cf4", "f4d05cd4"))
	assert.True(t, split("99990403", "04030201"), "two and two")
	assert.True(t, split("99040302", "04030201"), "one and three")
	assert.False(t, split("04030200", "04030201"), "another CRC")
	assert.False(t, split("99999904", "04030201"), "the second octet of three is lost")
	assert.False(t, split("x", "04030201"))
}

func TestJudge(t *testing.T) {
	const flaw = "[  14.4] siw: crc error. in: 40d05cf4, own f4d05cd4, op 0\n"
	const again = "[  14.5] nvme nvme0: starting error recovery\n"
	said, err := judge(again, "[ 1.0] nvme nvme0: creating 4 I/O queues.\n")
	require.NoError(t, err)
	assert.Equal(t, "no warning, no I/O error", said)
	said, err = judge("", flaw+again)
	require.NoError(t, err)
	assert.Contains(t, said, "misread a CRC that TCP had cut (1 times)")
	for name, log := range map[string][2]string{
		"a recovery too many": {"", flaw + again + again},
		"a bad CRC":           {"[ 1] siw: crc error. in: 04030200, own 04030201, op 0\n", ""},
		"an I/O error":        {"[ 1] blk_update_request: I/O error, dev nvme0n1\n", ""},
		"a warning":           {"", "[ 1] WARNING: CPU: 0 PID: 1 at x.c:1\n"},
		"a timeout":           {"", "[ 1] nvme nvme0: I/O 0 QID 1 timeout\n"},
	} {
		_, err := judge(log[0], log[1])
		assert.Error(t, err, name)
	}
}
