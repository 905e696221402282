// Package follow reads the output of a job for a person: attempt after attempt, while it is written and afterwards.
//
// The log of an attempt is one stream of bytes that lies in two places. The archive has all of it but the last moments;
// the live tail in the store has the last moments, and is bounded. A [Log] stitches them by offset, so that nothing is
// shown twice and nothing is left out; what can be had in neither place is told by a line in the output.
//
//	bytes     0 ─────────────────────────────────────► end
//	archive   ████████████████████
//	tail                    ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//	shown     ─────────────────────►offset
//
// A [Follower] goes over the tasks and attempts of a job in their order. An attempt is over when its output is in the
// archive, which is before its machine is gone, so that following ends with the user's code and not with the clean-up.
//
// On failure: a store that does not answer is a pause (G10). An archive that does not answer is told, and what the
// tail has is shown.
package follow
