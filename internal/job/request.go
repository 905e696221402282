package job

import "time"

// ID numbers a job within a deployment: 1, 2, 3 and so on, never used twice.
type ID int64

// Priority bounds (SkyPilot: skylet/constants.py).
const (
	MinPriority = -1000
	MaxPriority = 1000
)

// Request is what a user asks for: a chain of one or more tasks. internal/spec makes
// it from a job file. It never changes after submission, holds no secret values, and
// is stored apart from the record, since a quiet look does not need it.
type Request struct {
	Name     string        `json:"name"`
	Priority int           `json:"priority,omitempty"` // MinPriority..MaxPriority, higher first
	User     string        `json:"user,omitempty"`     // who submitted it, for people only
	Tasks    []TaskRequest `json:"tasks"`
	Rank     int           `json:"rank,omitempty"`  // 0..Count-1 among the jobs of one submission
	Count    int           `json:"count,omitempty"` // jobs of that submission; 0 counts as 1
}

// TaskRequest is one task of the chain as the user wrote it.
type TaskRequest struct {
	Name      string            `json:"name,omitempty"`
	Resources Resources         `json:"resources"`
	Recovery  Recovery          `json:"recovery,omitzero"`
	Envs      map[string]string `json:"envs,omitempty"`
	Secrets   []string          `json:"secrets,omitempty"` // names only; values travel sealed
	Workdir   string            `json:"workdir,omitempty"` // key of the bundle in the archive, "" for none
	Setup     string            `json:"setup,omitempty"`   // bash
	Run       string            `json:"run,omitempty"`     // bash; empty means the task succeeds at once
	Grace     time.Duration     `json:"grace,omitempty"`   // between TERM and KILL when stopped; 0 = default
}

// Resources says which machines would do: one of Any, tried cheapest first, or in the
// order written if Ordered.
type Resources struct {
	Any     []Want `json:"any"`
	Ordered bool   `json:"ordered,omitempty"`
}

// Want is one acceptable kind of machine. Empty and zero fields accept anything.
type Want struct {
	Provider string   `json:"provider,omitempty"` // "local", "aws", ...
	Region   string   `json:"region,omitempty"`
	Zone     string   `json:"zone,omitempty"`
	CPUs     Quantity `json:"cpus,omitzero"`
	MemoryGB Quantity `json:"memory,omitzero"`
	UseSpot  bool     `json:"use_spot,omitempty"`
}

// Quantity is an amount as written in a job file: "4" is exactly four, "4+" at least four.
type Quantity struct {
	N       float64 `json:"n"`
	AtLeast bool    `json:"plus,omitempty"`
}

// Accepts reports whether have satisfies q. The zero Quantity accepts anything.
func (q Quantity) Accepts(have float64) bool {
	switch {
	case q.N == 0:
		return true
	case q.AtLeast:
		return have >= q.N
	default:
		return have == q.N
	}
}

// Strategy says where to look after a machine was lost.
type Strategy string

// The strategies (SkyPilot: jobs/recovery_strategy.py; Never is asked for in its issue 10258).
const (
	EagerNextRegion Strategy = "EAGER_NEXT_REGION" // the lost region last; the default
	Failover        Strategy = "FAILOVER"          // the lost region first
	Never           Strategy = "NEVER"             // a lost machine ends the task
)

// Recovery says what may be tried again after which ending.
type Recovery struct {
	Strategy            Strategy `json:"strategy,omitempty"`               // "" means EagerNextRegion
	MaxRestartsOnErrors int      `json:"max_restarts_on_errors,omitempty"` // of the user's own failures
	RecoverOnExitCodes  []int    `json:"recover_on_exit_codes,omitempty"`  // restart, not counted
}

// Offer is one kind of machine in one place at a price.
type Offer struct {
	Provider string  `json:"provider"`
	Region   string  `json:"region"`
	Zone     string  `json:"zone,omitempty"`
	Type     string  `json:"type,omitempty"`
	Spot     bool    `json:"spot,omitempty"`
	Price    float64 `json:"price"` // per hour, in the provider's currency
	CPUs     float64 `json:"cpus,omitempty"`
	MemoryGB float64 `json:"memory,omitempty"`
}

// String names the offer for people: "local/a spot", "aws/us-east-1/us-east-1a p4d.24xlarge on-demand".
func (o Offer) String() string {
	s := o.Provider + "/" + o.Region
	if o.Zone != "" && o.Zone != o.Region {
		s += "/" + o.Zone
	}
	if o.Type != "" && o.Type != o.Provider {
		s += " " + o.Type
	}
	if o.Spot {
		return s + " spot"
	}
	return s + " on-demand"
}

// Key names the offer among all offers: provider/region/zone/type/market.
func (o Offer) Key() string {
	market := "od"
	if o.Spot {
		market = "spot"
	}
	return o.Provider + "/" + o.Region + "/" + o.Zone + "/" + o.Type + "/" + market
}
