//! Numbers change hands: races, limits, repair, and what comes back.

mod block;
mod cancel;
mod decided;
mod expiry;
mod halted;
mod late;
mod limits;
mod locks;
mod poison;
mod races;
mod repair;
mod twice;
