//! What the seed program and the opening share: how a store of the local cloud is set up.

pub mod sandbox;
