package tasks_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// Ensure that machines which belong to nobody are ended, and no other ones: of a job that is unknown, of one that is
// done; but not the one in use, nor that of a record which nobody can read (G4).
func TestG4_CollectorEndsOrphansOnly(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	id := d.submit(d.request("sleep 1000"))
	unreadable := d.submit(d.request("sleep 1000"))
	done := d.submit(d.request("true"))
	w := d.worker()
	d.running(id)
	d.running(unreadable)
	d.done(done)
	rdb := d.store.Redis()
	damaged := fmt.Sprintf("ol:{s%02d}:job:%d", d.store.ShardOf(unreadable), unreadable)
	head, err := rdb.HGet(context.Background(), damaged, "head").Result()
	if err != nil {
		t.Fatal(err)
	}
	rdb.HSet(context.Background(), damaged, "head", "{")
	made := func(owner job.ID, attempt int) string {
		nodes, err := d.cloud.Create(context.Background(), cloud.Request{
			Identity: cloud.Identity{Deployment: d.store.Deployment().ID, Job: owner, Attempt: attempt},
			Token:    fmt.Sprintf("stray-%d-%d", owner, attempt), Offer: job.Offer{Provider: "local", Region: "a", Zone: "a", Type: "local"}, Nodes: 1,
		})
		if err != nil {
			t.Fatalf("make a stray machine: %v", err)
		}
		return nodes[0].ID
	}
	strays := map[string]bool{made(9999, 1): true, made(done, 2): true}
	d.eventually("the strays to be ended", func() bool {
		for _, n := range d.living() {
			if strays[n.ID] {
				return false
			}
		}
		return true
	})
	var left []job.ID
	for _, n := range d.living() {
		left = append(left, n.Job)
	}
	if len(left) != 2 {
		t.Errorf("want the machines of jobs %d and %d, have those of %v", id, unreadable, left)
	}
	rdb.HSet(context.Background(), damaged, "head", head)
	d.cancel(id, 0)
	// What is damaged is looked at rarely; mended, it is driven on when it is woken.
	d.cancel(unreadable, 0)
	d.sound(id, unreadable, done)
	w.term()
}

// Ensure that a job which waits for capacity holds nothing: with one launch slot in the whole fleet, others launch past
// it, and of those that wait for the same place the one with the higher priority comes first (G9).
//
// skypilot #10013, #4485: jobs that only waited held all launch slots, and those of high priority starved.
func TestG9_WaitingHoldsNothing(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.zones = []local.Zone{{Name: "a", Capacity: 1}, {Name: "b", Capacity: 4}}
	d.caps.Launches = 1
	d.worker(func(c *workerConfig) { c.Caps.Launches = 1 })
	in := func(region string, priority int, run string) job.ID {
		r := d.request(run, func(t *job.TaskRequest) { t.Resources.Any[0].Region = region })
		r.Priority = priority
		return d.submit(r)
	}
	holder := in("a", 0, `while [ ! -e "$SHARED/go" ]; do sleep 0.05; done`)
	d.running(holder)
	low := in("a", 0, `echo low >> "$SHARED/order"`)
	d.await(low, "waiting for capacity", func(r job.Record) bool { return r.Wait.For.Code == job.CodeBackoff })
	if past := d.done(in("b", 0, "true")); past.Status() != job.Succeeded {
		t.Errorf("a job elsewhere did not launch past one that waits: %s", past.Status())
	}
	rec := d.await(low, "still waiting", func(r job.Record) bool { return r.Wait.For.Code == job.CodeBackoff })
	if rec.HoldsSlot() || len(rec.Live) > 0 || rec.Status() != job.Pending && rec.Status() != job.Starting {
		t.Errorf("it holds something while it waits:\n%s", d.describe(low))
	}
	if rec.Wait.For.Text == "" || rec.Wait.For.Evidence == "" {
		t.Errorf("G13: it does not say why it waits: %+v", rec.Wait)
	}
	d.write("go")
	d.done(low)
	d.sound(holder, low)
}

// Ensure that the slot of a job that does not launch is the next one's, however it came to be held: of a job that runs, one that
// waits, one that is done and one that nobody knows; and that a job whose machine boots keeps its own (G9).
//
// What gives a slot back comes after the commit which says that it is not needed, and may be lost: with its caller, on its
// way, or by a Redis that fails over.
func TestG9_SlotsOfWhoDoesNotLaunchAreTakenBack(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.zones = []local.Zone{{Name: "a", Capacity: 4}, {Name: "full", Capacity: -1}, {Name: "slow", Capacity: 4, Boot: time.Hour}}
	d.worker()
	in := func(region, run string) job.ID {
		return d.submit(d.request(run, func(t *job.TaskRequest) { t.Resources.Any[0].Region = region }))
	}
	runs, done, waits, boots := in("a", "sleep 1000"), in("a", "true"), in("full", "true"), in("slow", "true")
	d.running(runs)
	d.done(done)
	d.await(waits, "waiting for capacity", func(r job.Record) bool { return r.Wait.For.Code == job.CodeBackoff })
	d.await(boots, "booting", func(r job.Record) bool { return r.HoldsSlot() && r.Wait.For.Code == job.CodeBooting })
	const nobody = job.ID(9999)
	ctx, slots := context.Background(), "ol:{d}:slots"
	member := func(id job.ID) string { return fmt.Sprint(int64(id)) }
	later := float64(time.Now().Add(patience + 10*time.Second).UnixMilli()) // as those are that were renewed some seconds ago
	for _, id := range []job.ID{runs, done, waits, nobody, boots} {
		if err := d.store.Redis().ZAdd(ctx, slots, redis.Z{Score: later, Member: member(id)}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	d.eventually("needless slots to be taken back", func() bool {
		for _, id := range []job.ID{runs, done, waits, nobody} {
			if score, err := d.store.Redis().ZScore(ctx, slots, member(id)).Result(); err == nil && score == later {
				return false
			}
		}
		return true
	})
	if err := d.store.Redis().ZScore(ctx, slots, member(boots)).Err(); err != nil {
		t.Errorf("a job whose machine boots has lost its slot: %v", err)
	}
}

// Ensure that of jobs which stand in the line for a slot the one with the highest priority launches first, then the one
// that was submitted first.
func TestAdmissionByPriority(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.zones = []local.Zone{{Name: "a", Capacity: 1}}
	one := func(c *workerConfig) { c.Caps = store.Caps{Launches: 1, Live: 1} }
	d.caps = store.Caps{Launches: 1, Live: 1}
	ids := []job.ID{}
	for i, priority := range []int{0, -5, 7, 0, 7} {
		r := d.request(fmt.Sprintf(`echo %d >> "$SHARED/order"`, i))
		r.Priority = priority
		ids = append(ids, d.submit(r))
	}
	d.worker(one)
	for _, id := range ids {
		d.done(id)
	}
	// The first was admitted before there was a line.
	if got := strings.Join(strings.Fields(d.read("order")), " "); got != "0 2 4 3 1" {
		t.Errorf("the order was %s", got)
	}
	d.sound(ids...)
}

// Ensure that logs are whole after machines and workers are gone: that of a machine which was lost up to the last
// look, that of the next one to its last byte (G11).
//
// skypilot #5033, #5399, #9827: logs could not be read after the end.
func TestG11_LogsOutliveMachinesAndWorkers(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	w := d.worker()
	// Four megabytes: many pieces of the bounded tail.
	id := d.submit(d.request(`
for i in $(seq 1 40000); do echo "attempt $OUTLAST_ATTEMPT line $i ....................................................................."; done
touch "$SHARED/printed.$OUTLAST_ATTEMPT"
[ "$OUTLAST_ATTEMPT" = 1 ] && sleep 1000
printf 'the end, without a newline'`))
	d.eventually("the first machine to have printed", func() bool { _, err := os.Stat(filepath.Join(d.shared, "printed.1")); return err == nil })
	seen := d.await(id, "some of it to be in the tail", func(r job.Record) bool { return r.Look.Tail > 1<<20 }).Look.Tail
	d.takeMachine(id, 0)
	rec := d.done(id)
	if rec.Status() != job.Succeeded {
		t.Fatalf("want SUCCEEDED:\n%s", d.describe(id))
	}
	w.kill9()
	for _, zone := range []string{"a", "b", "c", "d"} {
		if err := os.RemoveAll(filepath.Join(d.home, "local", zone)); err != nil {
			t.Fatal(err)
		}
	}
	var want strings.Builder
	for i := 1; i <= 40000; i++ {
		fmt.Fprintf(&want, "attempt 2 line %d .....................................................................\n", i)
	}
	want.WriteString("the end, without a newline")
	if got := d.archived(id, 0, 2); got != want.String() {
		t.Errorf("the log of the second attempt has %d bytes, want %d", len(got), want.Len())
	}
	first := d.archived(id, 0, 1)
	if int64(len(first)) < seen || !strings.HasPrefix(strings.ReplaceAll(want.String(), "attempt 2", "attempt 1"), first) {
		t.Errorf("the log of the lost machine has %d bytes, and %d had been read", len(first), seen)
	}
}

// Ensure that a secret is found nowhere but in the environment of the user's code: not in the keyspace, in no file, no
// log, no event, and no process's arguments; and that it is kept, sealed, only for as long as its job may be resumed: until
// it has succeeded, or leaves the store (G12).
func TestG12_SecretsStaySecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-and-then-some"
	d := newDeployment(t)
	w := d.worker()
	sealed, err := seal.Seal(d.store.Deployment().Recipient, map[string]string{tasks.SecretKey(0, "TOKEN"): secret})
	if err != nil {
		t.Fatal(err)
	}
	r := d.request(`[ "${#TOKEN}" = 21 ] && touch "$SHARED/has" ; while [ ! -e "$SHARED/go" ]; do sleep 0.05; done; [ -e "$SHARED/again" ]`,
		func(t *job.TaskRequest) { t.Secrets = []string{"TOKEN"}; t.Setup = `[ "${#TOKEN}" = 21 ]` })
	id := d.submitAll(store.Submission{Request: r, Sealed: sealed})[0]
	other := d.submitAll(store.Submission{Request: r, Sealed: sealed})[0]
	d.eventually("the user's code to have its secret", func() bool { _, err := os.Stat(filepath.Join(d.shared, "has")); return err == nil })
	look := func(when string) {
		d.redis.Client(t).BgRewriteAOF(context.Background())
		if err := filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil //nolint:nilerr // it went away meanwhile
			}
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s: the secret is in the file %s", when, path)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for key, value := range d.snapshotAll() {
			if strings.Contains(key+value, secret) {
				t.Errorf("%s: the secret is in Redis under %s", when, key)
			}
		}
		args, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range args {
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s: the secret is in the arguments %s", when, path)
			}
		}
	}
	look("while it runs")
	d.write("go")
	kept := func(id job.ID, want bool, when string) {
		t.Helper()
		if left, err := d.store.Secrets(context.Background(), id); err != nil || (left != nil) != want || bytes.Contains(left, []byte(secret)) {
			t.Errorf("%s: %d bytes of sealed secrets, %v; want some: %v", when, len(left), err, want)
		}
	}
	for _, id := range []job.ID{id, other} {
		if rec := d.done(id); rec.Status() != job.Failed {
			t.Errorf("want FAILED:\n%s", d.describe(id))
		}
		kept(id, true, "after a failure")
	}
	look("after its end")
	d.write("again")
	d.resume(id)
	if rec := d.done(id); rec.Status() != job.Succeeded {
		t.Errorf("want SUCCEEDED the second time:\n%s", d.describe(id))
	}
	kept(id, false, "after a success")
	all, err := d.store.LoadAll(context.Background(), other)
	if err != nil {
		t.Fatal(err)
	}
	if gone, err := d.store.Retire(context.Background(), &all); err != nil || !gone {
		t.Fatalf("the failed job stays: %v", err)
	}
	kept(other, false, "after leaving the store")
	look("after all of it")
	w.kill9()
	if strings.Contains(w.log.String(), secret) {
		t.Error("the secret is in the worker's log")
	}
}

// Ensure that an outage of what is beside the job, here of the archive for its workdir, is told and ends the job only for
// what is certain.
//
// skypilot #10325, #10326: what could never work was repeated for three hours.
func TestG10_MissingWorkdirIsToldAtOnce(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request("true", func(t *job.TaskRequest) { t.Workdir = "bundles/" + strings.Repeat("0", 64) + ".tar.gz" }))
	rec := d.done(id)
	if rec.Status() != job.FailedSetup || rec.Tasks[0].Cause.Code != job.CodeStore {
		t.Errorf("want FAILED_SETUP for the archive:\n%s", d.describe(id))
	}
	d.sound(id)
}

// Ensure a strategy decides where the next machine is: the lost region first, last, or nowhere.
func TestStrategies(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	run := func(s job.Strategy) job.ID {
		return d.submit(d.request(life, func(t *job.TaskRequest) { t.Recovery.Strategy = s }))
	}
	ids := map[job.Strategy]job.ID{job.Failover: run(job.Failover), job.EagerNextRegion: run(job.EagerNextRegion), job.Never: run(job.Never)}
	for s, id := range ids {
		d.running(id)
		d.takeMachine(id, 0)
		rec := d.done(id)
		past, err := d.store.Past(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case s == job.Never && (rec.Status() != job.FailedNoResource || len(past) != 1 || rec.Tasks[0].Cause.IsZero()):
			t.Errorf("%s: %d attempts\n%s", s, len(past), d.describe(id))
		case s == job.Failover && (len(past) != 2 || past[1].Offer.Region != past[0].Offer.Region):
			t.Errorf("%s: the next machine must be in the lost region: %+v", s, past)
		case s == job.EagerNextRegion && (len(past) != 2 || past[1].Offer.Region == past[0].Offer.Region):
			t.Errorf("%s: the next machine must be elsewhere: %+v", s, past)
		}
	}
	d.sound(ids[job.Failover], ids[job.EagerNextRegion], ids[job.Never])
}

// Ensure an act that takes long is interrupted by a cancel, which does not wait for it (G7).
func TestG7_CancelInterruptsALongBoot(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.zones = []local.Zone{{Name: "a", Boot: time.Hour}}
	d.worker()
	id := d.submit(d.request("true"))
	d.await(id, "booting", func(r job.Record) bool { return len(r.Live) == 1 && r.Live[0].Phase == job.PhaseBooting })
	d.cancel(id, 0)
	if rec := d.done(id); rec.Status() != job.Cancelled || len(d.starts(id)) != 0 {
		t.Errorf("want CANCELLED without a start:\n%s", d.describe(id))
	}
	d.sound(id)
}
