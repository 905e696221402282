package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Keys and channels that a user of Redis must have: ours, and those of the queue.
const (
	KeyRights     = "~ol:* ~asynq:*"
	ChannelRights = "&asynq:cancel"
)

// RightsError says which commands the user of Redis may not run.
type RightsError struct {
	Commands []string // in lower case
	Err      error    // what Redis said; nil if it was asked beforehand
}

func (e *RightsError) Error() string {
	text := "this user of Redis may not run " + strings.Join(e.Commands, ", ")
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *RightsError) Unwrap() error { return e.Err }

// saysCommand finds the command in what Redis says of a right that is missing.
var saysCommand = regexp.MustCompile(`permissions to run the '([^']+)' command`)

// deniedOf tells which right is missing, if that is what err is about.
func deniedOf(err error) (Trouble, bool) {
	var rights *RightsError
	text := err.Error()
	switch named := saysCommand.FindStringSubmatch(text); {
	case errors.As(err, &rights):
		return missing("+" + strings.Join(rights.Commands, " +")), true
	case named != nil:
		return missing("+" + named[1]), true
	case !strings.Contains(text, "NOPERM") && !inScript(err): // the queue's errors hold those of Redis as text
		return Trouble{}, false
	case strings.Contains(text, "channel"):
		return missing(ChannelRights), true
	case strings.Contains(text, " key"):
		return missing(KeyRights), true
	default: // older servers do not say which, and the commands that were tried are all permitted
		return missing("some command"), true
	}
}

// missing advises to give a user of Redis what it lacks.
func missing(right string) Trouble {
	return Trouble{"redis_denied", "this user of Redis may do too little, it lacks " + right + ": docs/redis.md has all that it needs, as a line for ACL SETUSER"}
}

// inScript says whether a script was refused a right. Servers before 7.2 do not say which.
func inScript(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "ACL failure in script") || strings.Contains(text, "can't run this command") ||
		strings.Contains(text, "can't access at least one of the") || strings.Contains(text, "can't be executed from script because")
}

// scriptCommands are the commands that scripts run, by script: of this package under the SHA of the script, those of the queue
// and of the locks under "".
var scriptCommands = func() map[string][]string {
	call := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	out := map[string][]string{"": strings.Fields(`del exists expire expireat get hdel hget hmget hset incr llen lpush lrange lrem
		memory|usage pexpire rpoplpush rpush sadd set setex smembers srem zadd zcard zrange zrangebyscore zrem zremrangebyrank
		zremrangebyscore zrevrange zscore`)}
	for _, one := range append(loadScripts().all(), foundScript) {
		for _, m := range call.FindAllStringSubmatch(one.source, -1) {
			if name := strings.ToLower(m[1]); !slices.Contains(out[one.Hash()], name) {
				out[one.Hash()] = append(out[one.Hash()], name)
			}
		}
	}
	return out
}()

// probe asks whether the user may run commands inside of a script, and returns those that it may not. It runs each of them
// on a key that is there for nothing else.
func probe(ctx context.Context, rdb redis.Scripter, commands []string) ([]string, error) {
	args := make([]any, len(commands))
	for i, c := range commands {
		args[i] = c
	}
	return rightsScript.Run(ctx, rdb, []string{deploymentPrefix + "probe"}, args...).StringSlice()
}

var rightsScript = script("rights").Script

// mayRun refuses a user that lacks a command which a worker's scripts run, the queue's keys or its channel.
func mayRun(ctx context.Context, rdb redis.UniversalClient) error {
	if err := mayQueue(ctx, rdb); err != nil {
		return err
	}
	var all []string
	for _, commands := range scriptCommands {
		all = append(all, commands...)
	}
	slices.Sort(all)
	lacks, err := probe(ctx, rdb, slices.Compact(all))
	switch _, denied := deniedOf(errOr(err)); {
	case denied:
		return unavailable("look at the rights of the user", err)
	case err != nil: // something else is the matter, which is told where it matters
		return nil //nolint:nilerr // this looks at rights alone
	case len(lacks) > 0:
		return &RightsError{Commands: lacks}
	}
	return nil
}

// mayQueue refuses a user to whom the keys or the channel of the queue are closed. The queue itself would only go on trying.
func mayQueue(ctx context.Context, rdb redis.UniversalClient) error {
	if err := rdb.Exists(ctx, "asynq:queues").Err(); err != nil {
		if _, denied := deniedOf(err); denied {
			return unavailable("look at the rights of the user", err)
		}
	}
	listen := rdb.Subscribe(ctx, "asynq:cancel")
	defer func() { _ = listen.Close() }()
	if _, err := listen.Receive(ctx); err != nil {
		if _, denied := deniedOf(err); denied {
			return unavailable("look at the rights of the user", err)
		}
	}
	return nil
}

func errOr(err error) error {
	if err == nil {
		return errors.New("")
	}
	return err
}

// Explain lets a client tell which command a script was not permitted to run, where Redis does not say so itself.
func Explain(rdb redis.UniversalClient) { rdb.AddHook(explain{rdb}) }

type explain struct{ rdb redis.UniversalClient }

func (explain) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e explain) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return e.explain(ctx, cmd, next(ctx, cmd))
	}
}

func (e explain) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if !inScript(err) {
			return err
		}
		for _, cmd := range cmds {
			if inScript(cmd.Err()) {
				err = e.explain(ctx, cmd, cmd.Err())
				cmd.SetErr(err)
				return err
			}
		}
		return err
	}
}

// explain puts the names of the commands that are missing into the error of a call of a script.
func (e explain) explain(ctx context.Context, cmd redis.Cmder, err error) error {
	if !inScript(err) || saysCommand.MatchString(err.Error()) || len(cmd.Args()) < 2 {
		return err
	}
	which := fmt.Sprint(cmd.Args()[1])
	if cmd.Name() == "eval" {
		which = redis.NewScript(which).Hash()
	}
	commands, ours := scriptCommands[which]
	if !ours {
		commands = scriptCommands[""]
	}
	if lacks, failed := probe(ctx, e.rdb, commands); failed == nil && len(lacks) > 0 {
		return &RightsError{Commands: lacks, Err: err}
	}
	return err
}
