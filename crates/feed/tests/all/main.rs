//! Every test of the feeds in one program: each would compile the same decoders again.

mod arbiter_edges;
mod claims;
mod common;
mod cqs_transcripts;
mod distrusted;
mod itch;
mod joins;
mod mdp3;
mod mdp3_transcripts;
mod moex;
mod moex_common;
mod moex_transcripts;
mod nyse;
mod nyse_transcripts;
mod openbook;
mod pitch;
mod pitch_transcripts;
mod properties;
mod seen;
mod sip;
mod soup;
mod symbology;
mod transcripts;
mod xdp;
