//! Signals to processes that this test started, by a handle that can never mean another process.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A running process of ours.
pub(super) struct Handle(OwnedFd);

impl Handle {
    /// The handle of a child that has not been waited for.
    pub(super) fn of(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
        Self(pidfd_open(pid, PidfdFlags::empty()).expect("a child that has not been waited for"))
    }

    /// Ends the process on the spot.
    pub(super) fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Stops the process, as Lambda freezes an environment between invocations.
    pub(super) fn freeze(&self) {
        self.send(Signal::STOP);
    }

    /// Lets it go on.
    pub(super) fn thaw(&self) {
        self.send(Signal::CONT);
    }

    fn send(&self, signal: Signal) {
        // It may have ended in the meantime, which whoever waits for it will see.
        let _ = pidfd_send_signal(&self.0, signal);
    }
}
