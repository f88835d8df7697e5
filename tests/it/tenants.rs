//! Stores do not mix: what cannot be stored, what is not found, and statements that name their tenant.

mod furnished;
mod ids;
mod keys;
mod scopes;
mod statements;
