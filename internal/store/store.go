package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/planted"
)

var (
	// ErrUnavailable says that Redis did not answer, or not as it should. It is a pause, never a verdict.
	ErrUnavailable = errors.New("store unavailable")
	// ErrStale says that the caller does not drive the job any more.
	ErrStale = errors.New("stale: somebody else drives the job")
	// ErrNotFound says that there is no such job.
	ErrNotFound = errors.New("no such job")
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script loads files in lua/: a script, with what it needs before it.
func script(names ...string) *lua {
	var all strings.Builder
	for _, name := range names {
		src, err := luaFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // the files are part of the binary
		}
		all.Write(src)
	}
	source := all.String()
	if planted.On(planted.G2) {
		source = strings.Replace(source, "elseif r[1] == fence and r[2] == seq and r[3] == before and r[5] ~= '0' then", "else", 1)
	}
	return &lua{redis.NewScript(source), source}
}

// lua is a script that remembers its text.
type lua struct {
	*redis.Script
	source string
}

// Store is the one door to the records of a deployment. It is safe for concurrent use and holds no state but the
// connection.
type Store struct {
	rdb    redis.UniversalClient
	keys   keys
	deploy Deployment
	raise  func() int64 // by how much a claim raises the fence
	lua    scripts
}

type scripts struct {
	submit, claim, begin, beat, commit, redispatch, call, wake, cancelWhere, handover            *lua
	chainBegin, watchBegin, chainEnd, chainReclaim, admit, tailAppend, tailRead, viewPut, rotate *lua
	resume, find, retirable, retire                                                              *lua
	hookClaim, hookSave, hookRelease, journalAppend, turn, unbind, rest, park                    *lua
}

// all are the scripts of a store.
func (s scripts) all() []*lua {
	return []*lua{
		s.submit, s.claim, s.begin, s.beat, s.commit, s.redispatch, s.call, s.wake, s.cancelWhere, s.handover, s.chainBegin, s.watchBegin, s.chainEnd, s.chainReclaim,
		s.admit, s.tailAppend, s.tailRead, s.viewPut, s.rotate, s.resume, s.find, s.retirable, s.retire, s.hookClaim, s.hookSave, s.hookRelease,
		s.journalAppend, s.turn, s.unbind, s.rest, s.park,
	}
}

func loadScripts() scripts {
	return scripts{
		submit: script("here", "index", "news", "submit"), claim: script("here", "head", "claim"), begin: script("begin"), beat: script("beat"), commit: script("here", "index", "news", "commit"),
		redispatch: script("redispatch"), call: script("head", "call"), wake: script("wake"), cancelWhere: script("here", "cancel_where"), handover: script("handover"),
		resume: script("here", "index", "news", "resume"), find: script("here", "index", "find"), retirable: script("retirable"), retire: script("here", "index", "retire"),
		hookClaim: script("hook_claim"), hookSave: script("hook_save"), hookRelease: script("hook_release"), journalAppend: script("journal_append"),
		chainBegin: script("chain_begin"), watchBegin: script("next_tick", "watch_begin"), chainEnd: script("next_tick", "chain_end"), chainReclaim: script("chain_reclaim"),
		admit: script("admit"), tailAppend: script("tail_append"), tailRead: script("tail_read"), viewPut: script("view_put"), rotate: script("rotate"),
		turn: script("turn"), unbind: script("unbind"), rest: script("rest"), park: script("park"),
	}
}

// Redis is the connection, for the lease package, which locks with redsync on it.
func (s *Store) Redis() redis.UniversalClient { return s.rdb }

// Deployment is what the store belongs to.
func (s *Store) Deployment() Deployment { return s.deploy }

// ShardOf is the shard that a job belongs to.
func (s *Store) ShardOf(id job.ID) int { return s.keys.shardOf(id) }

// Shards is the number of shards.
func (s *Store) Shards() int { return s.keys.shards }

// LeaseKey is where the lock of a job's acts lives.
func (s *Store) LeaseKey(id job.ID) string { return s.keys.of(id, "lease") }

// Now is the time by the store's clock.
func (s *Store) Now(ctx context.Context) (job.Time, error) {
	t, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return 0, unavailable("read the time", err)
	}
	return job.TimeOf(t), nil
}

// Ping reports whether Redis answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.rdb.Ping(ctx).Err(); err != nil {
		return unavailable("ping", err)
	}
	return nil
}

// pipelined sends a pipeline of calls of one script, which must be safe to run twice: a pipeline cannot fall back from
// EVALSHA to EVAL, so it is sent again when a server turns out not to know the script.
func (s *Store) pipelined(ctx context.Context, lua *lua, queue func(redis.Pipeliner)) error {
	send := func() error {
		pipe := s.rdb.Pipeline()
		queue(pipe)
		_, err := pipe.Exec(ctx)
		return err
	}
	err := send()
	if err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return err
	}
	if err := lua.Load(ctx, s.rdb).Err(); err != nil {
		return err
	}
	return send()
}

func unavailable(doing string, err error) error {
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, err)
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
