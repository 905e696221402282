// Package local is the provider whose machines are real processes on this computer: for trying Outlast out, for
// its tests, and as the plainest example of a [cloud.Provider]. It needs Linux.
//
// A machine is a directory and an init process that lives as long as the machine does, detached from the
// worker that made it:
//
//	Root/<zone>/<id>/        zone = region = one of a, b, c, d
//	    instance.json        who it belongs to; there from the first moment, never changed
//	    lock                 held by init from before its birth until its death
//	    init.json            which process init is, written by init itself
//	    sock                 there once it has booted: its "sshd", see [Dialer]
//	    notice.json          it will be taken; an agent.Notice
//	    end.json             it has to end, how and why: the first word counts
//	    gone                 it has been seen that nothing of it runs any more
//	    agent/, home/        for the agent, for commands
//
//	     Create             boot time over             Terminate, Preempt, poweroff, init died
//	instance.json ─► init.json ─► sock ─► (notice.json) ─► end.json ─► processes killed ─► gone
//	   booting        booting     running    stopping       stopping                      terminated or preempted
//
// Each file is written whole, once, and by nobody who needs a lock for it, so the state of a machine is a pure
// function of which files there are and of whether init lives (see judge), and a worker that is paused or killed
// anywhere holds up no other. One lock exists per zone, for creating only, so that capacity is counted right.
//
// # Ending
//
// A machine has ended only when none of its processes is left, which never needs its cooperation. Its processes are
// the descendants of init, which as a subreaper also keeps those that fork twice or change their session, and
// every process that carries the machine's id in its environment, with its descendants. They are stopped before they
// are killed, so that nothing in them sees the others die, and init is killed last.
//
// # On failure
//
// A creator that dies leaves nothing, or a directory that its repetition completes, or that expires. An init that
// was killed is a machine that was taken: the next List ends what is left of it and shows it as preempted. So does a
// restart of the computer. If the directory is removed by hand, init ends the machine. What ended stays listed
// for an hour. The one thing that would be missed is a process that has both emptied its environment and left its
// parents, when somebody else than this package has killed its init.
package local
