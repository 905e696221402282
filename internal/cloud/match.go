package cloud

// Selects reports whether m means n. It is the one rule for all providers:
//
//   - nothing of another deployment is ever meant, whatever else is equal;
//   - NodeID means that machine only, and Job, if given too, must fit it;
//   - without NodeID a Job is needed: the zero Match means nothing, not everything;
//   - a Nonce excludes the machines of another job of the same id.
func (m Match) Selects(n Node) bool {
	switch {
	case m.Deployment == "" || m.Deployment != n.Deployment:
		return false
	case m.NodeID != "" && m.NodeID != n.ID:
		return false
	case m.Nonce != "" && !n.Of(m.Nonce):
		return false
	case m.NodeID != "" && m.Job == 0:
		return true
	case m.Job == 0 || m.Job != n.Job:
		return false
	default:
		return m.Attempt == 0 || (m.Task == n.Task && m.Attempt == n.Attempt)
	}
}
