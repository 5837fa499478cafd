//! The filter: one program for all channels of an interface, made from the list of them.
//!
//! For every packet: is it plain UDP, tagged or not, to one of our groups? Then header, *arbitration* between
//! the lines, *continuity*, and a walk over the messages. What comes out is one of three: the kernel's stack
//! (not ours), dropped (a duplicate, or in sequence with nothing wanted in it), or delivered to an AF_XDP
//! socket with [`layout::Meta`] in front.
//!
//! **Nothing wanted is lost.** A packet is dropped as unwanted only if its first number is the channel's next
//! one, every message of it was looked at, and the exchange that moves the next number on succeeded. Whatever
//! is in doubt is delivered: a gap, a late packet, a race with another CPU, another session, more messages
//! than are looked at, sizes that do not fit, unknown types, heartbeats, a full table of orders.
//!
//! **Continuity without seeing the packets.** Metadata carry the channel's [`layout::WORD`] as it was
//! *before* the packet. All below its number was seen in sequence or has been delivered before: who reads
//! deliveries in order may take what lies between the highest number he knows and that one as seen, with
//! nothing wanted in it. This holds over several CPUs, because a delivered packet takes its place in the
//! order of deliveries between reading the word and moving it on, and a dropped one was walked after the word
//! was read.
//!
//! **Arming.** A channel begins disarmed and delivers everything. Its owner says what is wanted
//! ([`layout::SETS`]), the session, and then the word: a new epoch and the next number. Disarming is one
//! store of 0.
//!
//! **Orders.** PITCH names the symbol of an order only when it is added. Orders of wanted symbols are entered
//! by the program itself, disarmed or not, and leave with their deletion; those that come another way (a
//! snapshot, a retransmission) are entered by the owner before he arms. After a gap, an unreadable packet or
//! a full table the channel *holds*: everything is delivered until the owner arms it again.
//!
//! **Numbers that begin anew** in the same session (NYSE, CQS) make the channel hold as well, on the line
//! that says so first.

use crate::asm::{Assembler, Atomic, Cond, KernelFunction, Label, Op, Program, Reg, Size, action, helper};
use crate::layout::{self, Count, Sizes};
use crate::walk;
use alloc::vec::Vec;

mod spec;

pub use spec::{
    CHANNELS_MAX, ChannelSpec, FilterSpec, Framing, Group, MESSAGES_MAX, MapKind, MapSpec, SpecError,
};

impl FilterSpec {
    /// Makes the program.
    ///
    /// # Errors
    /// What is wrong with the specification.
    pub fn program(&self) -> Result<Program, SpecError> {
        self.check()?;
        let mut g = Generator::new(self);
        let labels = g.entry();
        for (framing, label) in labels {
            g.a.bind(label);
            g.framing(framing);
        }
        if self.guard {
            g.guard();
        }
        g.exits();
        Ok(g.a.finish()?)
    }
}

/// Places on the stack, from R10.
pub(crate) mod stack {
    pub(crate) const CONTEXT: i16 = -8;
    pub(crate) const SEQ: i16 = -16;
    pub(crate) const COUNT: i16 = -24;
    pub(crate) const END: i16 = -32;
    pub(crate) const WORD: i16 = -40;
    /// Bytes of the payload, or of the block in it.
    pub(crate) const LIMIT: i16 = -48;
    /// Not 0: the packet is delivered whatever is in it.
    pub(crate) const WANT: i16 = -56;
    /// Address of this CPU's counters.
    pub(crate) const COUNTERS: i16 = -64;
    pub(crate) const DELIVERY: i16 = -72;
    /// Key of the table of orders: order, set.
    pub(crate) const KEY: i16 = -88;
    pub(crate) const SET: i16 = -80;
    /// A walk's own: how many messages, where it is, the message's place, what kind it is, in sequence.
    pub(crate) const INDEX: i16 = -96;
    pub(crate) const OFFSET: i16 = -104;
    pub(crate) const MESSAGE: i16 = -112;
    pub(crate) const CODE: i16 = -120;
    pub(crate) const IN_SEQUENCE: i16 = -128;
    /// A value for the table of orders.
    pub(crate) const ONE: i16 = -136;
    /// 1: the match event goes on behind this packet.
    pub(crate) const OPEN: i16 = -144;
    /// When the card received the packet; 0: it does not say.
    pub(crate) const WIRE: i16 = -152;
    /// Address of the set's table of refused keys.
    pub(crate) const REFUSED: i16 = -160;
    /// With statistics, where instruments have keys: the place that is being looked at, and the address of
    /// this CPU's notes: how many of the packet's keys were refused, and their places.
    pub(crate) const PLACE: i16 = -168;
    pub(crate) const NOTES: i16 = -176;
}

/// Offset of the payload from R7.
pub(crate) const PAYLOAD: i16 = crate::frame::HEADERS as i16;

/// Where a packet's way ends.
#[derive(Clone, Copy)]
pub(crate) struct Exits {
    /// To the kernel's stack.
    pub(crate) pass: Label,
    /// The same, counted: a group's datagram may be in it.
    pub(crate) aside: Label,
    /// Delivered, and counts as received.
    pub(crate) wanted: Label,
    /// The same, of a packet whose reason was counted already.
    pub(crate) received: Label,
    /// Nothing wanted in it: dropped if it is in sequence.
    pub(crate) unwanted: Label,
    /// Not understood after arbitration: delivered, and the other line's copy is looked at again.
    pub(crate) doubt: Label,
    /// The same, of a packet whose reason was counted already.
    pub(crate) unread: Label,
    /// Not understood before arbitration: delivered.
    pub(crate) early_doubt: Label,
    /// Delivered without a number of its own.
    pub(crate) plain: Label,
    /// The other line was first.
    duplicate: Label,
    disarmed: Label,
    session: Label,
    /// Numbers begin anew: delivered, and the channel holds.
    pub(crate) reset: Label,
    /// Another CPU moved the channel on.
    raced: Label,
    /// A TCP segment, where connections are guarded.
    pub(crate) tcp: Label,
}

/// The assembler with what all parts of the program share. R7 is the frame without its tags, R8 its end, R9
/// the channel.
pub(crate) struct Generator<'s> {
    pub(crate) a: Assembler,
    pub(crate) spec: &'s FilterSpec,
    pub(crate) exits: Exits,
    sizes: Sizes,
}

use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};

impl<'s> Generator<'s> {
    pub(crate) fn new(spec: &'s FilterSpec) -> Generator<'s> {
        let mut a = Assembler::new();
        let exits = Exits {
            pass: a.label(),
            aside: a.label(),
            wanted: a.label(),
            received: a.label(),
            unwanted: a.label(),
            doubt: a.label(),
            unread: a.label(),
            early_doubt: a.label(),
            plain: a.label(),
            duplicate: a.label(),
            disarmed: a.label(),
            session: a.label(),
            reset: a.label(),
            raced: a.label(),
            tcp: a.label(),
        };
        Generator {
            a,
            spec,
            exits,
            sizes: Sizes::of(spec),
        }
    }

    pub(crate) fn uses(&self, which: impl Fn(Framing) -> bool) -> bool {
        self.spec.channels.iter().any(|channel| which(channel.framing))
    }

    /// One more of a kind; changes R0 and R1.
    pub(crate) fn count(&mut self, what: Count) {
        let a = &mut self.a;
        a.load(Size::D, R1, R10, stack::COUNTERS);
        a.load(Size::D, R0, R1, what.offset() as i16);
        a.alu_value(Op::Add, R0, 1);
        a.store(Size::D, R1, what.offset() as i16, R0);
    }

    /// Adds R2; changes R0 and R1.
    fn add(&mut self, what: Count) {
        let a = &mut self.a;
        a.load(Size::D, R1, R10, stack::COUNTERS);
        a.load(Size::D, R0, R1, what.offset() as i16);
        a.alu(Op::Add, R0, R2);
        a.store(Size::D, R1, what.offset() as i16, R0);
    }

    /// `target` if the `bytes` from payload offset R4 - R7 on are not all in the frame; changes R5.
    pub(crate) fn within(&mut self, bytes: i16, target: Label) {
        self.a.copy(R5, R4);
        self.a.alu_value(Op::Add, R5, i32::from(PAYLOAD + bytes));
        self.a.jump_if(Cond::Gt, R5, R8, target);
    }

    /// `target` if bit R0 (below [`layout::BITS`]) of the set at R6 is set; changes R0 and R4.
    pub(crate) fn if_wanted(&mut self, target: Label) {
        self.wanted_bit();
        self.a.jump_if_value(Cond::Ne, R4, 0, target);
    }

    /// R4 = 1 if the key in R0 is not among the set's refused ones, else 0; changes R0 and R5. No jumps: the
    /// verifier would follow each way through the rest of a walk. With statistics a refused key's place is
    /// noted, for [`Generator::unwanted_keys`].
    pub(crate) fn wanted_key(&mut self) {
        let counts = self.spec.statistics;
        let a = &mut self.a;
        a.copy(R4, R0);
        a.set_wide(R5, layout::HASH);
        a.alu(Op::Mul, R4, R5);
        a.alu_value(Op::Rsh, R4, 64 - layout::REFUSED_BUCKETS.trailing_zeros() as i32);
        if counts {
            a.store(Size::D, R10, stack::PLACE, R4);
        }
        a.alu_value(Op::Lsh, R4, 4);
        a.load(Size::D, R5, R10, stack::REFUSED);
        a.alu(Op::Add, R5, R4);
        a.load(Size::D, R4, R5, 0);
        a.load(Size::D, R5, R5, 8);
        a.alu(Op::Xor, R4, R0);
        a.alu(Op::Xor, R5, R0);
        // The upper bit of x | -x is set for all but 0: it is neither of the two.
        for reg in [R4, R5] {
            a.set(R0, 0);
            a.alu(Op::Sub, R0, reg);
            a.alu(Op::Or, reg, R0);
        }
        if counts {
            // The place: the bucket's first word, or the second one where it is not the first.
            a.copy(R0, R4);
            a.alu_value(Op::Rsh, R0, 63);
        }
        a.alu(Op::And, R4, R5);
        a.alu_value(Op::Rsh, R4, 63);
        if counts {
            a.load(Size::D, R5, R10, stack::PLACE);
            a.alu_value(Op::Lsh, R5, 1);
            a.alu(Op::Or, R5, R0);
            a.store(Size::D, R10, stack::PLACE, R5);
            // Noted in any case, and written over by the next one if the key is not refused. How many there
            // are stands in memory, of which the verifier knows nothing: on the stack it would count along,
            // and follow every turn of a walk by itself.
            a.load(Size::D, R5, R10, stack::NOTES);
            a.load(Size::D, R0, R5, 0);
            a.alu_value(Op::And, R0, layout::NOTES as i32 - 1);
            a.alu_value(Op::Lsh, R0, 3);
            a.alu(Op::Add, R5, R0);
            a.load(Size::D, R0, R10, stack::PLACE);
            a.store(Size::D, R5, 8, R0);
            a.load(Size::D, R5, R10, stack::NOTES);
            a.load(Size::D, R0, R5, 0);
            a.alu_value(Op::Add, R0, 1);
            a.alu(Op::Sub, R0, R4);
            a.store(Size::D, R5, 0, R0);
        }
    }

    /// R4 = bit R0 (below [`layout::BITS`]) of the set at R6; changes R0.
    pub(crate) fn wanted_bit(&mut self) {
        let a = &mut self.a;
        a.copy(R4, R0);
        a.alu_value(Op::Rsh, R4, 3);
        a.alu_value(Op::And, R4, (layout::BITS / 8 - 8) as i32);
        a.alu(Op::Add, R4, R6);
        a.load(Size::D, R4, R4, 0);
        a.alu_value(Op::And, R0, 63);
        a.alu(Op::Rsh, R4, R0);
        a.alu_value(Op::And, R4, 1);
    }

    /// R0 = the upper bits of R0's hash; changes R4.
    pub(crate) fn hash(&mut self, bits: i32) {
        self.a.set_wide(R4, layout::HASH);
        self.a.alu(Op::Mul, R0, R4);
        self.a.alu_value(Op::Rsh, R0, 64 - bits);
    }

    /// R0 = 1 if the halfword in R1, as loaded, names a VLAN tag, else 0; changes R1, R2.
    fn is_tag(&mut self) {
        let a = &mut self.a;
        // No jumps: the verifier would follow each variant through the whole program. x ^ tag - 1 is negative
        // only for equals.
        let [customer, service] = [0x8100_u16, 0x88A8].map(|tag| i32::from(tag.to_be()));
        a.copy(R2, R1);
        a.alu_value(Op::Xor, R1, customer);
        a.alu_value(Op::Sub, R1, 1);
        a.alu_value(Op::Rsh, R1, 63);
        a.alu_value(Op::Xor, R2, service);
        a.alu_value(Op::Sub, R2, 1);
        a.alu_value(Op::Rsh, R2, 63);
        a.alu(Op::Or, R1, R2);
        a.copy(R0, R1);
    }

    /// From the frame to the channel: gives the framings in use with their labels.
    pub(crate) fn entry(&mut self) -> Vec<(Framing, Label)> {
        let Exits { pass, aside, tcp, .. } = self.exits;
        let is_guarding = self.spec.guard;
        let a = &mut self.a;
        a.store(Size::D, R10, stack::CONTEXT, R1);
        a.load(Size::W, R7, R1, 0);
        a.load(Size::W, R8, R1, 4);
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, 18);
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.load(Size::H, R1, R7, 12);
        self.is_tag();
        let a = &mut self.a;
        a.copy(R6, R0);
        a.alu_value(Op::Lsh, R0, 2);
        a.alu(Op::Add, R7, R0);
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, 14);
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.load(Size::H, R1, R7, 12);
        self.is_tag();
        let a = &mut self.a;
        // A second tag stands behind a first one only.
        a.alu(Op::And, R0, R6);
        a.alu_value(Op::Lsh, R0, 2);
        a.alu(Op::Add, R7, R0);
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, i32::from(PAYLOAD) + crate::frame::PAYLOAD_MIN as i32);
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.load(Size::H, R1, R7, 12);
        a.jump_if_value(Cond::Ne, R1, i32::from(0x0800_u16.to_be()), pass);
        a.load(Size::B, R1, R7, 14);
        a.jump_if_value(Cond::Ne, R1, 0x45, aside);
        a.load(Size::B, R1, R7, 23);
        if is_guarding {
            a.jump_if_value(Cond::Eq, R1, 6, tcp);
        }
        a.jump_if_value(Cond::Ne, R1, 17, pass);
        a.load(Size::H, R1, R7, 20);
        a.alu_value(Op::And, R1, i32::from(0x3FFF_u16.to_be()));
        a.jump_if_value(Cond::Ne, R1, 0, aside);
        a.load(Size::W, R1, R7, 30);
        a.load(Size::H, R2, R7, 36);
        let mut labels: Vec<(Framing, Label)> = Vec::new();
        for (number, channel) in self.spec.channels.iter().enumerate() {
            let label = match labels.iter().find(|(framing, _)| *framing == channel.framing) {
                Some((_, label)) => *label,
                None => {
                    let label = a.label();
                    labels.push((channel.framing, label));
                    label
                }
            };
            for group in &channel.groups {
                let next = a.label();
                a.jump_if_value(Cond::Ne, R2, i32::from(group.port.to_be()), next);
                a.jump_if_value32(Cond::Ne, R1, u32::from_ne_bytes(group.address), next);
                if let Some(source) = group.source {
                    a.load(Size::W, R3, R7, 26);
                    a.jump_if_value32(Cond::Ne, R3, u32::from_ne_bytes(source), next);
                }
                a.map_value(R1, layout::STATE, (number * self.sizes.channel()) as u32);
                a.jump(label);
                a.bind(next);
            }
        }
        a.jump(pass);
        labels
    }

    /// What every channel of a framing does, with R1 its state.
    fn framing(&mut self, framing: Framing) {
        let Exits {
            pass,
            aside,
            early_doubt,
            ..
        } = self.exits;
        let channel = self.sizes.channel() as i32;
        let a = &mut self.a;
        // The channel's number comes out of memory, so that the verifier follows one unknown channel and not
        // each of them.
        a.load(Size::W, R0, R1, layout::NUMBER as i16);
        a.jump_if_value(Cond::Ge, R0, self.sizes.channels as i32, pass);
        a.alu_value(Op::Mul, R0, channel);
        a.map_value(R9, layout::STATE, 0);
        a.alu(Op::Add, R9, R0);
        a.call(helper::CPU);
        a.alu_value(Op::And, R0, self.sizes.cpus as i32 - 1);
        a.alu_value(Op::Lsh, R0, layout::COUNTERS_SIZE.trailing_zeros() as i32);
        a.alu(Op::Add, R0, R9);
        a.alu_value(Op::Add, R0, layout::COUNTERS as i32);
        a.store(Size::D, R10, stack::COUNTERS, R0);
        // Lengths: UDP's within IP's within the frame; Ethernet pads.
        a.load(Size::H, R2, R7, 38);
        a.from_big_endian(R2, 16);
        a.jump_if_value(Cond::Lt, R2, 8 + crate::frame::PAYLOAD_MIN as i32, aside);
        a.jump_if_value(Cond::Gt, R2, 8 + crate::frame::PAYLOAD_MAX as i32, aside);
        a.load(Size::H, R1, R7, 16);
        a.from_big_endian(R1, 16);
        a.copy(R3, R2);
        a.alu_value(Op::Add, R3, 20);
        a.jump_if(Cond::Lt, R1, R3, pass);
        a.alu_value(Op::Sub, R2, 8);
        a.copy(R1, R7);
        a.alu(Op::Add, R1, R2);
        a.alu_value(Op::Add, R1, i32::from(PAYLOAD));
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.store(Size::D, R10, stack::LIMIT, R2);
        self.add(Count::Bytes);
        self.count(Count::Packets);
        let header = match framing {
            Framing::Any => {
                let plain = self.exits.plain;
                return self.a.jump(plain);
            }
            Framing::Itch | Framing::Uqdf => walk::itch::HEADER,
            Framing::Pitch => walk::pitch::HEADER,
            Framing::Nyse => walk::nyse::HEADER,
            Framing::Mdp3 => walk::mdp3::HEADER,
            Framing::Cqs => walk::cqs::HEADER,
            Framing::OpenBook => walk::openbook::HEADER,
            Framing::Moex => walk::moex::HEADER,
        };
        let a = &mut self.a;
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, i32::from(PAYLOAD + header));
        a.jump_if(Cond::Gt, R1, R8, early_doubt);
        a.load(Size::D, R2, R10, stack::LIMIT);
        a.jump_if_value(Cond::Lt, R2, header.into(), early_doubt);
        // R1 the first number, R2 how many.
        match framing {
            Framing::Itch | Framing::Uqdf => walk::itch::header(self),
            Framing::Pitch => walk::pitch::header(self),
            Framing::Nyse => walk::nyse::header(self),
            Framing::Mdp3 => walk::mdp3::header(self),
            Framing::Cqs => walk::cqs::header(self),
            Framing::OpenBook => walk::openbook::header(self),
            Framing::Moex => walk::moex::header(self),
            Framing::Any => {}
        }
        let a = &mut self.a;
        a.set_wide(R3, layout::SEQUENCE_MAX);
        a.jump_if(Cond::Ge, R1, R3, early_doubt);
        a.store(Size::D, R10, stack::SEQ, R1);
        a.store(Size::D, R10, stack::COUNT, R2);
        a.copy(R3, R1);
        a.alu(Op::Add, R3, R2);
        a.store(Size::D, R10, stack::END, R3);
        a.store_value(Size::D, R10, stack::WANT, 0);
        a.store_value(Size::D, R10, stack::OPEN, 0);
        self.arbitrate(framing);
    }

    /// Session, word, arbitration and continuity; then the walk. R1 is the first number.
    fn arbitrate(&mut self, framing: Framing) {
        let Exits {
            disarmed,
            duplicate,
            session,
            received,
            ..
        } = self.exits;
        let learns = framing == Framing::Pitch;
        let (walk, learn, held) = (self.a.label(), self.a.label(), self.a.label());
        if learns {
            // The unit, which holds for a disarmed channel too.
            let a = &mut self.a;
            a.load(Size::B, R3, R7, PAYLOAD + walk::pitch::UNIT);
            a.load(Size::D, R4, R9, layout::SESSION as i16);
            a.jump_if(Cond::Ne, R3, R4, session);
            a.store_value(Size::D, R10, stack::IN_SEQUENCE, 0);
        }
        let unarmed = if learns { learn } else { disarmed };
        let a = &mut self.a;
        a.load(Size::D, R5, R9, layout::WORD as i16);
        a.store(Size::D, R10, stack::WORD, R5);
        a.jump_if_value(Cond::SignedGe, R5, 0, unarmed);
        a.load(Size::W, R3, R9, layout::HOLD as i16);
        a.jump_if_value(Cond::Ne, R3, 0, held);
        if framing.has_sessions() {
            a.load(Size::D, R3, R7, PAYLOAD + walk::itch::SESSION);
            a.load(Size::D, R4, R9, layout::SESSION as i16);
            a.jump_if(Cond::Ne, R3, R4, session);
            a.load(Size::H, R3, R7, PAYLOAD + walk::itch::SESSION + 8);
            a.load(Size::D, R4, R9, layout::SESSION as i16 + 8);
            a.jump_if(Cond::Ne, R3, R4, session);
        }
        // The first copy of a packet that begins here wins. The whole key is exchanged, so nothing is ever
        // cleared, and a collision delivers once too often at worst. The epoch is in the key: numbers that
        // begin anew find nothing from before.
        a.copy(R3, R1);
        a.alu_value(Op::And, R3, layout::SLOTS as i32 - 1);
        a.alu_value(Op::Lsh, R3, 3);
        a.alu(Op::Add, R3, R9);
        a.copy(R2, R5);
        a.alu_value(Op::Rsh, R2, 48);
        a.alu_value(Op::Lsh, R2, 48);
        a.alu(Op::Or, R2, R1);
        a.copy(R4, R2);
        a.atomic(Atomic::Exchange, R3, self.sizes.slots() as i16, R4);
        a.jump_if(Cond::Eq, R4, R2, duplicate);
        a.set_wide(R3, layout::NEXT_MASK);
        a.alu(Op::And, R5, R3);
        let (ahead, behind) = (a.label(), a.label());
        a.copy(R6, R1);
        a.jump_if(Cond::Gt, R6, R5, ahead);
        a.jump_if(Cond::Lt, R6, R5, behind);
        if learns {
            a.store_value(Size::D, R10, stack::IN_SEQUENCE, 1);
        }
        a.load(Size::D, R2, R10, stack::COUNT);
        self.add(Count::Messages);
        self.a.jump(walk);

        self.a.bind(ahead);
        self.count(Count::Ahead);
        if learns {
            // What is missing may add orders: nothing can be dropped until the owner has them.
            self.hold();
        }
        let out = self.a.label();
        self.a.jump(out);
        self.a.bind(behind);
        self.count(Count::Behind);
        self.a.bind(out);
        match framing {
            Framing::Pitch => self.a.store_value(Size::D, R10, stack::WANT, 1),
            Framing::Mdp3 => {
                // Whether the match event goes on is not known.
                self.a.store_value(Size::D, R10, stack::OPEN, 1);
            }
            _ => {}
        }
        self.a.load(Size::D, R2, R10, stack::COUNT);
        self.add(Count::Messages);
        self.a.jump(if learns { walk } else { received });

        self.a.bind(held);
        self.a.store_value(Size::D, R10, stack::WORD, 0);
        if learns {
            self.a.bind(learn);
            self.count(Count::Disarmed);
            self.a.store_value(Size::D, R10, stack::WANT, 1);
        } else {
            self.a.jump(disarmed);
        }
        self.a.bind(walk);
        self.set_address(framing);
        match framing {
            Framing::Itch => walk::itch::walk(self),
            Framing::Pitch => walk::pitch::walk(self),
            Framing::Nyse => walk::nyse::walk(self),
            Framing::Mdp3 => walk::mdp3::walk(self),
            Framing::Cqs => walk::cqs::walk(self),
            Framing::Uqdf => walk::uqdf::walk(self),
            Framing::OpenBook => walk::openbook::walk(self),
            Framing::Moex => walk::moex::walk(self),
            Framing::Any => {}
        }
    }

    /// The program stops dropping by itself; changes R0 and R1.
    pub(crate) fn hold(&mut self) {
        self.a.store_value(Size::W, R9, layout::HOLD as i16, 1);
        self.count(Count::Hold);
    }

    /// R6 = the channel's set; where instruments have keys, the stack has the table of refused ones. Changes
    /// R0 and R1.
    fn set_address(&mut self, framing: Framing) {
        let doubt = self.exits.doubt;
        let sets = self.sizes;
        let a = &mut self.a;
        if framing.is_keyed() && self.spec.statistics {
            a.call(helper::CPU);
            a.alu_value(Op::And, R0, sets.cpus as i32 - 1);
            a.alu_value(Op::Lsh, R0, layout::NOTES_SIZE.trailing_zeros() as i32);
            a.map_value(R1, layout::DROPPED, sets.notes_at() as u32);
            a.alu(Op::Add, R1, R0);
            a.store(Size::D, R10, stack::NOTES, R1);
            a.store_value(Size::D, R1, 0, 0);
        }
        a.load(Size::W, R0, R9, layout::SET as i16);
        a.jump_if_value(Cond::Ge, R0, sets.sets as i32, doubt);
        a.store(Size::D, R10, stack::SET, R0);
        if framing.is_keyed() {
            a.copy(R1, R0);
            a.alu_value(Op::Mul, R1, layout::REFUSED_SIZE as i32);
            a.map_value(R6, layout::REFUSED, 0);
            a.alu(Op::Add, R6, R1);
            a.store(Size::D, R10, stack::REFUSED, R6);
        }
        a.alu_value(Op::Mul, R0, layout::SET_SIZE as i32);
        a.map_value(R6, layout::SETS, sets.sets_at() as u32);
        a.alu(Op::Add, R6, R0);
    }

    /// `to` = the first set.
    pub(crate) fn sets_address(&mut self, to: Reg) {
        self.a.map_value(to, layout::SETS, self.sizes.sets_at() as u32);
    }

    /// R3 = the word of R2's epoch with the packet's end as next number; changes R4. R2 is the word before.
    fn moved_on(&mut self) {
        let a = &mut self.a;
        a.copy(R4, R2);
        a.alu_value(Op::Rsh, R4, 48);
        a.alu_value(Op::Lsh, R4, 48);
        a.load(Size::D, R3, R10, stack::END);
        a.alu(Op::Or, R3, R4);
        if self.uses(|framing| framing == Framing::Mdp3) {
            let a = &mut self.a;
            a.load(Size::D, R4, R10, stack::OPEN);
            a.alu_value(Op::Lsh, R4, layout::OPEN.trailing_zeros() as i32);
            a.alu(Op::Or, R3, R4);
        }
    }

    /// Moves the channel on behind a packet that nobody wants, and counts it.
    fn filtered(&mut self) {
        let raced = self.exits.raced;
        self.a.load(Size::D, R2, R10, stack::WORD);
        self.moved_on();
        self.a.copy(R0, R2);
        self.a
            .atomic(Atomic::CompareExchange, R9, layout::WORD as i16, R3);
        self.a.jump_if(Cond::Ne, R0, R2, raced);
        self.count(Count::Filtered);
        if self.spec.statistics {
            self.a.load(Size::D, R2, R10, stack::COUNT);
            self.add(Count::MessagesFiltered);
        }
    }

    fn drop_it(&mut self) {
        self.a.set(R0, action::DROP);
        self.a.exit();
    }

    /// The end of a walk that found nothing wanted. With statistics the packet, which is dropped for certain
    /// then, is walked again: `message` has R4 = a message's place and R1 its offset, leaves the instrument's
    /// number in R0 and the next message's offset in R1, and jumps where there is no message.
    pub(crate) fn unwanted(&mut self, header: i16, message: impl Fn(&mut Generator<'_>, Label)) {
        if !self.spec.statistics {
            let unwanted = self.exits.unwanted;
            return self.a.jump(unwanted);
        }
        self.filtered();
        let (next, over) = (self.a.label(), self.a.label());
        self.dropped_address(over);
        let a = &mut self.a;
        a.load(Size::D, R2, R10, stack::COUNT);
        a.jump_if_value(Cond::Gt, R2, self.spec.messages_max.into(), over);
        a.set(R1, header.into());
        a.set(R3, 0);
        a.bind(next);
        a.jump_if(Cond::Ge, R3, R2, over);
        a.jump_if_value(Cond::Gt, R1, crate::frame::PAYLOAD_MAX as i32, over);
        a.copy(R4, R7);
        a.alu(Op::Add, R4, R1);
        message(self, over);
        let a = &mut self.a;
        a.jump_if_value(Cond::Ge, R0, layout::BITS as i32, over);
        a.alu_value(Op::Lsh, R0, 3);
        a.alu(Op::Add, R0, R6);
        a.set(R5, 1);
        a.atomic(Atomic::Add, R0, 0, R5);
        a.alu_value(Op::Add, R3, 1);
        a.jump(next);
        a.bind(over);
        self.drop_it();
    }

    /// R6 = where the set's instruments are counted; the set's own address is not needed any more. Changes
    /// R0.
    fn dropped_address(&mut self, over: Label) {
        let sets = self.sizes.sets as i32;
        let a = &mut self.a;
        a.load(Size::D, R0, R10, stack::SET);
        a.jump_if_value(Cond::Ge, R0, sets, over);
        a.alu_value(Op::Mul, R0, (layout::BITS * 8) as i32);
        a.map_value(R6, layout::DROPPED, 0);
        a.alu(Op::Add, R6, R0);
    }

    /// The end of a walk that found nothing wanted, where instruments have keys. With statistics their places
    /// were noted on the way, and are counted now that the packet is dropped for certain. `is_by_entry`: what
    /// was noted is what counts as messages.
    pub(crate) fn unwanted_keys(&mut self, is_by_entry: bool) {
        if !self.spec.statistics {
            let unwanted = self.exits.unwanted;
            return self.a.jump(unwanted);
        }
        if is_by_entry {
            self.a.load(Size::D, R1, R10, stack::NOTES);
            self.a.load(Size::D, R0, R1, 0);
            self.a.store(Size::D, R10, stack::COUNT, R0);
        }
        self.filtered();
        let (next, over) = (self.a.label(), self.a.label());
        self.dropped_address(over);
        let a = &mut self.a;
        a.load(Size::D, R4, R10, stack::NOTES);
        a.load(Size::D, R2, R4, 0);
        a.set(R3, 0);
        a.bind(next);
        a.jump_if(Cond::Ge, R3, R2, over);
        a.jump_if_value(Cond::Ge, R3, layout::NOTES as i32, over);
        a.load(Size::D, R0, R4, 8);
        a.jump_if_value(Cond::Ge, R0, layout::BITS as i32, over);
        a.alu_value(Op::Lsh, R0, 3);
        a.alu(Op::Add, R0, R6);
        a.set(R5, 1);
        a.atomic(Atomic::Add, R0, 0, R5);
        a.alu_value(Op::Add, R3, 1);
        a.alu_value(Op::Add, R4, 8);
        a.jump(next);
        a.bind(over);
        self.drop_it();
    }

    /// The ends of a packet that was looked into; `place` takes its place among the deliveries, `deliver` has
    /// one.
    fn verdicts(&mut self, (deliver, place, seen): (Label, Label, Label)) {
        let Exits {
            wanted,
            received,
            unwanted,
            doubt,
            unread,
            duplicate,
            ..
        } = self.exits;
        let raced = self.exits.raced;
        // Who counts by instrument ends by himself.
        let counts = |framing: Framing| self.spec.statistics && framing.counts_instruments();
        if self.uses(|framing| framing != Framing::Any && !counts(framing)) {
            self.a.bind(unwanted);
            self.filtered();
            self.drop_it();
        }

        self.a.bind(duplicate);
        self.count(Count::Duplicate);
        self.a.set(R0, action::DROP);
        self.a.exit();

        // The place in the order of deliveries is taken before the word moves: see the module's description.
        self.a.bind(wanted);
        self.count(Count::Wanted);
        self.a.bind(received);
        self.take_place();
        let a = &mut self.a;
        a.load(Size::D, R2, R10, stack::WORD);
        a.jump_if_value(Cond::SignedGe, R2, 0, seen);
        a.set_wide(R5, layout::NEXT_MASK);
        a.copy(R4, R2);
        a.alu(Op::And, R4, R5);
        a.load(Size::D, R3, R10, stack::END);
        a.jump_if(Cond::Le, R3, R4, seen);
        self.moved_on();
        self.a.copy(R0, R2);
        self.a
            .atomic(Atomic::CompareExchange, R9, layout::WORD as i16, R3);
        self.a.jump_if(Cond::Eq, R0, R2, seen);
        self.count(Count::Race);
        self.a.jump(deliver);

        self.a.bind(doubt);
        self.count(Count::Doubt);
        self.a.bind(unread);
        self.a.load(Size::D, R1, R10, stack::SEQ);
        self.a.alu_value(Op::And, R1, layout::SLOTS as i32 - 1);
        self.a.alu_value(Op::Lsh, R1, 3);
        self.a.alu(Op::Add, R1, R9);
        self.a.store_value(Size::D, R1, self.sizes.slots() as i16, 0);
        self.a.jump(place);

        self.a.bind(raced);
        self.count(Count::Race);
        self.a.jump(place);
    }

    fn exits(&mut self) {
        let Exits {
            pass,
            aside,
            early_doubt,
            plain,
            disarmed,
            session,
            reset,
            ..
        } = self.exits;
        let (deliver, redirect, bare) = (self.a.label(), self.a.label(), self.a.label());
        // Where a packet goes whose number is known, for a pre-armed order.
        let seen = if self.arms() { self.a.label() } else { deliver };

        let place = self.a.label();
        // The verifier refuses instructions that nothing reaches.
        let looks = self.uses(|framing| framing != Framing::Any);
        if looks {
            self.verdicts((deliver, place, seen));
        }
        let arms = self.arms();
        for (label, what) in [
            (early_doubt, Count::Doubt),
            (disarmed, Count::Disarmed),
            (session, Count::Session),
            (plain, Count::Plain),
        ] {
            let is_used = match what {
                Count::Doubt => looks,
                Count::Disarmed => self.uses(|framing| !matches!(framing, Framing::Pitch | Framing::Any)),
                Count::Session => self.uses(|framing| framing.has_sessions() || framing == Framing::Pitch),
                // Every message of MOEX has a number.
                _ => self.uses(|framing| framing != Framing::Moex),
            };
            if !is_used {
                continue;
            }
            self.a.bind(label);
            match what {
                // A heartbeat tells what was seen before it.
                Count::Plain => {
                    self.a.load(Size::D, R1, R9, layout::WORD as i16);
                    self.a.store(Size::D, R10, stack::WORD, R1);
                }
                // Where it was when it was disarmed; 0 if it holds.
                Count::Disarmed => {}
                _ => self.a.store_value(Size::D, R10, stack::WORD, 0),
            }
            self.count(what);
            if what == Count::Disarmed && arms {
                self.take_place();
                self.a.jump(seen);
            } else if what != Count::Plain {
                self.a.jump(place);
            }
        }
        if self.uses(Framing::has_resets) {
            self.a.jump(place);
            self.a.bind(reset);
            self.a.store_value(Size::D, R10, stack::WORD, 0);
            self.hold();
            self.count(Count::Plain);
        }
        self.a.bind(place);
        self.take_place();
        if arms {
            self.a.jump(deliver);
            self.a.bind(seen);
            self.shoot(deliver);
        }
        self.a.bind(deliver);
        self.metadata(redirect, bare);

        self.a.bind(bare);
        self.count(Count::NoMetadata);
        self.a.bind(redirect);
        let a = &mut self.a;
        a.load(Size::D, R6, R10, stack::CONTEXT);
        a.load(Size::W, R2, R6, 16);
        a.map(R1, layout::SOCKETS);
        a.set(R3, action::PASS);
        a.call(helper::REDIRECT_MAP);
        a.exit();

        a.bind(aside);
        a.map_value(R1, layout::STATE, self.sizes.aside() as u32);
        a.set(R2, 1);
        a.atomic(Atomic::FetchAdd, R1, 0, R2);
        a.bind(pass);
        a.set(R0, action::PASS);
        a.exit();
    }

    /// Takes the next place in the order of deliveries; changes R1.
    fn take_place(&mut self) {
        let a = &mut self.a;
        a.set(R1, 1);
        a.atomic32(Atomic::FetchAdd, R9, layout::DELIVERIES as i16, R1);
        a.store(Size::D, R10, stack::DELIVERY, R1);
    }

    fn metadata(&mut self, redirect: Label, bare: Label) {
        let asks = self.spec.wire_time;
        let a = &mut self.a;
        a.load(Size::D, R6, R10, stack::CONTEXT);
        if asks {
            // What a driver wrote counts only if it says so.
            let told = a.label();
            a.store_value(Size::D, R10, stack::WIRE, 0);
            a.copy(R1, R6);
            a.copy(R2, R10);
            a.alu_value(Op::Add, R2, i32::from(stack::WIRE));
            a.call_kernel(KernelFunction::RxTimestamp);
            a.jump_if_value(Cond::Eq, R0, 0, told);
            a.store_value(Size::D, R10, stack::WIRE, 0);
            a.bind(told);
        }
        a.copy(R1, R6);
        a.set(R2, -(layout::META_SIZE as i32));
        a.call(helper::ADJUST_META);
        a.jump_if_value(Cond::Ne, R0, 0, bare);
        a.load(Size::W, R7, R6, 8);
        a.load(Size::W, R2, R6, 0);
        a.copy(R3, R7);
        a.alu_value(Op::Add, R3, layout::META_SIZE as i32);
        a.jump_if(Cond::Gt, R3, R2, bare);
        a.call(helper::KTIME);
        a.store(Size::D, R7, 8, R0);
        a.store_value(Size::H, R7, 0, layout::META_MAGIC.into());
        a.load(Size::W, R1, R9, layout::NUMBER as i16);
        a.store(Size::H, R7, 2, R1);
        a.load(Size::D, R1, R10, stack::DELIVERY);
        a.store(Size::W, R7, 4, R1);
        a.load(Size::D, R1, R10, stack::WORD);
        a.store(Size::D, R7, 16, R1);
        match asks {
            true => {
                a.load(Size::D, R1, R10, stack::WIRE);
                a.store(Size::D, R7, 24, R1);
            }
            false => a.store_value(Size::D, R7, 24, 0),
        }
        a.jump(redirect);
    }
}
