//! What a child process tells the one that started it: one JSON object a line on its standard output.

use serde::{Deserialize, Serialize};

/// What a child tells its parent.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The exchange listens: the ports it was given.
    Listening {
        /// TCP port of the FIX acceptor.
        order_entry: u16,
        /// Recovery servers: name of the port, TCP or UDP port.
        servers: Vec<(String, u16)>,
    },
    /// Progress: seconds into the session, market data messages, orders.
    Progress {
        /// Into the session.
        seconds: f64,
        /// Of market data.
        messages: u64,
        /// Entered so far.
        orders: u64,
    },
    /// The child ends with a failure; the same sentence it prints.
    Failed {
        /// Why, and what to do.
        message: String,
    },
}

impl Notice {
    /// Sends it to the parent.
    pub fn send(&self) {
        let line = serde_json::to_string(self).expect("a notice has a JSON form");
        // A parent that is gone has already ended this process or is about to.
        println!("{line}");
    }
}
