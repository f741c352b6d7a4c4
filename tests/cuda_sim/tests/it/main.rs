//! The double does what a driver does, and sees what a driver does not.

mod contexts;
mod copies;
mod crashes;
mod graphs;
mod harness;
mod kernels;
mod memory;
mod misuse;
mod pools;
mod races;
mod streams;
mod symbols;
