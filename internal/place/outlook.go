package place

import (
	"github.com/outlast-dev/outlast/internal/job"
)

// Catalog is all that a provider has, told without knowing any task.
type Catalog struct {
	Provider string
	Offers   []job.Offer
	Support  Support
}

// Outlook is what a task may expect before anything is started.
type Outlook struct {
	Order []Ranked   // all offers in the order in which they would be tried; see [Order]
	Notes []Note     // what of the task has no effect there
	Next  *job.Offer // where it would go if the first machine were lost, nil if nowhere
}

// Fits reports whether anything could serve the task.
func (o Outlook) Fits() bool { return len(o.Order) > 0 && o.Order[0].Standing <= Late }

// Fitting are the offers that could serve the task, the first one first.
func (o Outlook) Fitting() []job.Offer {
	var fit []job.Offer
	for _, r := range o.Order {
		if r.Standing <= Late {
			fit = append(fit, r.Offer)
		}
	}
	return fit
}

// InputOf is what is known of a task before its first launch.
func InputOf(t job.TaskRequest, catalogs []Catalog) Input {
	in := Input{
		Support: map[string]Support{}, Resources: t.Resources, Beyond: TaskFields(t), Strategy: t.Recovery.Strategy,
	}
	for _, c := range catalogs {
		in.Offers = append(in.Offers, c.Offers...)
		in.Support[c.Provider] = c.Support
	}
	return in
}

// OutlookOf looks ahead for one task. It decides as a worker will, with the same functions.
func OutlookOf(t job.TaskRequest, catalogs []Catalog) Outlook {
	in := InputOf(t, catalogs)
	o := Outlook{Order: Order(in)}
	o.Notes = notes(in, o.Order)
	if o.Fits() && in.Strategy != job.Never {
		first := o.Order[0].Offer
		in.Search.Lost = &first
		next := Order(in)[0].Offer
		o.Next = &next
	}
	return o
}

// Hopeless explains why nothing of the catalogs can serve the task, nil if something could.
func (o Outlook) Hopeless() *job.Cause {
	if o.Fits() {
		return nil
	}
	return hopeless(o.Order, 0)
}
