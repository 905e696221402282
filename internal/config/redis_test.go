package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

func TestRedisURLs(t *testing.T) {
	t.Parallel()
	type parsed struct {
		Addrs          []string
		User, Password string
		DB             int
		Master         string
		Cluster, TLS   bool
	}
	for _, c := range []struct {
		url  RedisURL
		want parsed
	}{
		{"redis://host", parsed{Addrs: []string{"host:6379"}}},
		{"redis://:pw@host:1/3", parsed{Addrs: []string{"host:1"}, Password: "pw", DB: 3}},
		{"rediss://me:p%40w@host", parsed{Addrs: []string{"host:6379"}, User: "me", Password: "p@w", TLS: true}},
		{"unix:///run/r.sock?db=2", parsed{Addrs: []string{"/run/r.sock"}, DB: 2}},
		{"redis+cluster://a", parsed{Addrs: []string{"a:6379"}, Cluster: true}},
		{"redis+cluster://me:pw@a:1,b,[::1]:3", parsed{Addrs: []string{"a:1", "b:6379", "[::1]:3"}, User: "me", Password: "pw", Cluster: true}},
		{"rediss+cluster://a,b", parsed{Addrs: []string{"a:6379", "b:6379"}, Cluster: true, TLS: true}},
		{"redis+sentinel://a:26379,b:26379/main?db=1", parsed{Addrs: []string{"a:26379", "b:26379"}, DB: 1, Master: "main"}},
	} {
		o, err := Redis{URL: c.url}.RecordOptions()
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		got := parsed{o.Addrs, o.Username, o.Password, o.DB, o.MasterName, o.IsClusterMode, o.TLSConfig != nil}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.url, diff)
		}
	}
	for _, bad := range []RedisURL{
		"", "host:6379", "http://host", "redis+x://host", "unix+cluster:///x", "unix://", "redis://host/x", "redis+cluster://a/1",
		"redis+cluster://a?db=1", "redis+cluster://a,,b", "redis+sentinel://a", "redis://host?pool_size=1", "redis://host:x",
	} {
		if _, err := (Redis{URL: bad}).RecordOptions(); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestRedisURLIsPrintedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[RedisURL]string{
		"redis://host/1":                "redis://host/1",
		"redis://me:pw@host/1":          "redis://me:[redacted]@host/1",
		"redis://:pw@host":              "redis://:[redacted]@host",
		"redis://pw@host":               "redis://[redacted]@host",
		"redis://me:p/w@x@host":         "redis://me:[redacted]@host",
		"redis+cluster://me:pw@a:1,b:2": "redis+cluster://me:[redacted]@a:1,b:2",
		"me:pw@host":                    "[redacted]",
		"unix:///home/x/.state/r.sock":  "unix:///home/x/.state/r.sock",
		"":                              "",
	} {
		if got := url.String(); got != want {
			t.Errorf("%q is printed as %q, want %q", string(url), got, want)
		}
	}
}

// Both clients reach a server, each with the settings that its user relies on.
func TestClients(t *testing.T) {
	t.Parallel()
	url := RedisURL(redistest.Start(t).URL())
	records, err := url.RecordClient()
	if err != nil {
		t.Fatal(err)
	}
	queue, err := url.QueueClient(32)
	if err != nil {
		t.Fatal(err)
	}
	type settings struct {
		Deadlines, Quiet bool
		Maint            maintnotifications.Mode
		PoolSize         int
		Read             time.Duration
	}
	for _, c := range []struct {
		name   string
		client redis.UniversalClient
		want   settings
	}{
		{"records", records, settings{true, true, maintnotifications.ModeDisabled, 0, 2 * time.Second}},
		{"queue", queue, settings{false, true, maintnotifications.ModeDisabled, 42, 5 * time.Second}},
	} {
		t.Cleanup(func() { _ = c.client.Close() })
		if err := c.client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		o := c.client.(*redis.Client).Options()
		got := settings{o.ContextTimeoutEnabled, o.DisableIdentity, o.MaintNotificationsConfig.Mode, o.PoolSize, o.ReadTimeout}
		if c.want.PoolSize == 0 {
			got.PoolSize = 0 // go-redis's own choice
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
