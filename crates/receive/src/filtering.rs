//! What the owner of a channel has to do for a filter at the hook: say what is wanted, arm it while the
//! channel is whole, disarm it when it is not.
//!
//! ```text
//!              gap, session, joins              whole, nobody joins: what is wanted is said anew
//!  armed ──────────────────────────► disarmed ──────────────────────────────────────────────────► armed
//!    drops what nobody wants           delivers everything
//! ```

use tickwire_feed::{Channel, FeedState};
use tickwire_kernel::filter::Framing;
use tickwire_kernel::layout;
use tickwire_market::InstrumentId;
use tickwire_venues::protocol::Protocol;

/// What a filter does with one channel.
pub trait Gate {
    /// Whether it drops anything: armed, and not holding by itself.
    fn drops(&mut self) -> bool;
    /// Delivers everything from now on.
    fn disarm(&mut self);
    /// Sets or clears the bit of an instrument.
    fn want(&mut self, bit: usize, wanted: bool);
    /// Drops from now on what nobody wants: the session, and the next number.
    fn arm(&mut self, session: [u64; 2], next: u64);
}

/// What the program can know of a protocol's packets: the protocols that are filtered, all others are
/// delivered whole.
pub fn framing_of(protocol: Protocol) -> Framing {
    match protocol {
        Protocol::Itch50 => Framing::Itch,
        Protocol::Xdp => Framing::Nyse,
        _ => Framing::Any,
    }
}

/// The owner's part for one channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filtering {
    framing: Framing,
    /// Of the last packet that moved the channel on, where packets have one.
    session: Option<[u64; 2]>,
}

impl Filtering {
    /// For a channel whose packets are made up so. Bits of instruments that nobody knows are to be set at the
    /// beginning: [`Filtering::begin`].
    pub fn new(framing: Framing) -> Filtering {
        Filtering {
            framing,
            session: (framing != Framing::Itch).then_some([0, 0]),
        }
    }

    /// Everything is wanted until the channel knows who is who.
    pub fn begin(&self, gate: &mut dyn Gate) {
        gate.disarm();
        (0..layout::BITS).for_each(|bit| gate.want(bit, true));
    }

    /// A live packet was given to the channel, which moved on by it if `moved`.
    #[inline]
    pub fn note(&mut self, bytes: &[u8], moved: bool) {
        if self.framing == Framing::Itch
            && moved
            && let Some((a, rest)) = bytes.split_first_chunk::<8>()
            && let Some(b) = rest.first_chunk::<2>()
        {
            self.session = Some([u64::from_ne_bytes(*a), u16::from_ne_bytes(*b).into()]);
        }
    }

    /// The session and the number of the channel's next message, while nothing is missing: what a pre-armed
    /// order is armed from.
    pub fn position<C: Channel>(&self, channel: &C) -> Option<([u64; 2], u64)> {
        let is_whole = channel.state() == FeedState::Live;
        Some((self.session.filter(|_| is_whole)?, channel.next_seq().0))
    }

    /// Disarms if something is missing; after every packet.
    #[inline]
    pub fn guard<C: Channel>(&self, channel: &C, gate: &mut dyn Gate) {
        if channel.state() != FeedState::Live && gate.drops() {
            gate.disarm();
        }
    }

    /// Arms where it can be: in the slow part of a loop. All deliveries before have been given to the
    /// channel, or will be.
    pub fn settle<C: Channel>(&self, channel: &C, gate: &mut dyn Gate) {
        let is_whole = channel.state() == FeedState::Live && !channel.has_joins();
        match (is_whole, gate.drops(), self.session) {
            (false, true, _) => gate.disarm(),
            (true, false, Some(session)) => {
                gate.disarm();
                channel.instruments(&mut |instrument| {
                    let bit = instrument.id.0 as usize;
                    // The feed as a whole is always wanted; numbers beyond the set are delivered.
                    if instrument.id != InstrumentId::WHOLE_FEED && bit < layout::BITS {
                        gate.want(bit, channel.wants(instrument.id));
                    }
                });
                gate.arm(session, channel.next_seq().0);
            }
            _ => {}
        }
    }
}
