package verbs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/wr"
)

// fitsLine wants an error to fit a line, without a word that is there twice in a row.
func fitsLine(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	assert.LessOrEqual(t, len(text), 200, text)
	words := strings.Fields(text)
	for i, word := range words[1:] {
		assert.NotEqual(t, words[i], word, text)
	}
}

// TestErrorLines: what is made of reasons that are as long as they may be (TestReasonLines of package qp) fits a line; the rule is last, if it
// has room.
func TestErrorLines(t *testing.T) {
	why := func(words int) *Reason {
		return &Reason{
			Operation: OpWrite.Words(), QP: 123, STag: 0x1234567, HasSTag: true, Asked: wr.Tagged(0x7f0123456780, 4096),
			What: strings.Repeat("w", 30), Remedy: strings.Repeat("r", words-30-len("RDMA Write of 4096 octets at TO 0x7f0123456780 of STag 0x01234567 refused: : ")),
			Rule: "RV-7.10.6.2-M4",
		}
	}
	own := why(162)
	request := Completion{Op: OpWrite, ID: 123, QP: 123, Status: StatusBaseBounds}
	fitsLine(t, own)
	fitsLine(t, &CompletionError{Op: OpWrite, ID: 123, QP: 123, Status: StatusBaseBounds, Why: own})
	fitsLine(t, &StreamError{QP: 123, Why: own, Terminate: &TerminateMessage{Sent: true}, Request: request})
	remote := &StreamError{QP: 123, Why: why(169), Terminate: &TerminateMessage{Sent: true, Code: 0x1101}}
	fitsLine(t, remote)
	assert.True(t, strings.HasSuffix(remote.Error(), "; sent Terminate 0x1101"), remote.Error())
	afar := why(180)
	afar.ByPeer = true
	fitsLine(t, &StreamError{QP: 123, Why: afar, Terminate: &TerminateMessage{Code: 0x1101}, Request: request})
	fitsLine(t, &CompletionError{Op: OpWrite, ID: 123, QP: 123, Status: StatusRemoteTermination, Why: afar})

	short := &StreamError{QP: 123, Why: why(120), Terminate: &TerminateMessage{Sent: true, Code: 0x1101}}
	assert.True(t, strings.HasSuffix(short.Error(), "; sent Terminate 0x1101 (RV-7.10.6.2-M4)"), short.Error())
	assert.Equal(t, "QP 123: "+short.Sentence(), short.Error())
}

// TestImmediateErrorLines: each Immediate Error, refused by a verb with a long name and its remedy, fits a line.
func TestImmediateErrorLines(t *testing.T) {
	n := 0
	for code := ImmediateError(1); int(code) < len(remedies); code++ {
		if strings.HasPrefix(code.Error(), "ImmediateError") {
			continue
		}
		n++
		err := refused(&Reason{Err: code, What: "65536, at most 65535"}, "Set Completion Event Handler", "verbs draft 9.2.6.1", Reason{QP: 12345})
		fitsLine(t, err)
		assert.ErrorIs(t, err, code)
		const rule = " (verbs draft 9.2.6.1)"
		assert.True(t, strings.HasSuffix(err.Error(), rule) || len(err.Error())+len(rule) > 200, err)
	}
	assert.Greater(t, n, 30)
}
