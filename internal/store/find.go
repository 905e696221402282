package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
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

const (
	// findRound bounds the entries that one round trip of a search looks at, over all shards: some milliseconds.
	findRound = 8192
	// findCall bounds those of one call of the script: a millisecond.
	findCall = 1000
	// findSlack is how far ids and times of submission may differ in their order: clients take both in one pipeline, but
	// a node of a cluster may have a clock of its own.
	findSlack = time.Minute
	// findName is how much of a job's name an entry holds, in bytes: more than a job file may write.
	findName = 1024
)

// entry is what the status index holds of a job: what lists filter by. The script in lua/find.lua reads it.
func entry(h *job.Head) string {
	const separator = "\x1f"
	clean := strings.NewReplacer(separator, "", "\x00", "")
	name := clean.Replace(strings.ToLower(h.Name))
	return strings.Join([]string{
		strconv.FormatInt(int64(h.ID), 10), strconv.FormatInt(int64(h.SubmittedAt), 10), clean.Replace(h.User), name[:min(len(name), findName)],
	}, separator)
}

// Find reads one page of the jobs that are in Redis. Its cost does not grow with the number of jobs, unless user or name
// leave few of many.
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
	for looked := 0; q.Examine == 0 || looked < q.Examine; {
		open := unfinished(places, found, q.Limit)
		if len(open) == 0 {
			break
		}
		more, n, err := s.searchRound(ctx, q, open, len(found))
		if err != nil {
			return nil, 0, err
		}
		looked += n
		found = append(found, more...)
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

// searchRound looks further at some shards in one round trip. It returns what matched, and how much was looked at.
func (s *Store) searchRound(ctx context.Context, q Query, places []*place, have int) ([]job.ID, int, error) {
	budget := max(min(findCall, findRound/len(places)), 1)
	most := budget
	if q.Limit > 0 {
		most = min(budget, max(q.Limit-have, 1)*2/len(places)+4) // ids are spread evenly
	}
	since, until := int64(q.Since), any("")
	if q.Until > 0 {
		until = int64(q.Until)
	}
	statuses := q.statuses()
	cmds := make([]*redis.Cmd, len(places))
	err := s.pipelined(ctx, s.lua.find, func(pipe redis.Pipeliner) {
		for i, p := range places {
			below := "+inf"
			if p.cursor > 0 {
				below = strconv.FormatInt(int64(p.cursor), 10)
			}
			keys := make([]string, len(statuses))
			for j, status := range statuses {
				keys[j] = s.keys.status(p.shard, status)
			}
			cmds[i] = s.lua.find.EvalSha(ctx, pipe, keys, below, most, budget, q.User, strings.ToLower(q.Name), since, until, ms(findSlack))
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
	counts := map[job.Status][]*redis.IntCmd{}
	for shard := range s.keys.shards {
		for _, status := range job.Statuses {
			counts[status] = append(counts[status], pipe.ZCard(ctx, s.keys.status(shard, status)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, unavailable("count", err)
	}
	total := map[job.Status]int64{}
	for status, list := range counts {
		for _, c := range list {
			total[status] += c.Val()
		}
	}
	return total, nil
}
