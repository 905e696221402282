// Package cloud is the seam between Outlast and whoever rents out machines.
//
// A [Provider] makes and ends machines in one cloud. It keeps no state of its own that matters: every
// method may be called again after any failure, from any worker, and the truth about what exists is
// what [Provider.List] answers. What must hold for every provider is written down as a test suite in
// package cloudtest; a new provider starts by passing it.
//
// Machines are identified by tags ([Identity]), never by their names: names are for people.
package cloud

import (
	"context"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/place"
)

// Identity is what a machine carries as tags: whose it is (G4). A job's id alone does not tell: a store that lost its last
// second gives the ids of lost jobs again, to jobs with another nonce.
type Identity struct {
	Deployment string `json:"deployment"`
	Job        job.ID `json:"job"`
	Nonce      string `json:"nonce,omitempty"` // see job.Head; at most 16 of a-z and 0-9
	Task       int    `json:"task"`
	Attempt    int    `json:"attempt"`
}

// Of reports whether the machine is of the job with that nonce, if its job's id fits. One without any was made before there were
// nonces, by another version: its id has to do.
func (i Identity) Of(nonce string) bool { return i.Nonce == "" || i.Nonce == nonce }

// Request asks for the machines of one attempt. The same Token always asks for the same machines.
type Request struct {
	Identity
	Token string
	Offer job.Offer
	Nodes int    // how many machines, all or none; 0 counts as 1
	Name  string // for people; untrusted text
}

// State is what a provider says of a machine.
type State string

// The states. Only Booting and Running machines are of use; all but Terminated may still cost money.
const (
	Booting    State = "booting"
	Running    State = "running"
	Stopping   State = "stopping"   // on its way out, may still run code
	Stopped    State = "stopped"    // exists, runs nothing, can not be used again
	Preempted  State = "preempted"  // taken by the provider; runs nothing
	Terminated State = "terminated" // ended by us or by itself; runs nothing
)

// Ended reports whether no process can be running on such a machine any more.
func (s State) Ended() bool { return s == Stopped || s == Preempted || s == Terminated }

// Node is a machine as its provider describes it.
type Node struct {
	Identity
	ID        string    `json:"id"`   // the provider's name, unique within the provider
	Rank      int       `json:"rank"` // 0..n-1 within the attempt
	Provider  string    `json:"provider"`
	Region    string    `json:"region"`
	Zone      string    `json:"zone,omitempty"`
	Type      string    `json:"type,omitempty"`
	Spot      bool      `json:"spot,omitempty"`
	Price     float64   `json:"price"` // per hour
	State     State     `json:"state"`
	Reason    string    `json:"reason,omitempty"` // why it is in that state, in the provider's words
	Address   string    `json:"addr,omitempty"`   // for a Shell; may be empty while booting
	CreatedAt time.Time `json:"created_at"`
}

// Match selects machines of one deployment by identity. Zero fields below Job match all.
type Match struct {
	Deployment string
	Job        job.ID
	Nonce      string // of the job
	Task       int    // meaningful only with Attempt != 0
	Attempt    int    // 0 matches every attempt of every task of the job
	NodeID     string // if set, only this machine
}

// Provider makes and ends machines in one cloud. Every method may be called again after any failure.
// Errors are *Error where the provider knows better than "failed for now"; see [ClassOf].
type Provider interface {
	// Name is the first part of an infra, such as "local" in local/a.
	Name() string
	// Regions lists the regions that may hold machines of this deployment.
	Regions(ctx context.Context) ([]string, error)
	// Offers lists all kinds of machines that it has, with prices, in no particular order; package place picks what
	// serves a task. What is not listed does not exist: a lack of capacity right now is an error of Create, not of
	// Offers.
	Offers(ctx context.Context) ([]job.Offer, error)
	// Support tells what it makes of what a job file may ask for beside a machine. It has an entry for each of
	// [place.Fields], and is always the same.
	Support() place.Support
	// Create makes the machines of an attempt, all or none. It is idempotent by r.Token: whatever was made for a
	// token before is returned again, in whatever state it is now. It does not wait for them to boot.
	// After Terminate for the same attempt it makes nothing and returns what is left, or an error of class Invalid.
	Create(ctx context.Context, r Request) ([]Node, error)
	// List returns all machines of this deployment in a region, in any state the provider still shows,
	// or an error. It never returns a part.
	List(ctx context.Context, region string) ([]Node, error)
	// Terminate ends every machine that matches, with everything that runs on it. Not found is success.
	// It may return before they are gone: List tells.
	Terminate(ctx context.Context, region string, match Match) error
	// Settle is how long after a create or terminate call List may still show the state before it.
	Settle() time.Duration
}

// Finder is a Provider that can list the machines of some jobs without those of all others, as clouds do by tags.
type Finder interface {
	// Find is List, for the machines of some jobs only; up to 200 are asked for at once.
	Find(ctx context.Context, region string, jobs []job.ID) ([]Node, error)
}

// Pager is a Provider that can list machines page by page, so that nobody has to hold all of a large region at once.
type Pager interface {
	// Pages is List, with the machines in as many calls of page as it likes, each in one. What has come is worth nothing if
	// there is an error in the end, that of page included.
	Pages(ctx context.Context, region string, page func([]Node) error) error
}

// Pages lists the machines of a region page by page, if the provider can do that, else all at once.
func Pages(ctx context.Context, p Provider, region string, page func([]Node) error) error {
	if pager, ok := p.(Pager); ok {
		return pager.Pages(ctx, region, page)
	}
	nodes, err := p.List(ctx, region)
	if err != nil {
		return err
	}
	return page(nodes)
}

// Preempter is a Provider that can take its own machines away, so that losing one can be tried out.
type Preempter interface {
	// Preempt takes a machine: at once without a word if notice is 0, else with a notice that long before.
	Preempt(ctx context.Context, region, nodeID string, notice time.Duration) error
}
