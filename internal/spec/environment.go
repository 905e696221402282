package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// EnvInput is what the environment of one run rests on: stored facts only, so that it is the same whoever starts it.
type EnvInput struct {
	Request    job.Request
	Job        job.ID
	Task       int      // index in Request.Tasks
	Submitted  job.Time // of the job
	Attempt    int      // 1, 2, ... within the task
	Recoveries int      // of the task so far
	Offer      job.Offer
	Rank       int      // of this node, from 0
	IPs        []string // of all nodes in the order of their ranks; none is the one node itself
}

// Environment returns the variables of a run: those of the task and, over them, the ones that this program sets. As in
// SkyPilot the latter win; [Parse] refuses to let a file name them. Secrets are not among them. Every SKYPILOT_
// variable has a twin that starts with OUTLAST_.
func Environment(in EnvInput) map[string]string {
	out := make(map[string]string)
	if in.Task >= 0 && in.Task < len(in.Request.Tasks) {
		maps.Copy(out, in.Request.Tasks[in.Task].Envs)
	}
	for name, value := range twins(in) {
		out["SKYPILOT_"+name], out["OUTLAST_"+name] = value, value
	}
	maps.Copy(out, own(in))
	return out
}

// Reserved reports whether the program itself sets the variable for every run.
func Reserved(name string) bool {
	if _, ok := own(EnvInput{})[name]; ok {
		return true
	}
	bare, ok := strings.CutPrefix(name, "SKYPILOT_")
	if !ok {
		bare, ok = strings.CutPrefix(name, "OUTLAST_")
	}
	_, set := twins(EnvInput{})[bare]
	return ok && set
}

// twins are the variables of SkyPilot (docs: running-jobs/environment-variables), without their prefix.
func twins(in EnvInput) map[string]string {
	ips := in.IPs
	if len(ips) == 0 {
		ips = []string{"127.0.0.1"}
	}
	rank, nodes := strconv.Itoa(in.Rank), strings.Join(ips, "\n")
	gpus := strconv.Itoa(int(math.Ceil(in.Offer.AcceleratorCount))) // a part of one is one
	return map[string]string{
		"TASK_ID":                 taskID(in, in.Task),
		"TASK_IDS":                taskIDs(in),
		"MANAGED_JOB_ID":          fmt.Sprint(in.Job),
		"JOB_RANK":                strconv.Itoa(in.Request.Rank),
		"NUM_JOBS":                strconv.Itoa(max(in.Request.Count, 1)),
		"NODE_RANK":               rank,
		"NODE_IPS":                nodes,
		"NUM_NODES":               strconv.Itoa(len(ips)),
		"NUM_GPUS_PER_NODE":       gpus,
		"CLUSTER_INFO":            clusterInfo(in),
		"USER":                    in.Request.User,
		"SETUP_NODE_RANK":         rank,
		"SETUP_NODE_IPS":          nodes,
		"SETUP_NUM_GPUS_PER_NODE": gpus,
	}
}

// own are the variables that SkyPilot does not have.
func own(in EnvInput) map[string]string {
	return map[string]string{
		"OUTLAST_JOB_ID":     fmt.Sprint(in.Job),
		"OUTLAST_ATTEMPT":    strconv.Itoa(in.Attempt),
		"OUTLAST_RECOVERIES": strconv.Itoa(in.Recoveries),
	}
}

// clusterInfo describes the machine in SkyPilot's words.
func clusterInfo(in EnvInput) string {
	info := struct {
		Name   string `json:"cluster_name"`
		Cloud  string `json:"cloud"`
		Region string `json:"region"`
		Zone   string `json:"zone"`
	}{fmt.Sprintf("%s-%d", cmp.Or(taskName(in.Request, in.Task), in.Request.Name), in.Job), in.Offer.Provider, in.Offer.Region, in.Offer.Zone}
	text, err := json.Marshal(info)
	if err != nil {
		return "{}" // cannot happen: four strings
	}
	return string(text)
}

func taskIDs(in EnvInput) string {
	ids := make([]string, len(in.Request.Tasks))
	for i := range ids {
		ids[i] = taskID(in, i)
	}
	return strings.Join(ids, "\n")
}

func taskID(in EnvInput, index int) string {
	return TaskID(in.Submitted, in.Request.Name, taskName(in.Request, index), len(in.Request.Tasks), in.Job, index)
}

func taskName(r job.Request, index int) string {
	if index < 0 || index >= len(r.Tasks) {
		return ""
	}
	return r.Tasks[index].Name
}

// TaskID names a task for its user's tools, such as an experiment tracker. It has SkyPilot's form,
// sky-managed-<time>_<job>[_<task>]_<id>-<index> with the time of submission in UTC and the task's name only in a
// chain, and depends on stored facts only: it is the same in every attempt.
func TaskID(submitted job.Time, jobName, taskName string, tasks int, id job.ID, index int) string {
	at := submitted.Std().UTC()
	parts := []string{fmt.Sprintf("sky-managed-%s-%06d", at.Format("2006-01-02-15-04-05"), at.Nanosecond()/int(time.Microsecond)), jobName}
	if tasks > 1 && taskName != "" {
		parts = append(parts, taskName)
	}
	return strings.Join(append(parts, fmt.Sprintf("%d-%d", id, index)), "_")
}
