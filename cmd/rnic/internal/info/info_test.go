package info

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

func TestInfoInEitherMode(t *testing.T) {
	pages := clitest.Run(t.Context(), "info")
	assert.Regexp(t, `(?m)^mode +page list$`, pages.Stdout)
	assert.Regexp(t, `(?m)^page sizes +4K 8K .* 512M 1G$`, pages.Stdout)
	assert.Regexp(t, `(?m)^features +block mode, S-RQ, resize queues, change IRD, raise ORD$`, pages.Stdout)
	assert.Regexp(t, `(?m)^extensions +yes$`, pages.Stdout)
	blocks := clitest.Run(t.Context(), "info", "--block-mode")
	assert.Regexp(t, `(?m)^mode +block list$`, blocks.Stdout)
	assert.Regexp(t, `(?m)^max block +1,073,741,824$`, blocks.Stdout)
}

func TestCell(t *testing.T) {
	for want, v := range map[string]any{
		"no": false, "1,024": 1024, "-5": -5, "0 1023 1K 5T 5120T": []uint64{0, 1023, 1024, 5 << 40, 5 << 50}, "x": "x",
	} {
		assert.Equal(t, want, cell(v))
	}
}

func TestPrintAttributes(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printAttributes(&out, struct {
		Vendor     string
		MaxQPs     int
		MaxSendSGE int
		SRQ        bool
	}{"x", 5, 16, true}))
	assert.Equal(t, "vendor        x\nmax QPs       5\nmax send SGE  16\nSRQ           yes\n", out.String())
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "X": "X", "QPs": "QPs", "MaxQPs": "max QPs", "MaxQPsPerPD": "max QPs per PD",
		"SRQLimit": "SRQ limit", "MaxSendSGE": "max send SGE", "Accesses": "accesses", "PDs": "PDs",
	} {
		assert.Equal(t, want, words(name))
	}
}

func TestInfo(t *testing.T) {
	text := clitest.Run(t.Context(), "info")
	assert.Zero(t, text.Status, text.Stderr)
	assert.Greater(t, len(text.Stdout), 100)

	asJSON := clitest.Run(t.Context(), "info", "--json")
	assert.Zero(t, asJSON.Status)
	var attributes map[string]any
	clitest.Decode(t, asJSON.Stdout, &attributes)
	assert.Equal(t, bytes.Count([]byte(text.Stdout), []byte("\n")), len(attributes), "one line each")
	for name := range attributes {
		assert.Regexp(t, `^[a-z]+(_[a-z]+)*$`, name)
	}
	for _, name := range []string{"id", "qps", "write_sge", "shared_ird", "features", "max_private_data", "crc_default"} {
		assert.Contains(t, attributes, name)
	}
}
