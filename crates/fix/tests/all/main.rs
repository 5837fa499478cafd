//! Every test of the codec and of sessions in one program: each would compile both again.

mod alike;
mod codec;
mod dictionary;
mod groups;
mod hostile;
mod known;
mod pair;
mod standard;
mod stores;
mod subset;
mod transcripts;
mod versions;
mod virtual_time;
