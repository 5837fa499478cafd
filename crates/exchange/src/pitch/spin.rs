//! The Spin server: images of the unit's orders, and the side of one connection that gets one. PITCH 2.41.29,
//! "Spin Server".
//!
//! An image is taken every second while a client waits for one, of the books as they stand; the last ten are
//! kept. A request that is none's number gets the next later one.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tickwire_market::Nanos;
use tickwire_wire::layout::Char;
use tickwire_wire::pitch::{
    MESSAGES_MAX, SpinFinished, SpinImageAvailable, SpinResponse, SpinStatus, UnitHeader,
};
use tickwire_wire::zerocopy::IntoBytes;

use super::session::ServerSession;

/// How many images are kept.
const KEPT: usize = 10;
/// How often an image is taken.
const EVERY_NS: u64 = Nanos::SECOND;
/// Bytes of a block of an image.
const BLOCK: usize = 1400;
/// An image is handed to a connection in pieces of whole blocks, of about this size.
const PIECE: usize = 16 << 10;

/// The unit's orders after message `sequence`.
pub(super) struct Image {
    sequence: u32,
    orders: u32,
    /// Blocks without numbers.
    blocks: Vec<u8>,
}

/// Puts messages into the blocks of an image.
pub(super) struct ImageWriter {
    unit: u8,
    orders: u32,
    blocks: Vec<u8>,
    /// Where the last block begins and how many messages it has.
    last: (usize, u8),
}

impl ImageWriter {
    /// An order.
    pub(super) fn add(&mut self, message: &[u8]) {
        self.orders += 1;
        self.message(message);
    }

    /// Anything else.
    pub(super) fn message(&mut self, message: &[u8]) {
        let (start, count) = self.last;
        let is_full = self.blocks.len() - start + message.len() > BLOCK || count == MESSAGES_MAX;
        if self.blocks.is_empty() || is_full {
            self.last = (self.blocks.len(), 0);
            self.blocks.extend_from_slice(&[0; UnitHeader::SIZE]);
        }
        self.blocks.extend_from_slice(message);
        self.last.1 += 1;
        let (start, count) = self.last;
        let header = UnitHeader {
            length: ((self.blocks.len() - start) as u16).into(),
            count,
            unit: self.unit,
            sequence: 0.into(),
        };
        self.blocks[start..start + UnitHeader::SIZE].copy_from_slice(header.as_bytes());
    }
}

/// The images of a unit.
pub(super) struct Images {
    kept: VecDeque<Arc<Image>>,
    taken_at: Option<Nanos>,
}

impl Images {
    pub(super) fn new() -> Images {
        Images {
            kept: VecDeque::with_capacity(KEPT),
            taken_at: None,
        }
    }

    /// When the next one is due, if somebody waits for it.
    pub(super) fn due(&self) -> Nanos {
        self.taken_at.map_or(Nanos::ZERO, |at| at.after(EVERY_NS))
    }

    /// Takes an image, which reaches to message `sequence`.
    pub(super) fn take(&mut self, now: Nanos, sequence: u32, unit: u8, write: impl FnOnce(&mut ImageWriter)) {
        let mut writer = ImageWriter {
            unit,
            orders: 0,
            blocks: Vec::new(),
            last: (0, 0),
        };
        write(&mut writer);
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Arc::new(Image {
            sequence,
            orders: writer.orders,
            blocks: writer.blocks,
        }));
        self.taken_at = Some(now);
    }

    pub(super) fn latest(&self) -> Option<u32> {
        self.kept.back().map(|image| image.sequence)
    }

    /// The first one that reaches to `sequence`.
    fn reaching(&self, sequence: u32) -> Option<&Arc<Image>> {
        self.kept.iter().find(|image| image.sequence >= sequence)
    }
}

/// What a connection is getting.
#[derive(Default)]
pub(super) struct Loading {
    /// The image announced last.
    announced: Option<u32>,
    /// The image asked for, if it is not taken yet.
    waits_for: Option<u32>,
    image: Option<(Arc<Image>, usize)>,
}

impl Loading {
    /// Whether the connection is of use to nobody without a new image.
    pub(super) fn wants_image(&self) -> bool {
        self.image.is_none()
    }

    /// Says which image there is, once; starts the one that was waited for.
    pub(super) fn announce(&mut self, images: &Images, session: &mut ServerSession) {
        let Some(sequence) = images.latest() else { return };
        if self.image.is_some() || self.announced == Some(sequence) {
            return;
        }
        self.announced = Some(sequence);
        let available = SpinImageAvailable {
            sequence: sequence.into(),
            ..SpinImageAvailable::BLANK_MESSAGE
        };
        session.say(available.as_bytes());
        if let Some(wanted) = self.waits_for.take() {
            self.start(wanted, images, session);
        }
    }

    /// Answers a request; `last` is the number of the last message published.
    pub(super) fn request(&mut self, sequence: u32, last: u32, images: &Images, session: &mut ServerSession) {
        if self.image.is_some() || self.waits_for.is_some() {
            refuse(sequence, SpinStatus::InProgress, session);
        } else if sequence > last {
            refuse(sequence, SpinStatus::OutOfRange, session);
        } else {
            self.start(sequence, images, session);
        }
    }

    fn start(&mut self, sequence: u32, images: &Images, session: &mut ServerSession) {
        let Some(image) = images.reaching(sequence) else {
            self.waits_for = Some(sequence);
            return;
        };
        say(image.sequence, image.orders, SpinStatus::Accepted, session);
        self.image = Some((Arc::clone(image), 0));
    }

    /// Hands on the next piece of the image when little waits to be sent.
    pub(super) fn pull(&mut self, session: &mut ServerSession) {
        let Some((image, from)) = &mut self.image else {
            return;
        };
        if session.has_output() {
            return;
        }
        let mut to = *from;
        while let Some(length) = image.blocks.get(to..).and_then(<[u8]>::first_chunk)
            && to - *from < PIECE
        {
            to += usize::from(u16::from_le_bytes(*length));
        }
        session.put(&image.blocks[*from..to]);
        *from = to;
        if to == image.blocks.len() {
            let finished = SpinFinished {
                sequence: image.sequence.into(),
                ..SpinFinished::BLANK_MESSAGE
            };
            session.say(finished.as_bytes());
            self.image = None;
        }
    }
}

fn refuse(sequence: u32, status: SpinStatus, session: &mut ServerSession) {
    say(sequence, 0, status, session);
}

fn say(sequence: u32, orders: u32, status: SpinStatus, session: &mut ServerSession) {
    let response = SpinResponse {
        sequence: sequence.into(),
        order_count: orders.into(),
        status: Char(status as u8),
        ..SpinResponse::BLANK_MESSAGE
    };
    session.say(response.as_bytes());
}
