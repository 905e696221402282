package job

// calm reports whether looks at the job have become all the same: one that finds the code alive, the log as it was and no
// notice would decide what this one has decided, but for the time, whenever it comes before the deadline of the record and
// as long as nobody wakes the job. Then the watch need not read the record for such a look: it asks the agent, and goes by the
// record only if the answer is another one. TestAnyJobInAnyWorld decides again for each record that says so.
func (d *decision) calm() bool {
	l := d.Look
	return !d.moved && l.Every == d.rules.Quiet.Milliseconds() && l.Misses == 0 && l.ExitAt.IsZero() && l.Tail == l.Kept &&
		len(d.Live) == 1 && len(d.Live[0].Nodes) == 1 && d.Live[0].Notice == nil &&
		d.Preempt == nil && d.Follow <= d.now && d.Doubt <= l.ViewAt
}
