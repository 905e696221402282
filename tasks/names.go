package tasks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// The queues. The watch has a server of its own, so that no act can hold it up.
const (
	QueueWatch   = "watch"
	QueueControl = "control"
	QueueLaunch  = "launch"
	QueueUrgent  = "urgent"
	QueueFleet   = "fleet"
	QueueHooks   = "hooks"
)

// ChainAdmission is the fleet's chain that hands out freed launch slots.
const ChainAdmission = "admission"

// ChainRetention is the fleet's chain that moves jobs that ended long ago to the archive.
const ChainRetention = "retention"

// ChainHooks is the fleet's chain that makes the deliveries of news.
const ChainHooks = "hooks"

// viewPrefix begins the names of the chains that list machines.
const viewPrefix = "view:"

// offersPrefix begins the names of the chains that tell what a provider offers.
const offersPrefix = "offers:"

// OffersChain is the name of the chain that tells what a provider offers.
func OffersChain(provider string) string { return offersPrefix + provider }

// ViewChain is the name of the chain that lists the machines of a region.
func ViewChain(provider, region string) string { return viewPrefix + provider + ":" + region }

// queueOf is the queue of an act. What brings an urgent job to a machine has a queue and places of its own, so that it stands
// behind no other job; its clean-up, for which nobody waits, has not.
func queueOf(step job.Step, priority int) string {
	switch {
	case step == job.StepCleanup:
		return QueueControl
	case job.Urgent(priority):
		return QueueUrgent
	case step == job.StepLaunch:
		return QueueLaunch
	default:
		return QueueControl
	}
}

// queueOfAct is the queue of an act that the record of its job asks for.
func queueOfAct(a store.Act) string { return queueOf(a.Step, a.Priority) }

// actOf is the act that a record asks for.
func actOf(r *job.Record) store.Act {
	return store.Act{ID: r.ID, Step: r.Step, N: r.Dispatch, Priority: r.Priority}
}

// chainQueue is the queue of a chain.
func chainQueue(chain string) string {
	if strings.HasPrefix(chain, "watch-") {
		return QueueWatch
	}
	return QueueFleet
}

// actID names the task of an act. It has no slash: asynqmon's routes end at one.
func actID(step job.Step, id job.ID, n int64) string {
	return fmt.Sprintf("%s:%d:%d", step, id, n)
}

// parseActID is the inverse of actID.
func parseActID(s string) (step job.Step, id job.ID, n int64, err error) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return "", 0, 0, fmt.Errorf("task id %q is not step:job:n", s)
	}
	i, err1 := strconv.ParseInt(parts[1], 10, 64)
	n, err2 := strconv.ParseInt(parts[2], 10, 64)
	if step = job.Step(parts[0]); err1 != nil || err2 != nil || !step.Acts() {
		return "", 0, 0, fmt.Errorf("task id %q is not step:job:n", s)
	}
	return step, job.ID(i), n, nil
}

// hookID names the task of a delivery of a job's news.
func hookID(id job.ID, n int64) string { return fmt.Sprintf("hook:%d:%d", id, n) }

// parseHookID is the inverse of hookID.
func parseHookID(s string) (store.HookDue, error) {
	var due store.HookDue
	if _, err := fmt.Sscanf(s, "hook:%d:%d", &due.ID, &due.N); err != nil || hookID(due.ID, due.N) != s {
		return store.HookDue{}, fmt.Errorf("task id %q is not hook:job:n", s)
	}
	return due, nil
}

// chainID names the task of one epoch of a chain.
func chainID(chain string, epoch int64) string { return chain + ":" + strconv.FormatInt(epoch, 10) }

// parseChainID is the inverse of chainID.
func parseChainID(s string) (chain string, epoch int64, err error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", 0, fmt.Errorf("task id %q is not chain:epoch", s)
	}
	epoch, err = strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("task id %q is not chain:epoch", s)
	}
	return s[:i], epoch, nil
}

// watchShard is the shard of a watch chain.
func watchShard(chain string) (int, error) {
	shard, err := strconv.Atoi(strings.TrimPrefix(chain, "watch-"))
	if err != nil || chain != store.WatchChain(shard) {
		return 0, fmt.Errorf("chain %q watches no shard", chain)
	}
	return shard, nil
}
