package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/adrg/xdg"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

// load loads a file, an environment and arguments. The environment always names a file, so that one of the
// developer's own has no part in a test.
func load(t *testing.T, file string, environ []string, args ...string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	AddFlags(flags, Defaults())
	flags.Bool("unrelated", false, "a flag of the command itself")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(Defaults(), flags, append([]string{"OUTLAST_CONFIG=" + path}, environ...))
}

func mustLoad(t *testing.T, file string, environ []string, args ...string) Config {
	t.Helper()
	c, err := load(t, file, environ, args...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A flag wins over the environment, that over the file, that over the default, and each value knows where it came from.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := "launches: 1\nlive: 1\nshards: 1\nunreachable: {probes: 1, elapsed: 1s}\n"
	environ := []string{"OUTLAST_LAUNCHES=2", "OUTLAST_LIVE=2", "OUTLAST_UNREACHABLE_ELAPSED=2s"}
	c := mustLoad(t, file, environ, "--launches=3", "--unreachable-elapsed", "3s", "--unrelated")
	for _, got := range []struct {
		key         string
		value, want any
		origin      string
	}{
		{"launches", c.Launches, 3, "flag --launches"},
		{"live", c.Live, 2, "environment variable OUTLAST_LIVE"},
		{"shards", c.Shards, 1, "file "},
		{"concurrency.acts", c.Concurrency.Acts, 32, "default"},
		{"unreachable.elapsed", c.Unreachable.Elapsed, 3 * time.Second, "flag --unreachable-elapsed"},
		{"unreachable.probes", c.Unreachable.Probes, 1, "file "},
	} {
		if got.value != got.want || !strings.HasPrefix(c.Origin(got.key), got.origin) {
			t.Errorf("%s is %v from %s, want %v from %s", got.key, got.value, c.Origin(got.key), got.want, got.origin)
		}
	}
}

func TestEveryKindOfValueInAFile(t *testing.T) {
	t.Parallel()
	got := mustLoad(t, `
redis: redis://localhost
home: /h
providers: [local, aws]
intervals:
  quick: 2s
  quiet: 1m30s
http_token: "12345"
local:
  zones:
    - {name: a, capacity: 2, boot: 1s, cpus: 4, memory: 8.5, price: 1, spot_price: 0.25, accelerators: {A100: 8}}
    - name: b
`, nil)
	want := Defaults()
	want.Redis = "redis://localhost"
	want.Home, want.Identity, want.Archive = "/h", "/h/identity", "file:///h/archive"
	want.Providers = []string{"local", "aws"}
	want.Intervals = Intervals{2 * time.Second, 90 * time.Second}
	want.HTTPToken = "12345"
	want.Local.Zones = []Zone{
		{Name: "a", Capacity: 2, Boot: time.Second, CPUs: 4, Memory: 8.5, Price: 1, SpotPrice: 0.25, Accelerators: map[string]int{"A100": 8}}, {Name: "b"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{}), cmpopts.IgnoreFields(Config{}, "Worker")); diff != "" {
		t.Error(diff)
	}
}

// A shorter list replaces a longer default, an empty variable counts as unset, and variables that are not settings,
// such as those that a job finds on its node, do not matter.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "providers: [a, b, c]", []string{
		"OUTLAST_PROVIDERS=x, y", "OUTLAST_SHARDS=", "OUTLAST_TASK_ID=7", "PATH=/bin", "OUTLAST_LAUNCHES=1", "OUTLAST_LAUNCHES=2",
	})
	if !cmp.Equal(c.Providers, []string{"x", "y"}) || c.Shards != 64 || c.Launches != 2 {
		t.Errorf("providers %q, shards %d, launches %d", c.Providers, c.Shards, c.Launches)
	}
}

func TestMistakesSayWhereTheyAreAndWhatWasMeant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file string
		environ    []string
		args       []string
		want       []string
	}{
		{"unknown key", "# first\nreddis: x\n", nil, nil, []string{`config.yaml:2: unknown key "reddis": did you mean "redis"?`}},
		{"unknown section key", "unreachable:\n  probe: 5\n", nil, nil, []string{`:2: unknown key "unreachable.probe": did you mean "probes"?`}},
		{"unknown zone key", "local:\n  zones:\n    - nme: a\n", nil, nil, []string{`:3: unknown key "local.zones.nme": did you mean "name"?`}},
		{"nothing near", "zzzzzzzz: 1\n", nil, nil, []string{`unknown key "zzzzzzzz"`}},
		{"all at once", "a1: 1\nb2: 2\n", nil, nil, []string{":1:", ":2:"}},
		{"a number for a duration", "lease: 15\n", nil, nil, []string{"lease (file ", `must be a duration such as "15s"`}},
		{"a text for a number", "", []string{"OUTLAST_SHARDS=many"}, nil, []string{"shards (environment variable OUTLAST_SHARDS)", "whole number"}},
		{"a value for a section", "intervals: 5s\n", nil, nil, []string{`config.yaml:1: "intervals"`, "mapping"}},
		{"a list for the file", "- a\n", nil, nil, []string{"must be a mapping"}},
		{"no YAML", "a: [\n", nil, nil, []string{"config.yaml:1: not valid YAML"}},
		{"a twin key", "shards: 1\nshards: 2\n", nil, nil, []string{"config.yaml", "YAML"}},
		{"out of range", "", nil, []string{"--shards=0"}, []string{"shards (flag --shards): must be 1 to 100"}},
		{"two out of range", "live: -1", nil, []string{"--shards=0"}, []string{"live (file", "shards (flag"}},
		{"redis", "", []string{"OUTLAST_REDIS=http://x"}, nil, []string{"redis (environment", `"http" is not one of`}},
		{"zones", "local: {zones: [{name: a}, {name: a}]}", nil, nil, []string{"local.zones", "zone 2", "twice"}},
		{"zone accelerators", "local: {zones: [{name: a, accelerators: A100}]}", nil, nil, []string{"zone 1: accelerators: must be a mapping", "{A100: 8}"}},
		{"zone accelerator", "local: {zones: [{name: a, accelerators: {A100: many}}]}", nil, nil, []string{"zone 1: accelerators: A100: must be a whole number"}},
		{"zone value", "local: {zones: [{name: a, boot: 3}]}", nil, nil, []string{"zone 1: boot: must be a duration"}},
		{"no such file", "", nil, []string{"--config=/nowhere.yaml"}, []string{"/nowhere.yaml"}},
	} {
		_, err := load(t, c.file, c.environ, c.args...)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error lacks %q: %v", c.name, want, err)
			}
		}
	}
}

// Neither printing nor any mistake shows a secret.
// The key for secrets comes from the environment alone: not from a flag, which every user of the computer could see, nor from
// a file that is not guarded as its own is. It is not shown, and it excludes a file for it.
func TestG12_IdentityKeyIsOnlyInTheEnvironment(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "", []string{"OUTLAST_IDENTITY_KEY=hunter2"})
	if string(c.IdentityKey) != "hunter2" || strings.Contains(fmt.Sprintf("%v %+v %#v", c, c, c), "hunter2") {
		t.Errorf("the key is %q, shown as %v", string(c.IdentityKey), c)
	}
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	AddFlags(flags, Defaults())
	if flags.Lookup("identity-key") != nil {
		t.Error("there is a flag for the key")
	}
	for _, tt := range []struct{ file, env, want string }{
		{"identity_key: hunter2\n", "", "unknown key"},
		{"identity: /k\n", "OUTLAST_IDENTITY_KEY=hunter2", "only one of them"},
		{"secrets: maybe\n", "", "auto, required or off"},
	} {
		if _, err := load(t, tt.file, []string{tt.env}); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q with %q: %v", tt.file, tt.env, err)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "http_token: hunter2\narchive: s3://user:hunter2@b?k=hunter2\n", []string{"OUTLAST_REDIS=redis://me:hunter2@host/1"})
	asJSON, err := json.Marshal(map[string]any{"redis": c.Redis, "token": c.HTTPToken})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%s %q %v", c.Redis, c.HTTPToken, c.Redis),
		string(asJSON),
	} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("shown: %s", text)
		}
	}
	for _, file := range []string{
		"http_token: [hunter2]\n", "redis: {hunter2: 1}\n", "redis: redis://:hunter2@a:b:c\n", "redis: redis://:hunter2@host:port\n",
		"redis: redis://:hunter2@host/x/y\n", "redis: redis+cluster://:hunter2@\n", "redis: hunter2@host\n",
		"redis: redis://:hunter2@h\n  http_token: hunter2", "http_token: \"hunter2\nx: [",
	} {
		_, err := load(t, file, nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// The table of settings and Config say the same, so that no field can be forgotten.
func TestEveryFieldIsASetting(t *testing.T) {
	t.Parallel()
	count := 0
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		for i := range of.NumField() {
			switch f := of.Field(i); {
			case !f.IsExported():
			case f.Type.Kind() == reflect.Struct:
				walk(f.Type)
			default:
				count++
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	seen := map[any]bool{}
	var c Config
	for _, s := range settings() {
		seen[s.at(&c)] = true
		if s.usage == "" {
			t.Errorf("%s has no usage", s.key)
		}
	}
	if len(seen) != count || len(settings()) != count {
		t.Errorf("%d settings for %d of %d fields", len(settings()), len(seen), count)
	}
	if got, want := len(zoneSettings()), reflect.TypeFor[Zone]().NumField(); got != want {
		t.Errorf("%d zone settings for %d fields", got, want)
	}
}

func TestDefaultsAreValidAndLieInTheStateDirectory(t *testing.T) {
	t.Parallel()
	for _, defaults := range []Config{Defaults(), DevDefaults()} {
		c, err := Load(defaults, nil, []string{"OUTLAST_CONFIG=/dev/null"})
		if err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(xdg.StateHome, "outlast")
		if c.Home != home || c.Identity != filepath.Join(home, "identity") || !strings.HasSuffix(c.Worker, fmt.Sprintf("-%d", os.Getpid())) {
			t.Errorf("home %s, identity %s, worker %s", c.Home, c.Identity, c.Worker)
		}
	}
}
