package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInfoInEitherMode(t *testing.T) {
	pages := rnic(t.Context(), "info")
	assert.Regexp(t, `(?m)^mode +page list$`, pages.stdout)
	assert.Regexp(t, `(?m)^page sizes +4K 8K .* 512M 1G$`, pages.stdout)
	assert.Regexp(t, `(?m)^shared receive +yes$`, pages.stdout)
	blocks := rnic(t.Context(), "info", "--block-mode")
	assert.Regexp(t, `(?m)^mode +block list$`, blocks.stdout)
	assert.Regexp(t, `(?m)^max block +1,073,741,824$`, blocks.stdout)
}

func TestCell(t *testing.T) {
	for want, v := range map[string]any{
		"no": false, "1,024": 1024, "-5": -5, "0 1023 1K 5T 5120T": []uint64{0, 1023, 1024, 5 << 40, 5 << 50}, "x": "x",
	} {
		assert.Equal(t, want, cell(v))
	}
}
