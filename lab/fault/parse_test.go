package fault

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var good = []struct {
	text string
	rule Rule
}{
	{"segment 5 in: drop", Rule{When: Segment, Nth: 5, Dir: In, What: Drop}},
	{"message every 3 out of write: delay 20ms", Rule{When: Message, Every: 3, Dir: Out, Op: OpWrite, What: Delay, For: 20 * time.Millisecond}},
	{"octet 4096 out: cut", Rule{When: Octet, Nth: 4096, Dir: Out, What: Cut}},
	{"octet every 100: split", Rule{When: Octet, Every: 100, What: Split}},
	{"segment chance 0.25 times 2: flip before crc", Rule{When: Segment, Chance: 0.25, Times: 2, What: Flip, N: -1}},
	{"segment 1 connection 2: flip 3 behind crc", Rule{When: Segment, Nth: 1, Connection: 2, What: Flip, N: 3, Behind: true}},
	{"time 2s: stall 500ms", Rule{When: Time, At: 2 * time.Second, What: Stall, For: 500 * time.Millisecond}},
	{"message 2 of send: split 7", Rule{When: Message, Nth: 2, Op: OpSend, What: Split, N: 7}},
	{"segment 2: coalesce 4 1s", Rule{When: Segment, Nth: 2, What: Coalesce, N: 4, For: time.Second}},
	{"segment 2: terminate 0x1202", Rule{When: Segment, Nth: 2, What: Terminate, Code: 0x1202}},
	{"segment 2 in of read: invalidate stag", Rule{When: Segment, Nth: 2, Dir: In, Op: OpRead, What: InvalidateSTag}},
	{"post 4 qp 17 of recv: fail", Rule{When: Post, Nth: 4, QP: 17, Op: OpRecv, What: Fail}},
	{"completion: delay 1ms", Rule{When: Completion, What: Delay, For: time.Millisecond}},
	{"completion 9: full", Rule{When: Completion, Nth: 9, What: Full}},
	{"registration 3: fail", Rule{When: Registration, Nth: 3, What: Fail}},
	{"connection 2: refuse", Rule{When: Connection, Nth: 2, What: Refuse}},
	{"connection: ird 0", Rule{When: Connection, What: IRD}},
	{"segment 1: double", Rule{When: Segment, Nth: 1, What: Double}},
	{"time 0s: half-close", Rule{When: Time, What: HalfClose}},
	{"verb reg_mr 3: errno ENOMEM", Rule{When: Verb, Verb: "reg_mr", Nth: 3, What: Errno, Errno: "ENOMEM"}},
	{"verb create_qp chance 0.1: errno EAGAIN late 50ms", Rule{When: Verb, Verb: "create_qp", Chance: 0.1, What: Errno, Errno: "EAGAIN", For: 50 * time.Millisecond}},
	{"verb rdma_connect device mlx5_0 times 2: delay 1s", Rule{When: Verb, Verb: "rdma_connect", Device: "mlx5_0", Times: 2, What: Delay, For: time.Second}},
	{"completion 5 of write: status RETRY_EXC_ERR", Rule{When: Completion, Nth: 5, Op: OpWrite, What: Status, Status: "RETRY_EXC_ERR"}},
	{"open 1: no device", Rule{When: Open, Nth: 1, What: NoDevice}},
	{"registration 1 device rxe0: fail", Rule{When: Registration, Nth: 1, Device: "rxe0", What: Fail}},
	{"message 1:reset", Rule{When: Message, Nth: 1, What: Reset}},
}

func TestParse(t *testing.T) {
	for _, c := range good {
		p, err := Parse("# a plan\n\nseed 9\n" + c.text + " # so\n")
		require.NoError(t, err, c.text)
		c.rule.Line = 4
		assert.Equal(t, &Plan{Seed: 9, Rules: []Rule{c.rule}}, p, c.text)
		again, err := Parse(p.String())
		require.NoError(t, err, p.String())
		again.Rules[0].Line = 4
		assert.Equal(t, p, again)
	}
	assert.Panics(t, func() { MustParse("nonsense") })
}

// The words that plans had before are still good.
func TestParseFormerWords(t *testing.T) {
	p, err := Parse("segment: late 1ms\nsegment: lump 2\npost: lose stag")
	require.NoError(t, err)
	assert.Equal(t, "segment: delay 1ms\nsegment: coalesce 2\npost: invalidate stag\n", p.String())
}

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"drop":                              "a rule is WHEN: WHAT, such as segment 5 in: drop; there is no colon",
		"packet 5: drop":                    `a rule begins with seed or one of segment, message, octet, time, connection, post, completion, registration, verb, open, not with "packet"`,
		": drop":                            "a rule begins with",
		"segment 5: explode":                `behind the colon of segment stands one of cut, reset, half-close, stall, delay, split, coalesce, flip, drop, double, terminate, invalidate stag, not "explode"`,
		"segment 5:":                        `not ""`,
		"segment 5: refuse":                 `segment goes with one of cut, reset, half-close, stall, delay, split, coalesce, flip, drop, double, terminate, invalidate stag, not with "refuse"`,
		"post 5: cut":                       `post goes with one of fail, invalidate stag, not with "cut"`,
		"segment 0: drop":                   `segment takes a number, 1 or more, not "0"`,
		"segment 5 in out sideways: drop":   `"sideways": what may stand before the colon is a number, every N, chance P, in, out, of OP, qp N, connection N, device NAME, times N`,
		"segment 5 every 3: drop":           "exclude each other",
		"segment chance 2: drop":            "chance takes a number above 0",
		"segment chance NaN: drop":          "chance takes a number above 0",
		"segment every: drop":               `every takes a number, 1 or more, not ""`,
		"segment of fish: drop":             `of takes one of send, write, read, response, immediate, atomic, atomic-response, terminate, recv, memory, not "fish"`,
		"segment of recv: drop":             `segment is of one of send, write, read, response, immediate, atomic, atomic-response, terminate, not of "recv"`,
		"octet 5 of send: cut":              "octet is of no operation",
		"octet: cut":                        "octet needs a number or every",
		"time: cut":                         "time takes a duration",
		"time 3: cut":                       "time takes a duration",
		"time 3s 4: cut":                    "time strikes once",
		"time 30h: cut":                     "within 0s to 24h0m0s",
		"connection 1 in: refuse":           "connection has no direction",
		"registration qp 3: fail":           "registration is of no queue pair",
		"post 1 connection 2: fail":         "post is on no connection",
		"segment qp 4294967296: drop":       "qp takes a number below 4294967296",
		"segment 5: stall":                  "stall takes a duration",
		"segment 5: stall 0s":               "stall needs how long",
		"segment 5: split":                  "split takes a number",
		"segment 5: coalesce 1":             "coalesce takes a number, 2 or more",
		"segment 5: coalesce 4000":          "coalesce needs how many segments, 2 to 1000",
		"segment 5: flip":                   "flip is before crc, which is right again then, or behind crc",
		"segment 5: flip 3 behind the sofa": "flip is before crc",
		"octet 5: flip before crc":          "flip at an octet is behind the CRC",
		"segment 5: terminate":              "terminate takes a code of 16 bits",
		"segment 5: terminate 0x12345":      "terminate takes a code of 16 bits",
		"segment 5: invalidate":             `not "invalidate"`,
		"connection 1: ird 20000":           "ird takes 0 to 16382",
		"segment 5: drop it":                `"it" behind drop: a rule ends there`,
		"verb reg 3: errno EIO":             `verb is one of open_device, query_device`,
		"verb post_send 3: errno EIO":       "posts wait in memory that the program shares with its device; say post 3 of send: fail",
		"verb reg_mr in: errno EIO":         "verb has no direction",
		"verb reg_mr of send: errno EIO":    "verb is of no operation",
		"verb reg_mr qp 3: errno EIO":       "verb is of no queue pair",
		"verb reg_mr: errno ENONE":          `errno takes one of EACCES, EADDRINUSE`,
		"verb reg_mr: errno EIO soon":       `"soon" behind errno: a rule ends there`,
		"verb reg_mr: errno EIO late":       "late takes a duration",
		"verb reg_mr: fail":                 `verb goes with one of errno, delay, not with "fail"`,
		"verb reg_mr device a/b: errno EIO": `device takes a name such as softrnic0, not "a/b"`,
		"completion: status SUCCESS":        "status takes one of LOC_LEN_ERR",
		"completion: status":                `not ""`,
		"open: no":                          `not "no"`,
		"open: fail":                        `open goes with one of no device, not with "fail"`,
		"seed":                              "seed takes one number",
		"seed x":                            "seed takes a number from 0",
	} {
		_, err := Parse("\n" + text)
		assert.ErrorContains(t, err, "line 2: ", text)
		assert.ErrorContains(t, err, says, text)
	}
	_, err := Parse("seed 1\nseed 2")
	assert.ErrorContains(t, err, "line 2: there is a seed already")
}

func TestCheckNamesTheRule(t *testing.T) {
	_, err := New(&Plan{Rules: []Rule{{When: Segment, What: Drop}, {When: Post, What: Cut}}}, nil)
	assert.ErrorContains(t, err, "fault plan: rule 2: post goes with")
}

func FuzzParse(f *testing.F) {
	for _, c := range good {
		f.Add("seed 3\n" + c.text)
	}
	f.Add("segment 5 in: : drop")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			require.Regexp(t, `^line \d+: `, err.Error())
			return
		}
		require.NoError(t, p.Check())
		again, err := Parse(p.String())
		require.NoError(t, err, p.String())
		for i := range p.Rules {
			p.Rules[i].Line, again.Rules[i].Line = 0, 0
		}
		require.Equal(t, len(p.Rules), len(again.Rules))
		require.Equal(t, p.String(), again.String())
	})
}
