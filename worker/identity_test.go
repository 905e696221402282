package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// needs is user code that succeeds only with its secret.
const needs = `[ "$TOKEN" = value ]`

// Ensure that a key which is put on top of the file is taken over by workers that run: what was sealed before is opened still,
// what is sealed afterwards is for the new key, and the last of the two may go when nothing needs it any more (G12).
func TestRotationWhileWorkersRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	f.env = append(f.env, "TOKEN=value")
	// The first has its secret sealed for the old key, and needs it again after a preemption that comes after the rotation.
	before := f.launch(needs+" && "+waits, "--secret", "TOKEN")
	f.trace("runs")
	old := f.recipient()
	r := f.run(f.command("identity", "rotate"))
	if r.code != 0 {
		t.Fatalf("rotate: %+v", r)
	}
	f.eventually("clients to seal for the new key", func() bool { return f.recipient() != old })
	if !strings.HasPrefix(r.out, f.recipient()) || strings.Contains(r.out+r.errs, "SECRET") {
		t.Errorf("rotate says %+v", r)
	}
	if shown := f.run(f.command("identity", "show")); shown.out != f.recipient()+"\n"+old+"\n" {
		t.Errorf("show says %+v", shown)
	}
	after := f.launch(needs, "--secret", "TOKEN")
	f.await(after, "SUCCEEDED")
	if p := f.enqueue("preempt", before); p.code != 0 {
		t.Fatalf("preempt: %+v", p)
	}
	f.eventually("the job to run on another machine", func() bool { a, _ := f.show(before); return a.Status == "RUNNING" && a.Tasks[0].Recoveries == 1 })
	f.leave("go")
	f.await(before, "SUCCEEDED")
}

// recipient is what clients seal for.
func (f *fleet) recipient() string {
	f.t.Helper()
	r, err := f.admin.HGet(f.t.Context(), "ol:{d}:deployment", "recipient").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// Ensure that a job whose secrets no worker can open waits, says what for, takes no machine and does not fail, and that it
// runs as soon as a worker has the key, while jobs without secrets are not held up (G10, G13).
func TestG10_KeyIsMissing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.env = append(f.env, "TOKEN=value")
	f.worker()
	path := filepath.Join(f.home, "identity")
	key, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A rotation somewhere else: clients seal for a key that this worker has not been given.
	elsewhere := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(elsewhere, key, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := f.run(f.command("identity", "rotate", "--identity", elsewhere)); r.code != 0 {
		t.Fatalf("rotate: %+v", r)
	}
	rotated, err := os.ReadFile(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	next := strings.TrimSpace(f.run(f.command("identity", "show", "--identity", elsewhere)).out)
	if err := f.admin.HSet(t.Context(), "ol:{d}:deployment", "recipient", strings.Fields(next)[0]).Err(); err != nil {
		t.Fatal(err)
	}
	id := f.launch(needs, "--secret", "TOKEN")
	f.eventually("the job to wait for a key", func() bool {
		_, text := f.show(id)
		return strings.Contains(text, "secrets_locked") && strings.Contains(text, "sealed for another identity")
	}, func() string { _, text := f.show(id); return text })
	f.await(f.launch("true"), "SUCCEEDED")
	if a, text := f.show(id); a.Status != "PENDING" || a.Tasks[0].Attempts != 0 {
		t.Errorf("the job is %s", text)
	}
	f.eventually("the worker to say that it has not the key", func() bool {
		r := f.enqueue("workers", "-o", "json")
		return strings.Contains(r.out, "does not open this deployment's secrets")
	})
	if err := os.WriteFile(path, rotated, 0o600); err != nil {
		t.Fatal(err)
	}
	f.await(id, "SUCCEEDED")
}

// Ensure where the key may come from and what happens without one: from the environment, required, and off.
func TestWhereTheKeyComesFrom(t *testing.T) {
	t.Parallel()
	key := func(f *fleet) string {
		r := f.run(f.command("identity", "new"))
		if r.code != 0 || !strings.Contains(r.out, "AGE-SECRET-KEY-1") {
			t.Fatalf("new: %+v", r)
		}
		for line := range strings.Lines(r.out) {
			if strings.HasPrefix(line, "AGE-SECRET-KEY-1") {
				return strings.TrimSpace(line)
			}
		}
		return ""
	}
	t.Run("from the environment", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t)
		secret := key(f)
		cmd := f.command(append(quick[:len(quick):len(quick)], "--secrets", "required")...)
		cmd.Env = append(cmd.Env, "OUTLAST_IDENTITY_KEY="+secret)
		w := f.start(cmd)
		f.env = append(f.env, "TOKEN=value")
		f.await(f.launch(needs, "--secret", "TOKEN"), "SUCCEEDED")
		if _, err := os.Stat(filepath.Join(f.home, "identity")); err == nil {
			t.Error("a key was made beside the one that was given")
		}
		if strings.Contains(w.log.String(), secret) {
			t.Error("the key is in the log")
		}
	})
	t.Run("required and not there", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t)
		w := f.worker("--secrets", "required")
		if !w.ended() || !strings.Contains(w.log.String(), "worker identity new") {
			t.Errorf("the worker says:\n%s", w.log)
		}
		if keys, err := f.admin.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
			t.Errorf("Redis holds %v, %v", keys, err)
		}
	})
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t)
		f.worker("--secrets", "off")
		f.env = append(f.env, "TOKEN=value")
		r := f.enqueue("launch", "-d", "-o", "json", "--secret", "TOKEN", "--", "true")
		if r.code != 1 || r.errorCode() != "no_recipient" {
			t.Errorf("a job with a secret: %+v", r)
		}
		f.await(f.launch("true"), "SUCCEEDED")
	})
	for name, spoil := range map[string]func(path string) error{
		"damaged":             func(path string) error { return os.WriteFile(path, []byte("AGE-SECRET-KEY-1QQQQ\n"), 0o600) },
		"empty":               func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"readable for others": func(path string) error { return os.Chmod(path, 0o644) },
		"a folder":            func(path string) error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.worker().term()
			path := filepath.Join(f.home, "identity")
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			w := f.worker()
			if !w.ended() || !strings.Contains(w.log.String(), path) || strings.Contains(w.log.String(), "1QQQQ") {
				t.Errorf("the worker says:\n%s", w.log)
			}
		})
	}
}
