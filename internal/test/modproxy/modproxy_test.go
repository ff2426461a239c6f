package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// root is the folder of the root module, seen from a test of this package.
const root = "../../.."

// most is how many modules a program may get with verbs and cm.
const most = 5

// user is a folder of somebody else, who has a go command and the modules of this tree as they would be published. All
// other modules come from the cache of this machine, where the build of this test has put them.
type user struct {
	t   *testing.T
	dir string
	env []string
}

func newUser(t *testing.T) user {
	t.Helper()
	version := "v" + verbs.Version().Release
	proxy := t.TempDir()
	require.NoError(t, write(root, version, proxy))
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	cache := filepath.Join(strings.TrimSpace(string(out)), "cache", "download")
	u := user{t, t.TempDir(), nil}
	u.env = append(os.Environ(),
		"GOPROXY="+address(proxy)+","+address(cache)+",off", "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOMODCACHE="+filepath.Join(u.dir, "cache"), "GOBIN="+filepath.Join(u.dir, "bin"),
		"GOFLAGS=-modcacherw -trimpath", // what is removed later can be, and what was compiled once is not again
	)
	return u
}

// address is a folder as GOPROXY has it.
func address(dir string) string {
	path := filepath.ToSlash(dir)
	if !strings.HasPrefix(path, "/") { // a drive's letter
		path = "/" + path
	}
	return "file://" + path
}

func (u user) file(name, text string) {
	require.NoError(u.t, os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o644))
}

func (u user) run(name string, args ...string) string {
	u.t.Helper()
	cmd := exec.CommandContext(u.t.Context(), name, args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	out, err := cmd.CombinedOutput()
	require.NoError(u.t, err, "%s %s:\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

// added are the modules that `go get` says it has added.
func added(said string) (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^go: added (\S+) `).FindAllStringSubmatch(said, -1) {
		list = append(list, m[1])
	}
	return list
}

// TestImportersGetLittle: a program that imports verbs and cm gets few modules, and builds.
func TestImportersGetLittle(t *testing.T) {
	u := newUser(t)
	u.file("go.mod", "module example.com/x\n\ngo 1.25.0\n")
	u.file("x.go", `package main

import (
	"fmt"

	_ "github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

func main() { fmt.Println(verbs.Version()) }
`)
	version := "@v" + verbs.Version().Release
	list := added(u.run("go", "get", "github.com/softrnic/softrnic/verbs"+version, "github.com/softrnic/softrnic/cm"+version))
	t.Log(list)
	assert.Contains(t, list, "github.com/softrnic/softrnic")
	assert.LessOrEqual(t, len(list), most, list)
	program := filepath.Join(u.dir, "x")
	u.run("go", "build", "-o", program, ".")
	assert.Equal(t, verbs.Version().Release+" (released)\n", u.run(program))
}

// TestStamped: the version is in one place, and what tools/release.sh stamps of it is not another.
func TestStamped(t *testing.T) {
	list, err := modules(root)
	require.NoError(t, err)
	version := "v" + verbs.Version().Release
	for i, m := range list {
		mod, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
		require.NoError(t, err)
		assert.NotContains(t, string(mod), "replace", "go install of a version refuses it: %s", m.path)
		if i > 0 {
			assert.Contains(t, string(mod), "\t"+list[0].path+" "+version+"\n", "run tools/release.sh stamp: %s", m.path)
		}
	}
	work, err := os.ReadFile(filepath.Join(list[0].dir, "go.work"))
	require.NoError(t, err)
	assert.Contains(t, string(work), "\nreplace "+list[0].path+" "+version+" => ./\n", "run tools/release.sh stamp")
	changes, err := os.ReadFile(filepath.Join(list[0].dir, "CHANGELOG.md"))
	require.NoError(t, err)
	assert.Contains(t, string(changes), "\n## "+verbs.Version().Release, "CHANGELOG.md tells what the version has")
}
