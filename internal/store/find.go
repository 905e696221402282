package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Query selects jobs for a list. Bounds are inclusive.
type Query struct {
	Statuses     []job.Status // of the job as a whole; none means any
	Live         bool         // only jobs that have not ended
	User         string       // who submitted it, exactly; "" means anybody
	Name         string       // a part of the job's name, in any case; "" means any
	Since, Until job.Time     // when it was submitted; zero is no bound
	Before       job.ID       // only smaller ids: the Next of the page before; zero begins with the newest
	Limit        int          // jobs on the page; zero means all
	Examine      int          // entries to look at before the page is cut short; zero means as many as it takes
}

// Page is a part of a list, newest first.
type Page struct {
	Jobs []job.Record
	// Next is the Before of the page after this one, zero if there is none. A search for few of many jobs learns only
	// there that nothing is left.
	Next job.ID
	// Damaged are the records that cannot be read. The others are not lost for them.
	Damaged []error
}

// The index of a shard is looked through in blocks of 128 jobs, which takes some microseconds each, whatever is looked for; see
// lua/index.lua. A search asks for few blocks first, since most find their page there, and for more from round to round.
const (
	findFirst = 4   // blocks of one shard in the first round
	findMost  = 128 // in one call of the script: a millisecond
	findPipe  = 512 // in one pipeline: others have their turn behind it
	findBlock = 128 // jobs in a block, as in lua/index.lua
	// findSlack is how far ids and times of submission may differ in their order: clients take both in one pipeline, but
	// a node of a cluster may have a clock of its own.
	findSlack = time.Minute
	// findName is how much of a job's name the index holds, in bytes: more than a job file may write.
	findName = 1024
)

// separators are what the index puts between texts: in a text, they are all the same.
var separators = strings.NewReplacer("\x1d", "\x1c", "\x1e", "\x1c", "\x1f", "\x1c")

// indexed is a text as the index holds it, without separators. Of what is no UTF-8 it has what JSON, and so the record, makes
// of it. indexedName is for names, parts of which are looked for in any case.
func indexed(text string) string {
	return separators.Replace(string([]rune(text[:min(len(text), findName)])))
}

func indexedName(name string) string { return indexed(strings.ToLower(name)) }

// codes are the statuses as the index holds them.
func codes(list []job.Status) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteByte(byte('a' + slices.Index(job.Statuses, s)))
	}
	return b.String()
}

// Find reads one page of the jobs that are in Redis. Its cost grows with the number of jobs that are looked at on the way to
// the page, by half a microsecond for ten: a search for few among a million takes as long as it takes to turn a page.
func (s *Store) Find(ctx context.Context, q Query) (Page, error) {
	ids, next, err := s.search(ctx, q)
	if err != nil {
		return Page{}, err
	}
	page := Page{Next: next}
	for part := range slices.Chunk(ids, batch) {
		known, damaged, err := s.LoadMany(ctx, part)
		if err != nil {
			return page, err
		}
		for _, id := range part {
			if rec, ok := known[id]; ok {
				page.Jobs = append(page.Jobs, rec)
			} else if err := damaged[id]; err != nil {
				page.Damaged = append(page.Damaged, err)
			} // else retention was faster
		}
	}
	return page, nil
}

// statuses are those whose indexes a query has to search.
func (q Query) statuses() []job.Status {
	return slices.DeleteFunc(slices.Clone(job.Statuses), func(s job.Status) bool {
		return q.Live && s.Terminal() || len(q.Statuses) > 0 && !slices.Contains(q.Statuses, s)
	})
}

// Matches reports whether a job is among those that are asked for, but for Before and Limit.
func (q Query) Matches(r *job.Record) bool {
	return slices.Contains(q.statuses(), r.Status()) && (q.User == "" || r.User == q.User) &&
		strings.Contains(strings.ToLower(r.Name), strings.ToLower(q.Name)) &&
		r.SubmittedAt >= q.Since && (q.Until == 0 || r.SubmittedAt <= q.Until)
}

// place is how far a search has come in one shard.
type place struct {
	shard  int
	cursor job.ID // everything from it on was looked at; zero before the first look
	done   bool   // and there is nothing below
}

// search returns the ids of a page and where the next one begins.
func (s *Store) search(ctx context.Context, q Query) ([]job.ID, job.ID, error) {
	if len(q.statuses()) == 0 {
		return nil, 0, nil
	}
	places := make([]*place, s.keys.shards)
	for shard := range places {
		places[shard] = &place{shard: shard, cursor: q.Before}
	}
	var found []job.ID
	for looked, blocks := 0, findFirst; q.Examine == 0 || looked < q.Examine; blocks = min(blocks*4, findMost) {
		open := unfinished(places, found, q.Limit)
		if len(open) == 0 {
			break
		}
		most := blocks * findBlock
		if q.Limit > 0 {
			most = min(most, max(q.Limit-len(found), 1)*2/len(open)+4) // ids are spread evenly
		}
		for part := range slices.Chunk(open, findPipe/blocks) {
			more, n, err := s.searchRound(ctx, q, part, blocks, most)
			if err != nil {
				return nil, 0, err
			}
			looked += n * findBlock
			found = append(found, more...)
		}
		slices.SortFunc(found, newestFirst)
	}
	ids, next := cut(places, found, q.Limit)
	return ids, next, nil
}

func newestFirst(a, b job.ID) int { return cmp.Compare(b, a) }

// unfinished are the places from which a newer job than the last of the page may still come.
func unfinished(places []*place, found []job.ID, limit int) []*place {
	var last job.ID
	if limit > 0 && len(found) >= limit {
		last = found[limit-1]
	}
	return slices.DeleteFunc(slices.Clone(places), func(p *place) bool {
		return p.done || p.cursor > 0 && p.cursor <= last
	})
}

// cut is the page that is certain: newer than whatever was not looked at.
func cut(places []*place, found []job.ID, limit int) ([]job.ID, job.ID) {
	var unseen job.ID // whatever was not looked at is below it
	for _, p := range places {
		if !p.done {
			unseen = max(unseen, p.cursor)
		}
	}
	certain := len(found)
	if open := unfinished(places, found, limit); len(open) > 0 { // it was told to look at no more
		certain, _ = slices.BinarySearchFunc(found, unseen, func(id, at job.ID) int {
			if id >= at {
				return -1
			}
			return 1
		})
	}
	switch {
	case limit > 0 && certain >= limit:
		if unseen > 0 || len(found) > limit {
			return found[:limit], found[limit-1]
		}
		return found[:limit], 0
	default:
		return found[:certain], unseen
	}
}

// searchRound looks further at some shards in one round trip. It returns what matched, and how many blocks were looked at.
func (s *Store) searchRound(ctx context.Context, q Query, places []*place, blocks, most int) ([]job.ID, int, error) {
	until := any("")
	if q.Until > 0 {
		until = int64(q.Until)
	}
	wanted, user, name := codes(q.statuses()), indexed(q.User), indexedName(q.Name)
	cmds := make([]*redis.Cmd, len(places))
	err := s.pipelined(ctx, s.lua.find, func(pipe redis.Pipeliner) {
		for i, p := range places {
			below := any("")
			if p.cursor > 0 {
				below = int64(p.cursor)
			}
			cmds[i] = s.lua.find.EvalSha(ctx, pipe, []string{s.keys.blocks(p.shard), s.keys.count(p.shard)}, s.keys.prefix(p.shard), p.shard, s.keys.shards,
				below, most, blocks, wanted, user, name, int64(q.Since), until, ms(findSlack))
		}
	})
	if err != nil {
		return nil, 0, unavailable("search", err)
	}
	var found []job.ID
	looked := 0
	for i, p := range places {
		reply, err := cmds[i].Slice()
		if err != nil {
			return nil, 0, unavailable("search", err)
		}
		if at := job.ID(asInt(reply[0])); at > 0 {
			p.cursor = at
		}
		p.done = asInt(reply[1]) == 1
		looked += int(asInt(reply[2]))
		for _, id := range reply[3:] {
			found = append(found, job.ID(asInt(id)))
		}
	}
	return found, looked, nil
}

// Statuses tells how many jobs are in each status, over all shards, in one round trip.
func (s *Store) Statuses(ctx context.Context) (map[job.Status]int64, error) {
	pipe := s.rdb.Pipeline()
	counts := make([]*redis.MapStringStringCmd, s.keys.shards)
	for shard := range counts {
		counts[shard] = pipe.HGetAll(ctx, s.keys.count(shard))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, unavailable("count", err)
	}
	total := map[job.Status]int64{}
	for _, c := range counts {
		for status, n := range c.Val() {
			total[job.Status(status)] += asInt(n)
		}
	}
	return total, nil
}
