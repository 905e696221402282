package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/outlast-dev/outlast/internal/job"
)

// Commit is one decision to write: Next is what Decide made of the claimed record.
type Commit struct {
	From *Claimed
	Next job.Record
	Keep bool // go on driving after it; otherwise the claim is given back
}

// Commit writes decisions of jobs of one shard in one script and brings the claims up to date, so that a driver can
// decide again. The result for each is nil, or ErrStale if somebody else drives the job now.
//
// After ErrUnavailable nobody knows what was written: repeat the very same commit, or let the claim go. A wake during the
// claim, however many commits kept it, makes the job due at once when the claim is given back.
func (s *Store) Commit(ctx context.Context, shard int, commits ...Commit) ([]error, error) {
	args := []any{s.keys.prefix(shard), s.keys.shards}
	encoded := make([]fields, len(commits))
	for i := range commits {
		f, err := encode(&commits[i].Next)
		if err != nil {
			return nil, err
		}
		encoded[i] = f
		args = append(args, commits[i].args(f)...)
	}
	reply, err := s.lua.commit.Run(ctx, s.rdb, []string{s.keys.due(shard)}, args...).Slice()
	if err != nil {
		return nil, unavailable("commit", err)
	}
	now := job.Time(asInt(reply[0]))
	results := make([]error, len(commits))
	for i, v := range reply[1:] {
		verdict, wishes := v, []any(nil)
		if r, kept := v.([]any); kept {
			verdict, wishes = r[0], r[1:]
		}
		if asString(verdict) != "ok" {
			results[i] = fmt.Errorf("commit to job %d: %w", commits[i].From.ID, ErrStale)
			continue
		}
		commits[i].advance(encoded[i], now, wishes)
	}
	return results, nil
}

// args are a commit's arguments to the script; see lua/commit.lua.
func (c *Commit) args(f fields) []any {
	from, next := &c.From.Record, &c.Next
	was, is := from.Status(), next.Status()
	ended := any("")
	if next.Ended() && !from.Ended() {
		ended = max(ms(next.LogRetention), 0)
	}
	args := []any{int64(from.ID), from.Fence, from.Seq, from.Seq + 1, states(from), from.Wakes, c.From.Token, bit(c.Keep), c.due(), string(was), string(is), ended, bit(from.Closes(next))}
	set, drop := c.From.changes(f)
	args = append(append(args, len(set)/2), set...)
	args = append(append(args, len(drop)/2), drop...)
	args = append(args, len(next.Events))
	for _, e := range next.Events {
		args = append(args, mustJSON(e))
	}
	args = append(args, len(next.Past))
	for _, a := range next.Past {
		args = append(args, mustJSON(a))
	}
	return appendNews(args, next)
}

// bit is a truth as scripts have it.
func bit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// optional are the fields that a record without them does not have.
var optional = []string{"cur", "live", "look", "wait", "fault", "preempt", "doubt", "limit", "calm", "shut"}

// changes are what f sets and drops of the record as it was read, as lists of (field, value). The value of a dropped
// field is the one that was read.
func (c *Claimed) changes(f fields) (set, drop []any) {
	for k, v := range f {
		if c.raw[k] != v {
			set = append(set, k, v)
		}
	}
	for _, k := range optional {
		if c.raw[k] != "" && f[k] == "" {
			drop = append(drop, k, c.raw[k])
		}
	}
	return set, drop
}

// due is when somebody must look again: "" leaves it to the claim, which the caller keeps.
func (c *Commit) due() any {
	switch {
	case c.Next.Step == job.StepDone:
		return "never"
	case c.Keep:
		return ""
	default:
		return int64(c.Next.Due)
	}
}

// advance makes the claim what is now in the store, with what others wrote into it meanwhile.
// The number of wakes stays the one that the claim saw: what a wake was for may be older than what was decided last.
func (c *Commit) advance(f fields, now job.Time, wishes []any) {
	raw := maps.Clone(f)
	rec := c.Next
	rec.Events, rec.Past = nil, nil
	if c.From.Closes(&c.Next) {
		rec.Shut, raw["shut"] = now, strconv.FormatInt(int64(now), 10)
	}
	rec.Fence, rec.Seq, rec.Wakes = c.From.Fence, c.From.Seq+1, c.From.Wakes
	if c.Keep {
		for i, name := range []string{"cancel", "preempt", "follow", "doubt"} {
			raw[name] = asString(wishes[i])
		}
		rec.Cancel = parse[job.Cancel](raw["cancel"])
		rec.Preempt = parse[job.Preempt](raw["preempt"])
		rec.Follow = job.Time(asInt(raw["follow"]))
		rec.Doubt = job.Time(asInt(raw["doubt"]))
	}
	c.From.Record, c.From.raw, c.From.Now = rec, raw, now
}

// parse reads an optional field that a client wrote. One that cannot be read counts as absent.
func parse[T any](s string) *T {
	v := new(T)
	if s == "" || json.Unmarshal([]byte(s), v) != nil {
		return nil
	}
	return v
}

// Changes reports whether a decision differs from what is stored, and so needs a commit.
func Changes(c *Claimed, next *job.Record) bool {
	if len(next.Events) > 0 || len(next.Past) > 0 {
		return true
	}
	f, err := encode(next)
	if err != nil {
		return true // the commit will say so
	}
	set, drop := c.changes(f)
	return len(set) > 0 || len(drop) > 0
}
