//! Stage stamps of the hot path: raw ticks in a preallocated ring, judged afterwards.

use serde::{Deserialize, Serialize};

use crate::{Histogram, Series, Table};

/// A stage of a packet's way, and the whole of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Stage {
    /// From the wire, by the network card's clock, to the hook of its driver.
    Wire = 0,
    /// From the hook of the driver to user space; of what came by AF_XDP.
    Hook = 1,
    /// From the kernel's receive time to the receive call's return; of what came by a socket.
    Receive = 2,
    /// Sequencing, arbitration, filtering, message to event.
    Decode = 3,
    /// Event to book update.
    Book = 4,
    /// Strategy and pre-trade risk.
    Decide = 5,
    /// Order to bytes.
    Encode = 6,
    /// The send call.
    Send = 7,
    /// From the beginning of the first stage to the end of the last.
    Total = 8,
}

/// Stages proper, without the total.
const STAGES: usize = 8;

impl Stage {
    /// Every stage in order, the total last.
    pub const ALL: [Stage; STAGES + 1] = [
        Stage::Wire,
        Stage::Hook,
        Stage::Receive,
        Stage::Decode,
        Stage::Book,
        Stage::Decide,
        Stage::Encode,
        Stage::Send,
        Stage::Total,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Wire => "wire",
            Stage::Hook => "hook",
            Stage::Receive => "receive",
            Stage::Decode => "decode",
            Stage::Book => "book",
            Stage::Decide => "decide",
            Stage::Encode => "encode",
            Stage::Send => "send",
            Stage::Total => "total",
        }
    }
}

/// The stamps of one packet that led to an order. 0 means "not stamped".
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sample {
    /// The caller's number: sequence number of the message, order id.
    pub id: u64,
    /// When the first stage began, in ticks.
    pub start: u64,
    /// When each stage ended, in ticks.
    pub ends: [u64; STAGES],
}

impl Sample {
    /// When the packet was in user space, in ticks.
    pub fn user(&self) -> u64 {
        match [Stage::Hook, Stage::Receive].map(|stage| self.ends[stage as usize]) {
            [0, 0] => self.start,
            [0, by_socket] => by_socket,
            [by_hook, _] => by_hook,
        }
    }

    /// From user space to the decision, in ticks; `None` if it was not stamped.
    pub fn user_to_decided(&self) -> Option<u64> {
        let decided = self.ends[Stage::Decide as usize];
        (decided != 0).then(|| decided.saturating_sub(self.user()))
    }

    /// From the decision to the order having been sent, in ticks; `None` if it was not stamped.
    pub fn decided_to_sent(&self) -> Option<u64> {
        let [decided, sent] = [Stage::Decide, Stage::Send].map(|stage| self.ends[stage as usize]);
        (decided != 0 && sent != 0).then(|| sent.saturating_sub(decided))
    }

    /// From the decision until an order was somewhere, in ticks; `None` if either is not known.
    fn decided_until(&self, at: u64) -> Option<u64> {
        let decided = self.ends[Stage::Decide as usize];
        (decided != 0 && at != 0).then(|| at.saturating_sub(decided))
    }

    /// From the decision until driver and card had an order, and from the wire to the wire, in ticks.
    pub fn departure(&self, departed: Departed) -> [Option<u64>; 3] {
        [
            self.decided_until(departed.driver),
            self.decided_until(departed.card),
            self.wire_to_wire(departed),
        ]
    }

    /// From the wire, by the network card's clock, until an order was on it again, in ticks.
    fn wire_to_wire(&self, departed: Departed) -> Option<u64> {
        let came_by_card = self.ends[Stage::Wire as usize] != 0;
        (came_by_card && departed.card != 0).then(|| departed.card.saturating_sub(self.start))
    }

    /// How long a stage took in ticks: since the nearest stamp before its own. `None` if it was not stamped.
    /// Stamps of two clocks (kernel and counter) may cross by their error; that counts as 0.
    pub fn ticks(&self, stage: Stage) -> Option<u64> {
        if stage == Stage::Total {
            return self
                .ends
                .iter()
                .rev()
                .find(|&&end| end != 0)
                .map(|end| end.saturating_sub(self.start));
        }
        let end = self.ends[stage as usize];
        let before = self.ends[..stage as usize]
            .iter()
            .rev()
            .find(|&&end| end != 0)
            .unwrap_or(&self.start);
        (end != 0).then(|| end.saturating_sub(*before))
    }
}

/// When a packet was where before it was in user space, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It came from the hook of a driver.
    Hook {
        /// When the card received it; `None` where that is not known, or not comparable.
        wire: Option<u64>,
        /// When the program saw it.
        hook: u64,
    },
    /// It came by a socket.
    Kernel {
        /// The kernel's receive time.
        at: u64,
    },
}

/// Collects samples: [`Probes::begin`], [`Probes::mark`] at the end of each stage, [`Probes::commit`] if the
/// packet led to an order. Never allocates after construction. When full, further samples are counted and not
/// kept: a report says so.
#[derive(Clone, Debug)]
pub struct Probes {
    current: Sample,
    samples: Vec<Sample>,
    /// Of each sample, where departures are awaited.
    departed: Vec<Departed>,
    dropped: u64,
}

/// When the order of a sample was where behind the send call, in ticks; 0 means "not known".
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Departed {
    /// When the network driver had it.
    pub driver: u64,
    /// When the card had sent it.
    pub card: u64,
}

impl Probes {
    /// Room for `capacity` samples of 80 bytes, touched now so that no page fault happens later.
    pub fn new(capacity: usize) -> Probes {
        let mut samples = vec![
            Sample {
                id: 1,
                ..Sample::default()
            };
            capacity
        ];
        samples.clear();
        Probes {
            current: Sample::default(),
            samples,
            departed: Vec::new(),
            dropped: 0,
        }
    }

    /// Makes room for what is known of departures ([`Probes::depart`]), 16 bytes a sample.
    pub fn await_departures(&mut self) {
        let none = Departed { driver: 1, card: 1 };
        // Touched now, as the samples were.
        self.departed = vec![none; self.samples.capacity()];
        self.departed.clear();
    }

    /// Says when the order of a sample, by its place, was where behind the send call. What is known already
    /// stays: the first of several stamps is that of the first time it was sent.
    pub fn depart(&mut self, sample: usize, departed: Departed) {
        if let Some(known) = self.departed.get_mut(sample) {
            for (known, told) in [
                (&mut known.driver, departed.driver),
                (&mut known.card, departed.card),
            ] {
                if *known == 0 {
                    *known = told;
                }
            }
        }
    }

    /// The samples kept, in order, with what is known of their departures.
    pub fn departures(&self) -> impl Iterator<Item = (&Sample, Departed)> {
        let departed = self.departed.iter().copied();
        self.samples
            .iter()
            .zip(departed.chain(std::iter::repeat(Departed::default())))
    }

    /// Starts a packet: `ticks` is when its first stage began. Forgets an uncommitted one.
    #[inline]
    pub fn begin(&mut self, ticks: u64) {
        self.current = Sample {
            start: ticks,
            ..Sample::default()
        };
    }

    /// Ends a stage; a second mark of the same stage replaces the first. `Total` is not marked but computed.
    #[inline]
    pub fn mark(&mut self, stage: Stage, ticks: u64) {
        if let Some(end) = self.current.ends.get_mut(stage as usize) {
            *end = ticks;
        }
    }

    /// Keeps the packet's stamps under the caller's number, and says at which place; `None` if there is no
    /// room.
    #[inline]
    pub fn commit(&mut self, id: u64) -> Option<usize> {
        let place = self.samples.len();
        if place == self.samples.capacity() {
            self.dropped += 1;
            return None;
        }
        self.samples.push(Sample { id, ..self.current });
        if self.departed.capacity() > place {
            self.departed.push(Departed::default());
        }
        Some(place)
    }

    /// Says for all samples from `first` on how their packet came to user space, where they begin: told only
    /// after the order was out. Of a stage that was not measured nothing is said.
    pub fn amend(&mut self, first: usize, arrival: &Arrival) {
        for sample in self.samples.iter_mut().skip(first) {
            let user = sample.start;
            match *arrival {
                Arrival::Hook { wire, hook } => {
                    sample.ends[Stage::Hook as usize] = user;
                    sample.start = hook;
                    if let Some(wire) = wire {
                        sample.ends[Stage::Wire as usize] = hook;
                        sample.start = wire;
                    }
                }
                Arrival::Kernel { at } => {
                    sample.ends[Stage::Receive as usize] = user;
                    sample.start = at;
                }
            }
        }
    }

    /// The samples kept, in order.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// How many samples were not kept for lack of room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Forgets all samples (after warming up).
    pub fn clear(&mut self) {
        self.samples.clear();
        self.departed.clear();
        self.dropped = 0;
    }

    /// Stage times, with ticks converted by `span_ns` (the clock's).
    pub fn stage_times(&self, span_ns: impl Fn(u64) -> u64) -> StageTimes {
        let mut times = StageTimes {
            stages: Default::default(),
            dropped: self.dropped,
        };
        for sample in &self.samples {
            for stage in Stage::ALL {
                if let Some(ticks) = sample.ticks(stage) {
                    times.stages[stage as usize].record(span_ns(ticks));
                }
            }
        }
        times
    }

    /// One stage over time, from the first sample on.
    pub fn series(&self, stage: Stage, span_ns: impl Fn(u64) -> u64) -> Series {
        let mut series = Series::with_capacity(self.samples.len());
        let first = self.samples.first().map_or(0, |sample| sample.start);
        for sample in &self.samples {
            if let Some(ticks) = sample.ticks(stage) {
                series.push(span_ns(sample.start.saturating_sub(first)), span_ns(ticks));
            }
        }
        series
    }
}

/// One histogram per stage, in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageTimes {
    stages: [Histogram; STAGES + 1],
    dropped: u64,
}

impl StageTimes {
    /// The times of a stage.
    pub fn get(&self, stage: Stage) -> &Histogram {
        &self.stages[stage as usize]
    }

    /// The stages that were measured, with their names: what [`crate::Report::percentiles`] takes.
    pub fn named(&self) -> Vec<(&'static str, &Histogram)> {
        let all = Stage::ALL.iter().map(|&stage| (stage.name(), self.get(stage)));
        all.filter(|(_, histogram)| !histogram.is_empty()).collect()
    }

    /// How many samples did not fit.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The table of all measured stages.
    pub fn table(&self, title: &str) -> Table {
        Table::latencies(title, &self.named())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_belong_to_their_samples_and_the_first_stamp_stays() {
        let mut probes = Probes::new(2);
        probes.await_departures();
        let order = |probes: &mut Probes, start| {
            probes.begin(start);
            probes.mark(Stage::Wire, start + 5);
            probes.mark(Stage::Decide, start + 10);
            probes.mark(Stage::Send, start + 40);
            probes.commit(start)
        };
        let places = [100, 200, 300].map(|start| order(&mut probes, start));
        assert_eq!((places, probes.dropped()), ([Some(0), Some(1), None], 1));
        // Driver and card tell one after the other; a second time is that of a retransmission.
        probes.depart(1, Departed { driver: 230, card: 0 });
        probes.depart(1, Departed { driver: 0, card: 250 });
        probes.depart(
            1,
            Departed {
                driver: 9_000,
                card: 9_000,
            },
        );
        probes.depart(7, Departed { driver: 1, card: 1 });
        let parts: Vec<_> = probes
            .departures()
            .map(|(sample, departed)| sample.departure(departed))
            .collect();
        assert_eq!(parts, [[None; 3], [Some(20), Some(40), Some(50)]]);
        probes.clear();
        assert_eq!(order(&mut probes, 400), Some(0));
        assert_eq!(probes.departures().next().expect("one").1, Departed::default());
        // Where nothing is awaited, nothing is known.
        let mut plain = Probes::new(1);
        order(&mut plain, 100);
        plain.depart(0, Departed { driver: 1, card: 1 });
        assert_eq!(plain.departures().next().expect("one").1, Departed::default());
    }

    #[test]
    fn each_stage_lasts_from_the_mark_before_it_and_the_total_from_first_to_last() {
        let mut probes = Probes::new(4);
        probes.begin(1_000);
        for (stage, ticks) in Stage::ALL
            .into_iter()
            .zip([1_010, 1_030, 1_060, 1_100, 1_150, 1_210, 1_280, 1_360])
        {
            probes.mark(stage, ticks);
        }
        probes.commit(42);
        let sample = probes.samples()[0];
        assert_eq!(sample.id, 42);
        let ticks: Vec<_> = Stage::ALL.iter().map(|&stage| sample.ticks(stage)).collect();
        assert_eq!(ticks, [10, 20, 30, 40, 50, 60, 70, 80, 360].map(Some));
    }

    #[test]
    fn a_stage_without_a_mark_is_left_out_and_its_time_falls_to_the_next_one() {
        let mut probes = Probes::new(4);
        probes.begin(100);
        probes.mark(Stage::Decode, 130);
        probes.mark(Stage::Send, 190);
        probes.commit(1);
        let times = probes.stage_times(|ticks| ticks * 2);
        assert_eq!(
            times.named().iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["decode", "send", "total"]
        );
        assert_eq!(
            (times.get(Stage::Decode).max(), times.get(Stage::Send).max()),
            (60, 120)
        );
        assert_eq!(times.get(Stage::Total).max(), 180);
    }

    #[test]
    fn a_way_to_user_space_that_was_not_measured_is_no_stage_of_no_length() {
        let mut probes = Probes::new(5);
        let arrivals = [
            None,
            Some(Arrival::Kernel { at: 70 }),
            Some(Arrival::Hook { wire: None, hook: 80 }),
            Some(Arrival::Hook {
                wire: Some(55),
                hook: 80,
            }),
        ];
        for arrival in arrivals {
            let first = probes.samples().len();
            probes.begin(100);
            probes.mark(Stage::Decode, 130);
            probes.commit(1);
            arrival.iter().for_each(|arrival| probes.amend(first, arrival));
        }
        let stages = [
            Stage::Wire,
            Stage::Hook,
            Stage::Receive,
            Stage::Decode,
            Stage::Total,
        ];
        let ticks: Vec<_> = probes
            .samples()
            .iter()
            .map(|sample| stages.map(|stage| sample.ticks(stage)))
            .collect();
        assert_eq!(
            ticks,
            [
                [None, None, None, Some(30), Some(30)],
                [None, None, Some(30), Some(30), Some(60)],
                [None, Some(20), None, Some(30), Some(50)],
                [Some(25), Some(20), None, Some(30), Some(75)],
            ]
        );
        let names: Vec<_> = probes
            .stage_times(|t| t)
            .named()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["wire", "hook", "receive", "decode", "total"]);
        // The way from user space on is the same however the packet came there; what was not stamped is
        // absent.
        probes.begin(100);
        probes.mark(Stage::Decide, 140);
        probes.commit(2);
        let hook = Arrival::Hook {
            wire: Some(55),
            hook: 80,
        };
        probes.amend(4, &hook);
        let sample = probes.samples()[4];
        assert_eq!(
            (sample.user(), sample.user_to_decided(), sample.decided_to_sent()),
            (100, Some(40), None)
        );
        assert_eq!(probes.samples()[0].user_to_decided(), None);
    }

    #[test]
    fn stamps_of_two_clocks_that_cross_count_as_zero() {
        let mut probes = Probes::new(1);
        probes.begin(100);
        probes.mark(Stage::Receive, 90);
        probes.commit(1);
        assert_eq!(probes.samples()[0].ticks(Stage::Receive), Some(0));
    }

    #[test]
    fn what_does_not_fit_is_counted_and_what_is_not_committed_is_forgotten() {
        let mut probes = Probes::new(2);
        for id in 0..5 {
            probes.begin(10 * id);
            probes.mark(Stage::Decode, 10 * id + 1);
            if id != 0 {
                probes.commit(id);
            }
        }
        assert_eq!((probes.samples().len(), probes.dropped()), (2, 2));
        assert_eq!(probes.stage_times(|t| t).dropped(), 2);
        let series = probes.series(Stage::Total, |t| t);
        assert_eq!(series.points(), [(0, 1), (10, 1)]);
        probes.clear();
        assert_eq!((probes.samples().len(), probes.dropped()), (0, 0));
    }
}
