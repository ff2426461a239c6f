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
		rv6_2, rv6_2_start, rv6_2_rts, rv6_2_close, rv6_2_abort, rv6_2_faults, rv6_2_3, rv6_2_4, rv6_2_5, rv6_2_closing_errors,
		rv6_3, rv6_3_life, rv6_3_5, rv6_3_6, rv6_3_8, rv6_4, rv6_4_inbound, rv6_5,
		rv7_2, rv7_2_1, rv7_3, rv7_3_2_3, rv7_3_2_4, rv7_3_2_5,
		rv7_4, rv7_6, rv7_6_2, rv7_6_3, rv7_8, rv7_9,
		rv7_10, rv7_10_4, rv7_10_6_1, rv7_10_6_2,
		rv8_1_1, rv8_1_2_1, rv8_1_2_2, rv8_1_figure21, rv8_1_2_3, rv8_1_3_1, rv8_1_3_2, rv8_1_sgl, rv8_1_3_3,
		rv8_2_1, rv8_2_1_slots, rv8_2_2, rv8_2_2_visible, rv8_2_2_1, rv8_2_2_2, rv8_2_4, rv8_2_5,
		rv8_3, rv8_3_2,
		rv9_1, rv9_2_1, rv9_2_2, rv9_2_3, rv9_2_4,
		rv9_2_5_create, rv9_2_5_life, rv9_2_5_modify,
		rv9_2_6_register, rv9_2_6_change, rv9_2_6_shared, rv9_2_6_window,
		rv9_3_1_1, rv9_3_1_1_memory, rv9_3_1_2, rv9_3_2,
		rv9_4, rv9_5,
		pv6, pv7, pv8, pv9,
		// RFC 5040.
		r5040_4, r5040_4_8, r5040_5, r5040_5_2, r5040_5_2_2, r5040_5_4, r5040_5_5, r5040_6,
		r5040_8, r5040_8_shared, r5040_8_api, r5040_blind, blind_5040, pr5040,
		// RFC 5041.
		r5041_3, r5041_3_api, r5041_4, r5041_4_2, r5041_4_3, r5041_5_2, r5041_5_3,
		r5041_6, r5041_7, r5041_8, r5041_8_3_1, r5041_8_api, r5041_blind,
		blind_5041,
		// Across sections: each way of a segment, and what a region is tied to.
		pathsTagged, pathsUntagged, pathsSound, pathsSent, rvScope, r5040_4_8_read, r5041_4_3_wrap,
		// RFC 5042.
		r5042_3, r5042_6, r5042_6_4,
		// RFC 5044.
		r5044_3, r5044_4_2, r5044_4_3, r5044_4_4, r5044_4_4_use, r5044_4_5, r5044_5,
		r5044_7_1, r5044_7_1_private, r5044_7_1_2, r5044_7_api, r5044_8, r5044_blind,
		blind_5044,
		// RFC 6581.
		r6581_6, r6581_9_1, r6581_9_2, r6581_10, r6581_blind, blind_6581,
		// RFC 7306.
		r7306_5, r7306_5_4, r7306_5_3, r7306_6, r7306_8Atomic,
		// The VI/TCP draft.
		vt2, vt3, vt3_2Immediate, vt3_2Ack, vt3_2Wrap, vt3_3, vt3_6, pt2, pt3, pt4,
		// The VI Architecture.
		va2, va3, va3_4, va4, va4_3, va5, va6, va6_3, va9, va10,
		pa2, pa4, pa6, pa10,
		// NetworkDirect's IND2QueuePair.
		ndMemoryCases, ndFlags, ndFence, ndReturns, ndFailures,
		// Ways to wait.
		waitsVerbs, waitsConnect, waitsND, waitsVI,
		// Of all of them: many connections at a listener, and what is given back.
		listeners, leaks,
		// What fails part of the way, and limits.
		failsVerbs, failsStreams, failsConnect, failsListener, failsND, failsNDConnect, failsVI,
		// What single faults in the code have shown that nobody looked at.
		guardsWakeups, guardsEnds, guardsWire, guardsVI, guardsND, guardsSRQ, guardsListener, guardsConnect,
		guardsValues, guardsContexts, guardsVIConnect, guardsVIMemory, guardsVIPort, guardsKept, guardsParts, guardsCQ,
		guardsVerbs, guardsRequests, guardsMemory,
	)
}
