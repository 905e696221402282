package doccheck

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Ensure that the users of Redis in docs/redis.md have a right for each command of the scripts that their programs run: workers
// all of them, clients those that they call.
func TestRightsCoverTheScripts(t *testing.T) {
	users := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^ACL SETUSER outlast-(\w+) (.*)$`).FindAllStringSubmatch(read(t, "docs/redis.md"), -1) {
		users[m[1]] = strings.Fields(m[2])
	}
	delete(users, "reader") // of whose scripts only a part is run
	called := map[string][]string{
		"client": {"submit", "cancelWhere", "wake", "resume", "find", "admit", "tailRead"}, "worker": nil,
	}
	scripts := regexp.MustCompile(`(\w+):\s+script\(([^)]*)\)`).FindAllStringSubmatch(read(t, "internal/store/store.go"), -1)
	if len(scripts) < 20 || len(users) != len(called) {
		t.Fatalf("%d scripts and the users %v were found", len(scripts), users)
	}
	call := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	for user, names := range called {
		for _, m := range scripts {
			if names != nil && !slices.Contains(names, m[1]) {
				continue
			}
			for part := range strings.SplitSeq(m[2], ",") {
				file := strings.Trim(strings.TrimSpace(part), `"`) + ".lua"
				for _, c := range call.FindAllStringSubmatch(read(t, filepath.Join("internal/store/lua", file)), -1) {
					if right := "+" + strings.ToLower(c[1]); !slices.Contains(users[user], right) {
						t.Errorf("docs/redis.md: %s calls %s in %s, and outlast-%s has no %s", m[1], c[1], file, user, right)
					}
				}
			}
		}
	}
}
