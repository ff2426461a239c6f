package cm

import (
	"net"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
)

// TestStreamLosesNothing: what the startup agreed on reaches the queue pair, but for
// what only a program looks at.
func TestStreamLosesNothing(t *testing.T) {
	var st mpa.Stream
	v := reflect.ValueOf(&st).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int:
			f.SetInt(int64(100 + i))
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.Slice:
			f.SetBytes([]byte{byte(i)})
		case reflect.Interface:
			a, _ := net.Pipe()
			f.Set(reflect.ValueOf(a))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		default:
			require.Fail(t, "a field of another kind", v.Type().Field(i).Name)
		}
	}
	got := reflect.ValueOf(verbsStream(&st)).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name != "Rev" && name != "PrivateData" {
			require.Equal(t, v.Field(i).Interface(), got.FieldByName(name).Interface(), name)
		}
	}
}
