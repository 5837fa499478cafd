//! Every test of several crates together in one program: each would compile every feed again.

mod announced;
mod cqs;
mod filtered;
mod itch;
mod kernel_filter;
mod mdp3;
mod moex;
mod nyse;
mod pitch;
mod subscriptions;
mod subscriptions_by_snapshot;
mod super_books;
mod twins;
mod uqdf;

/// What ships; by it a test knows that nothing is allocated.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;
