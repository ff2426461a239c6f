//go:build conformance

// Package cases are the executable requirements, a file for each section or two of
// a source.
package cases

import (
	"slices"

	"github.com/softrnic/softrnic/conformance"
)

// All is every case, in the order of the sources.
func All() []conformance.Case {
	return slices.Concat(
		// The verbs draft.
		rv5_1,
		rv5_2, rv5_2_pds,
		rv5_3, rv5_3_life,
		rv6_1, rv6_1_3, rv6_1_resize, rv6_1_4,
		rv6_2, rv6_2_start, rv6_2_close, rv6_2_faults, rv6_2_3, rv6_2_4, rv6_2_5,
		rv6_3, rv6_3_5, rv6_3_8, rv6_4, rv6_5,
		rv7_2, rv7_2_1, rv7_3, rv7_3_2_3, rv7_3_2_4, rv7_3_2_5,
		rv7_4, rv7_6, rv7_6_2, rv7_6_3, rv7_8, rv7_9,
		rv7_10, rv7_10_4, rv7_10_6_1, rv7_10_6_2,
		rv9_1, rv9_2_1, rv9_2_2, rv9_2_3, rv9_2_4,
		rv9_2_5_create, rv9_2_5_life, rv9_2_5_modify,
		rv9_2_6_register, rv9_2_6_change, rv9_2_6_shared, rv9_2_6_window,
		// RFC 5040.
		r5040_4, r5040_5, r5040_5_2, r5040_5_4, r5040_5_5, r5040_6,
		r5040_8, r5040_8_api, r5040_blind,
		// RFC 5041.
		// RFC 5042.
		// RFC 5044.
		// RFC 6581.
		// RFC 7306.
	)
}
