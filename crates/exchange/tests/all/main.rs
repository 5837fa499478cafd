//! Every test of the exchange but those of the engine alone in one program: each would compile it again.

mod exchange_day;
mod mdp3;
mod no_allocation;
mod nyse;
mod order_entry;
mod pitch;
mod published_itch;
mod support;
