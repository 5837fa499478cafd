//! Every test of the books in one program: each would compile them again.

mod captures;
mod dbn;
mod instrument_states;
mod itch;
mod mirror;
mod oracle;
mod recorded_days;
mod rules;
mod super_oracle;
mod super_rules;
