//! The addresses that one channel of a feed uses, as a venue's channel list names them.

/// One of them. Every venue has [`Port::Live`]; which others there are is the venue's way of recovery.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Port {
    /// Multicast, two lines: the messages as they happen.
    Live = 0,
    /// Multicast: messages sent again on request (PITCH gap response, NYSE retransmission).
    Retransmission = 1,
    /// Multicast: books as they stand, in a loop or on request (MDP 3.0 and MOEX snapshots, NYSE refresh).
    Snapshot = 2,
    /// Multicast: the same by order, where a venue has both (MDP 3.0).
    SnapshotByOrder = 3,
    /// Multicast: instrument definitions, in a loop (MDP 3.0 and MOEX instrument replay).
    Definitions = 4,
    /// Datagrams to and from a server that sends messages again (MoldUDP64).
    Requests = 5,
    /// A connection over which missing messages are asked for, and on some venues come (PITCH Gap Request
    /// Proxy, NYSE request server, MDP 3.0 and MOEX TCP replay).
    Replay = 6,
    /// A connection over which a snapshot comes (GLIMPSE, PITCH Spin).
    SnapshotServer = 7,
}

/// How a [`Port`] is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// UDP multicast groups, one a line.
    Multicast,
    /// UDP, one server.
    Datagram,
    /// TCP, one server.
    Stream,
}

impl Port {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// Every port, in the order of the discriminants.
    pub const ALL: [Port; Port::COUNT] = [
        Port::Live,
        Port::Retransmission,
        Port::Snapshot,
        Port::SnapshotByOrder,
        Port::Definitions,
        Port::Requests,
        Port::Replay,
        Port::SnapshotServer,
    ];

    /// The name used in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Port::Live => "live",
            Port::Retransmission => "retransmission",
            Port::Snapshot => "snapshot",
            Port::SnapshotByOrder => "snapshot_by_order",
            Port::Definitions => "definitions",
            Port::Requests => "requests",
            Port::Replay => "replay",
            Port::SnapshotServer => "snapshot_server",
        }
    }

    /// How it is spoken to.
    pub const fn transport(self) -> Transport {
        match self {
            Port::Live
            | Port::Retransmission
            | Port::Snapshot
            | Port::SnapshotByOrder
            | Port::Definitions => Transport::Multicast,
            Port::Requests => Transport::Datagram,
            Port::Replay | Port::SnapshotServer => Transport::Stream,
        }
    }
}
