package check

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// change is a story with something changed.
func change(s *story, how func(*story)) *story {
	how(s)
	return s
}

// TestWhatAFailoverForgot ensures that judges take what a Redis may have lost as never written, and nothing else: what was written
// at another time is held against the fleet as ever, and so is code that ran twice, whatever was lost.
func TestWhatAFailoverForgot(t *testing.T) {
	forgot := func(s *story, from, to float64) *story {
		return s.broke(from, to+2, history.Fault{Name: "failover that forgets", Stops: "all", Forgets: sec(to)})
	}
	for guarantee, table := range map[string][]verdict{
		"G2": {
			{"an attempt that is made again", forgot(ran().tell(4, "create", "m1b", 1, ""), 2, 3), ""},
			{"two machines, before it", forgot(ran().tell(4, "create", "m1b", 1, ""), 20, 21), "two machines"},
		},
		"G3": {
			{"code of a job whose number was given again", forgot(ran().tell(0.5, "create", "old", 1, "").tell(0.7, "start", "old", 1, endsAt(0, 0)), 0.2, 0.9), ""},
			{"code of an earlier job, and nothing was lost", ran().tell(0.5, "create", "old", 1, "").tell(0.7, "start", "old", 1, endsAt(0, 0)), "still ran"},
			{"code of a forgotten attempt", forgot(ran().tell(2, "create", "old", 2, "").tell(2.5, "start", "old", 2, endsAt(0, 0)), 2, 2.8), "still ran"},
		},
		"G5": {
			{"an ending that is told anew", forgot(ran().see(10, "SUCCEEDED").see(11, "RUNNING").see(13, "SUCCEEDED"), 9.5, 10.2), ""},
			{"one that was told before", forgot(ran().see(13, "RUNNING"), 12.8, 13.2), "and RUNNING"},
		},
		"G8": {
			{"a counter that was lost", forgot(change(ran(), func(s *story) { s.Seen[0].Recoveries = 2 }), 4.5, 5.2), ""},
			{"one that was seen before", forgot(change(ran(), func(s *story) { s.Seen[0].Recoveries = 2 }), 6, 7), "went back"},
		},
	} {
		t.Run(guarantee, func(t *testing.T) {
			for _, v := range table { // clients were asked one after the other
				slices.SortStableFunc(v.story.Seen, func(a, b history.Seen) int { return int(a.At - b.At) })
			}
			judged(t, guarantee, table)
		})
	}
}

func TestG1_JudgeOfLostJobs(t *testing.T) {
	sampled := func(overdue time.Duration, x ...history.Fault) *story {
		s := ran()
		s.Samples = []history.Sample{{At: sec(50), Overdue: overdue, Job: 1}}
		for _, f := range x {
			s.broke(20, 45, f)
		}
		return s
	}
	judged(t, "G1", []verdict{
		{"a job that nobody knows", change(ran(), func(s *story) { s.Jobs = nil }), "nothing is known of it"},
		{"a job of two submissions", change(ran(), func(s *story) {
			s.Submissions = append(s.Submissions, s.Submissions[0])
			s.Submissions[1].Key = "another"
		}), "two submissions"},
		{"a job that the client does not find", change(ran(), func(s *story) { s.job().Missing = "no job 1" }), "does not find it"},
		{"a damaged record", change(ran(), func(s *story) { s.job().Damaged = true }), "cannot be read"},
		{"a job without an end", change(ran(), func(s *story) { s.job().Status = "RECOVERING" }), "has not ended"},
		{"a wrong ending", change(ran(), func(s *story) { s.job().Status = "FAILED" }), "ended as FAILED"},
		{"a wrong cause", change(ran(), func(s *story) { s.Submissions[0].Causes = []string{"user_exit"} }), `for "succeeded"`},
		{"one of two endings", change(ran(), func(s *story) { s.Submissions[0].Expect = []string{"CANCELLED", "SUCCEEDED"} }), ""},
		{"a short gap", sampled(15 * time.Second), ""},
		{"a long gap", sampled(25 * time.Second), "left alone"},
		{"a long gap while one worker was away", sampled(25*time.Second, history.Fault{Stops: "one", Target: "w1"}), "left alone"},
		{"a long gap while all were away", sampled(25*time.Second, history.Fault{Stops: "all"}), ""},
		{"while each was away by itself", sampled(25*time.Second, history.Fault{Stops: "one", Target: "w1"}, history.Fault{Stops: "one", Target: "w2"}), ""},
		{"a gap that was too long before they were", sampled(60*time.Second, history.Fault{Stops: "all"}), ""},
		{"a silent chain", change(ran(), func(s *story) {
			s.Samples = []history.Sample{{At: sec(50), Silence: 30 * time.Second, Chain: "watch-1"}}
		}), "watch-1"},
	})
}

func TestG2_JudgeOfStaleDrivers(t *testing.T) {
	judged(t, "G2", []verdict{
		{"a recovery", taken(), ""},
		{"a create after the end of its attempt", ran().tell(30, "create", "m1b", 1, ""), "after w1 had ended that attempt"},
		{"two machines at a time", ran().tell(4, "create", "m1b", 1, ""), "two machines"},
		{"a start on a machine that was told to end", ran().tell(40, "start", "m1", 1, endsAt(50, 0)), "told to end"},
		{"a start that was under way", ran().tell(9.7, "start", "m1", 1, endsAt(9.8, 0)), ""},
		{"what the provider takes back itself", change(ran().begin(), func(s *story) {
			s.tell(2, "create", "h", 1, "").tell(2, "terminate", "h", 1, "undone").tell(3, "terminated", "h", 1, "").tell(4, "create", "m1", 1, "").tell(9, "terminated", "m1", 1, "")
			s.Ledger[1].By = ""
		}), ""},
		{"another attempt's code for the same machine", ran().tell(5, "started_again", "m1", 1, ""), "would have started"},
		{"a status from nowhere", ran().status(10, "RUNNING", "RECOVERING", preempted), "had been SUCCEEDED"},
		{"an older commit on top", ran().note(2, why("notice", "late", "")), "decided before others"},
		{"an attempt begun twice", change(taken(), func(s *story) {
			s.event(history.Event{At: clockAt(30), Kind: "attempt", Attempt: 2, To: "intent"})
		}), "attempt 2 of task 0 was begun when 2 had been"},
		{"an attempt closed twice", change(ran(), func(s *story) {
			s.event(history.Event{At: clockAt(30), Kind: "attempt", Attempt: 1, To: "closing"})
		}), "closed twice"},
		{"a closed attempt that runs", change(ran().begin(), func(s *story) {
			s.status(1, "PENDING", "STARTING", nil).attempt(1, "intent", nil).attempt(2, "closing", preempted).status(3, "STARTING", "RUNNING", nil)
		}), "runs after it was closed"},
	})
}

func TestG3_JudgeOfDoubles(t *testing.T) {
	local := func(traces ...history.Trace) *story {
		s := ran().begin()
		s.Traces = traces
		return s
	}
	trace := func(at float64, op string, attempt int) history.Trace {
		return history.Trace{At: sec(at), Job: 1, Attempt: attempt, Op: op, PID: 100 + attempt}
	}
	judged(t, "G3", []verdict{
		{"a recovery", taken(), ""},
		{"a second start while the first runs", recovered(preempted).tell(12, "preempted", "m1", 1, ""), "while that of attempt 1 still ran"},
		{"a machine that never ended", recovered(preempted), "which never ended"},
		{"a run that was asked to stop runs on", taken().tell(11, "create", "m3", 3, "").tell(18.5, "start", "m3", 3, endsAt(30, 0)), "attempt 3 started"},
		{"a job that no client was told of", change(recovered(preempted).tell(12, "preempted", "m1", 1, ""), func(s *story) { s.Submissions = nil }), "while that of attempt 1 still ran"},
		{"the same machine twice", ran().tell(5, "start", "m1", 1, endsAt(8, 0)), "attempt 1 started"},
		{"local code, one after the other", local(trace(1, "start", 1), trace(2, "beat", 1), trace(5, "start", 2), trace(6, "end", 2)), ""},
		{"local code at the same time", local(trace(1, "start", 1), trace(5, "start", 2), trace(6, "beat", 1)), "attempt 2 started"},
		{"code that nothing saw", change(ran(), func(s *story) { s.Ledger = nil }), "nothing saw it run"},
		{"code that was stopped before it could start", change(stopped(), func(s *story) {
			s.Ledger, s.job().Events = nil, s.job().Events[:2]
			s.job().Attempts = []history.Attempt{{Number: 1, Offer: history.Offer{Provider: "sim"}, Started: clockAt(3), Exit: &history.Exit{Stage: "setup", Code: 143}}}
		}), ""},
		{"local code that nothing saw", change(local(), func(s *story) {
			s.job().Attempts = []history.Attempt{{Number: 1, Offer: history.Offer{Provider: "local"}, Exit: &history.Exit{Stage: "run"}}}
		}), "nothing saw it run"},
		{"local code that was killed at once", change(local(), func(s *story) {
			s.job().Attempts = []history.Attempt{{Number: 1, Offer: history.Offer{Provider: "local"}, Started: clockAt(3)}}
		}), ""},
		{"local code that found the lock held", local(trace(1, "start", 1), trace(2, "double", 2)), "lock of the job"},
	})
}

func TestG4_JudgeOfLeaks(t *testing.T) {
	judged(t, "G4", []verdict{
		{"a machine that has ended", change(ran(), func(s *story) { s.Machines = []history.Machine{{ID: "m1", Job: 1, State: "terminated", Ended: true}} }), ""},
		{"a machine that runs", change(ran(), func(s *story) { s.Machines = []history.Machine{{ID: "m1", Job: 1, State: "running"}} }), "still there"},
		{"one of nobody", change(ran(), func(s *story) { s.Machines = []history.Machine{{ID: "x", Job: 77, State: "running"}} }), "still there"},
		{"one of a job that goes on", change(ran(), func(s *story) {
			s.Run.CalmAt, s.job().Status = 0, "RUNNING"
			s.Machines = []history.Machine{{ID: "m1", Job: 1, State: "running"}}
		}), ""},
		{"one that only the ledger knows", ran().tell(4, "create", "m7", 2, ""), "nothing in the ledger"},
		{"a process", change(ran(), func(s *story) { s.Processes = []history.Process{{PID: 7, Machine: "a-1", Command: "sleep 1000"}} }), "process 7"},
	})
}

func TestG5_JudgeOfEndings(t *testing.T) {
	judged(t, "G5", []verdict{
		{"an ending that stays", ran().see(13, "SUCCEEDED"), ""},
		{"one that a client was told otherwise", ran().see(13, "CANCELLED"), "and CANCELLED"},
		{"one that was left for a while", ran().see(13, "RUNNING"), "and RUNNING"},
		{"nobody asked", change(ran(), func(s *story) { s.Seen = nil }), "nobody has asked"},
		{"another cause", change(ran(), func(s *story) { s.Seen[1].Cause = "user_exit" }), `for "user_exit"`},
		{"a history that goes on", ran().status(15, "SUCCEEDED", "FAILED", why("user_exit", "late", "x")), "left SUCCEEDED"},
		{"a resumed job", again(), ""},
		{"one that nobody has resumed", change(again(), func(s *story) { s.Resumes = nil }), "left CANCELLED"},
		{"one that went on before it was resumed", change(again(), func(s *story) {
			s.Seen[len(s.Seen)-2].At, s.Seen[len(s.Seen)-2].Got = sec(16), sec(17)
		}), "and STARTING at 16.0s"},
		{"one that was asked for while it was resumed", change(again(), func(s *story) {
			s.Seen[len(s.Seen)-2].At, s.Seen[len(s.Seen)-2].Got = sec(19), sec(21)
		}), ""},
		{"one that had succeeded", change(ran(), func(s *story) {
			s.Resumes = []history.Resume{{At: sec(14), Got: sec(15), Job: 1, Saw: "SUCCEEDED"}}
			s.status(15, "SUCCEEDED", "PENDING", why("resumed", "by ada", "")).status(16, "PENDING", "SUCCEEDED", nil)
		}), "left SUCCEEDED"},
		{"a record that was rewritten without a word", change(ran(), func(s *story) {
			s.Seen, s.job().Status, s.job().Tasks[0].Status = nil, "CANCELLED", "CANCELLED"
		}), "its record says CANCELLED"},
	})
}

func TestG6_JudgeOfProofs(t *testing.T) {
	unreachable := why("unreachable", "no answer to 5 probes over 8s", "timeout")
	gone := func(c *history.Cause) *story {
		return recovered(c).tell(7, "terminate", "m1", 1, "").tell(7.5, "terminated", "m1", 1, "")
	}
	judged(t, "G6", []verdict{
		{"a machine that was taken", taken(), ""},
		{"one that was not", recovered(preempted).tell(9, "terminated", "m1", 1, "").tell(12, "preempted", "m1", 1, ""), ""},
		{"one that was there for long", recovered(preempted).tell(12, "terminated", "m1", 1, ""), "the provider had not taken it"},
		{"a notice", gone(why("preemption_notice", "the provider gave notice", "run: exit code 143")).tell(5, "notice", "m1", 1, ""), ""},
		{"no notice", gone(why("preemption_notice", "the provider gave notice", "run: exit code 143")), "given no notice"},
		{"out of reach for long enough", gone(unreachable).broke(-4, 5, history.Fault{Op: "dial", Kind: "unreachable"}), ""},
		{"out of reach for a moment", gone(unreachable).broke(4.5, 5.5, history.Fault{Op: "dial", Kind: "unreachable"}), "out of reach"},
		{"never out of reach", gone(unreachable), "out of reach"},
		{"an agent that nothing happened to", gone(why("agent_lost", "nothing of the run is left", "")).tell(30, "boot", "m1", 1, ""), ""},
		{"a failure that was none", change(gone(why("user_exit", "exit code 42", "run: exit code 42")), func(s *story) { s.Ledger[1].Detail = endsAt(5, 0) }), "its code had succeeded"},
		{"a failure", change(gone(why("user_exit", "exit code 3", "run: exit code 3")), func(s *story) { s.Ledger[1].Detail = endsAt(5, 3) }), ""},
		{"a recovery without a reason", gone(&history.Cause{}), "does not say why"},
		{"a job whose machines nobody took", change(taken(), func(s *story) { s.Submissions[0].NoRecovery = true }), "nobody ever took"},
		{"no proof that the old machine was gone", recovered(preempted).tell(5, "notice", "m1", 1, "").tell(15, "preempted", "m1", 1, ""), "without proof"},
		{"an attempt that was never closed", change(taken(), func(s *story) {
			s.job().Events = slices.Delete(s.job().Events, 4, 5)
		}), "never closed"},
	})
}

func TestG7_JudgeOfCancels(t *testing.T) {
	judged(t, "G7", []verdict{
		{"a cancel that was honoured", stopped(), ""},
		{"code that ran on", change(stopped(), func(s *story) { s.Ledger = s.Ledger[:2]; s.tell(90, "terminated", "m1", 1, "") }), "ran on"},
		{"code that ran on while nobody could reach it", change(stopped(), func(s *story) {
			s.Ledger = s.Ledger[:2]
			s.tell(90, "terminated", "m1", 1, "").broke(5, 60, history.Fault{Op: "dial", Kind: "unreachable"})
		}), ""},
		{"code that started later", stopped().tell(25, "create", "m2", 2, "").tell(27, "start", "m2", 2, endsAt(28, 0)), "started 17s after"},
		{"code that started at the same moment", change(stopped(), func(s *story) { s.Cancels[0].Got, s.Ledger[1].At = sec(2.5), sec(3) }), ""},
		{"a cancel that was forgotten", change(stopped(), func(s *story) {
			s.Submissions[0].Expect, s.job().Status, s.job().Ended = []string{"SUCCEEDED"}, "SUCCEEDED", clockAt(58)
			s.Ledger = nil
			s.tell(3, "create", "m1", 1, "").tell(4, "start", "m1", 1, endsAt(55, 0)).tell(59, "terminated", "m1", 1, "")
		}), "and it is SUCCEEDED"},
		{"code that was quicker", change(ran(), func(s *story) {
			s.Cancels = []history.Cancel{{At: sec(7), Got: sec(7.5), Job: 1, Saw: "RUNNING"}}
		}), ""},
		{"a job that has not ended", change(stopped(), func(s *story) { s.job().Status, s.Ledger = "STARTING", nil }), "still STARTING"},
		{"a cancel that came too late", change(ran(), func(s *story) { s.Cancels = []history.Cancel{{At: sec(3), Got: sec(3), Job: 1, Late: true}} }), ""},
		{"a job that goes again", again(), ""},
		{"code that started later, before it was to go again", change(again(), func(s *story) { s.Cancels[0].Got, s.Resumes[0].At = sec(3), sec(26) }), "after its cancel"},
		{"a cancel that was never acknowledged", change(stopped(), func(s *story) { s.job().Status, s.Cancels[0].Got = "SUCCEEDED", 0 }), ""},
	})
}

func TestG8_JudgeOfRetries(t *testing.T) {
	round := func(n string) *history.Cause {
		return why("backoff", "every offer failed in round "+n+"; the next round begins later", "")
	}
	crashing := func(starts ...float64) *story {
		s := ran().begin()
		for i, at := range starts {
			name := "c" + strconv.Itoa(i+1)
			s.tell(at-1, "create", name, i+1, "").tell(at, "start", name, i+1, endsAt(at+0.5, 7)).tell(at+0.7, "terminated", name, i+1, "")
		}
		return s
	}
	judged(t, "G8", []verdict{
		{"waits that grow", ran().note(20, round("1")).note(22, round("2")).note(25, round("3")).note(30, round("4")), ""},
		{"waits that do not", ran().note(20, round("1")).note(22, round("2")).note(24, round("3")).note(25, round("4")), "round 4"},
		{"waits that begin anew", ran().note(20, round("1")).note(22, round("2")).note(40, round("1")).note(41.5, round("2")), ""},
		{"a machine that was lost in such a wait", change(taken(), func(s *story) {
			s.note(21, round("1")).note(23, round("2")).attempt(24, "closing", preempted).note(24.2, round("3"))
		}), ""},
		{"crashes with growing waits", crashing(3, 5, 7, 9.5, 13), ""},
		{"crashes without", crashing(3, 5, 7, 9, 10, 11, 12), "crashed"},
		{"many calls for one attempt", change(ran(), func(s *story) {
			for i := range 6 {
				s.tell(2+float64(i)/10, "again", "m1", 1, "")
			}
		}), "asked for 7 times"},
		{"many calls of many drivers", change(ran(), func(s *story) {
			for i := range 6 {
				s.tell(2+float64(i)/10, "again", "m1", 1, "")
			}
			s.broke(2, 3, history.Fault{Stops: "one", Target: "w1"})
		}), ""},
		{"restarts that are counted anew", change(again(), func(s *story) { s.Seen[0].Restarts = 2 }), ""},
		{"attempts that are counted anew", change(again(), func(s *story) { s.Seen[0].Attempts = 3 }), "went back"},
		{"a counter that went back", change(ran(), func(s *story) { s.Seen[0].Recoveries = 2 }), "went back"},
	})
}

func TestG9_JudgeOfSlots(t *testing.T) {
	held := func(step, status, wait string, times ...float64) *story {
		s := ran()
		for _, at := range times {
			s.Samples = append(s.Samples, history.Sample{At: sec(at), Slots: []history.Slot{{Job: 1, Until: sec(130), Step: step, Status: status, Wait: wait}}})
		}
		s.Samples = append(s.Samples, history.Sample{At: sec(100)})
		return s
	}
	judged(t, "G9", []verdict{
		{"a launch", held("launch", "STARTING", "booting", 11, 15, 25), ""},
		{"a job that has just ended", held("cleanup", "SUCCEEDED", "", 11), ""},
		{"a job that has ended", held("done", "SUCCEEDED", "", 11, 15, 25), "ended as SUCCEEDED"},
		{"a job that runs", held("watch", "RUNNING", "", 11, 15, 25), "step watch"},
		{"a job that waits", held("launch", "STARTING", "backoff", 11, 15, 25), "waited: backoff"},
		{"one whose driver died", held("launch", "STARTING", "backoff", 11, 15, 25).broke(12, 13, history.Fault{Stops: "one", Target: "w1"}), ""},
		{"one whose driver died long ago", held("launch", "STARTING", "backoff", 41, 45, 55).broke(12, 13, history.Fault{Stops: "one", Target: "w1"}), "waited: backoff"},
		{"one that waits for a tick that was lost", held("launch", "STARTING", "launch_slot", 11, 15, 25).broke(12, 12, history.Fault{Stops: "ticks"}), ""},
		{"one that nobody takes back, whoever dies", held("launch", "STARTING", "backoff", 11, 15, 42).broke(12, 41, history.Fault{Stops: "one", Target: "w1"}), "waited: backoff"},
		{"one that nobody could take back", held("launch", "STARTING", "backoff", 11, 15, 42).broke(12, 41, history.Fault{Stops: "all"}), ""},
		{"one that is left at the end", change(ran(), func(s *story) {
			s.Samples = []history.Sample{{At: sec(75), Slots: []history.Slot{{Job: 1, Until: sec(130), Step: "done", Status: "SUCCEEDED"}}}}
		}), "ended as SUCCEEDED"},
		{"nobody looked", change(ran(), func(s *story) { s.Samples = nil }), "nobody has looked"},
		{"more than there are", change(ran(), func(s *story) {
			s.Samples = []history.Sample{{At: sec(5), Slots: []history.Slot{{Job: 1}, {Job: 2}, {Job: 3}}}}
		}), "3 launch slots"},
	})
}

func TestG10_JudgeOfOutages(t *testing.T) {
	failed := func(status string) *story {
		return change(ran(), func(s *story) {
			s.job().Status, s.job().Cause = status, why("denied", "the provider refuses", "HTTP 503")
		})
	}
	judged(t, "G10", []verdict{
		{"an outage", ran().broke(2, 8, history.Fault{Op: "list", Kind: "unavailable"}), ""},
		{"a job that failed in one", failed("FAILED_PRECHECKS").broke(2, 8, history.Fault{Op: "list", Kind: "unavailable"}), "list unavailable"},
		{"a job that failed when Redis was away", failed("FAILED_CONTROLLER").broke(2, 8, history.Fault{Name: "Redis killed", Stops: "all"}), "Redis killed"},
		{"a job that may fail", change(failed("FAILED").broke(2, 8, history.Fault{Op: "list", Kind: "unavailable"}), func(s *story) { s.Submissions[0].Expect = []string{"FAILED"} }), ""},
		{"an error of ours", failed("FAILED_CONTROLLER"), "not its own"},
	})
}

func TestG11_JudgeOfLogs(t *testing.T) {
	judged(t, "G11", []verdict{
		{"a whole log", ran(), ""},
		{"with times in front", change(ran(), func(s *story) { s.job().Log = "12:00 begin\n12:01 something\n12:02 end" }), ""},
		{"the end is missing", change(ran(), func(s *story) { s.job().Log = "begin\n" }), `"end"`},
		{"in another order", change(ran(), func(s *story) { s.job().Log = "end\nbegin\n" }), `"end"`},
		{"no log at all", change(ran(), func(s *story) { s.job().Log, s.job().LogError = "", "the archive has none" }), "cannot be read"},
		{"a job that was cancelled", change(stopped(), func(s *story) { s.job().Log = "" }), ""},
	})
}

func TestG12_JudgeOfSecrets(t *testing.T) {
	judged(t, "G12", []verdict{
		{"a secret that was sought", ran(), ""},
		{"one that was found", change(ran(), func(s *story) { s.Leaks = []history.Leak{{Where: "w1.log", As: "base64", Near: "env="}} }), "w1.log, as base64"},
		{"one that was not sought", change(ran(), func(s *story) { s.Searched = nil }), "sought nowhere"},
		{"no secret", change(ran(), func(s *story) { s.Searched, s.Run.Secret = nil, "" }), ""},
	})
}

func TestG13_JudgeOfCauses(t *testing.T) {
	judged(t, "G13", []verdict{
		{"an ending with its cause", ran(), ""},
		{"one without", change(ran(), func(s *story) { s.job().Cause = nil }), "without a cause"},
		{"one without a sentence", change(ran(), func(s *story) { s.job().Cause = why("succeeded", "", "") }), "without a sentence"},
		{"a failure without evidence", change(ran(), func(s *story) { s.job().Status, s.job().Cause = "FAILED", why("user_exit", "exit code 3", "") }), "without evidence"},
		{"a task of a chain without", change(ran(), func(s *story) {
			s.job().Tasks = append(s.job().Tasks, history.Task{Index: 1, Status: "CANCELLED"})
		}), "task 1 ended as CANCELLED without a cause"},
		{"a recovery without", recovered(nil).tell(5, "preempted", "m1", 1, ""), "became RECOVERING without a cause"},
		{"an attempt closed without", ran().attempt(12, "closing", nil), "became closing"},
	})
}
