package job

// Search is what a task remembers of its hunt for a machine. It is kept in the record, so that no worker's
// death resets a back-off (G8). internal/place decides with it.
type Search struct {
	Round     int                `json:"round,omitempty"`     // whole rounds in which every offer failed
	Tried     []string           `json:"tried,omitempty"`     // offer keys that failed in this round
	Penalties map[string]Penalty `json:"penalties,omitempty"` // by offer key
	Lost      *Offer             `json:"lost,omitempty"`      // where the last machine was lost
}

// Penalty keeps an offer at the end of the list for a while.
type Penalty struct {
	Until Time  `json:"until"` // of no meaning if Fault is permanent: then for the life of the task
	Fault Fault `json:"fault"` // what the provider said
}

// Choice is what to do about the next machine: take Offer, or wait, or give up.
type Choice struct {
	Offer *Offer // take this one
	Until Time   // or look again then (a whole round has failed)
	None  *Cause // or never: every offer failed for good, or there is none
	Start bool   // with Offer: this begins a new round, so forget Tried
}
