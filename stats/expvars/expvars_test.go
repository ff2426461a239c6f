package expvars_test

import (
	"encoding/json"
	"expvar"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/stats/expvars"
	"github.com/softrnic/softrnic/verbs"
)

// TestPublish: the variable is there, and is a snapshot.
func TestPublish(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	name := nic.ID().String() // a name of its own each time: expvar keeps it
	expvars.Publish(name, nic)
	_, err = nic.AllocatePD()
	require.NoError(t, err)
	var s stats.Snapshot
	require.NoError(t, json.Unmarshal([]byte(expvar.Get(name).String()), &s))
	require.Len(t, s.RNICs, 1)
	assert.EqualValues(t, 1, s.RNICs[0].Counters["pd"])
}
