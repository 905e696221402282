package config_test

import (
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/config"
)

// Ensure that every setting is listed with what set it, and that no secret is.
func TestView(t *testing.T) {
	home := t.TempDir()
	c, err := config.Load(config.Defaults(), nil, []string{
		"OUTLAST_HOME=" + home, "OUTLAST_REDIS=redis://me:hunter2@host:6379", "OUTLAST_HTTP_TOKEN=hunter2",
		"OUTLAST_ARCHIVE=s3://bucket?secret=hunter2", "OUTLAST_CONFIG=/dev/null", "OUTLAST_PROVIDERS=local",
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]config.Value{}
	for _, v := range c.View() {
		seen[v.Key] = v
		if strings.Contains(v.String(), "hunter2") {
			t.Errorf("%s is shown as %s", v.Key, v)
		}
		if v.Usage == "" || v.Env == "" && v.Key != "local.zones" || v.Origin == "" {
			t.Errorf("%+v does not explain itself", v)
		}
	}
	for key, want := range map[string]string{
		"redis": "redis://me:[redacted]@host:6379", "home": home, "shards": "64", "backoff": "1m0s", "providers": "local", "http_token": "[redacted]",
	} {
		if got := seen[key].String(); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if got := seen["redis"].Origin; got != "environment variable OUTLAST_REDIS" {
		t.Errorf("redis comes from %s", got)
	}
}
