//! A bounded queue from one thread to one other: values of one size, no lock, no allocation after [`ring`],
//! no system call. A value that owns memory is handed over with it: whoever popped it is the only one who can
//! reach it.
//!
//! ```text
//! Producer  head ─────────────►┐ Release            Acquire ┌─► Consumer
//!           a copy of tail ◄───│── Acquire ──── Release ────│◄── tail
//!                              └──► slots[head & mask] ─────┘
//! ```
//!
//! Each end keeps a copy of the other's index and looks at the real one only when the copy says full, or
//! empty: while the queue is neither, the ends share no cache line but those of the values. When it is full,
//! [`Producer::push`] gives the value back and the caller decides; nothing is lost and nothing waits here.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An index that one end writes and the other reads.
pub(crate) trait Index {
    /// An index of 0.
    fn new() -> Self;
    /// What the other end published, with all it wrote before.
    fn acquire(&self) -> usize;
    /// Publishes this end's index, with all it wrote before.
    fn release(&self, value: usize);
}

/// A place for one value.
pub(crate) trait Slot<T> {
    /// A place without a value.
    fn new() -> Self;

    /// Puts a value in.
    ///
    /// # Safety
    /// * Nobody else touches the slot meanwhile.
    unsafe fn put(&self, value: T);

    /// Moves the value out.
    ///
    /// # Safety
    /// * Nobody writes the slot meanwhile.
    /// * A value was put in, that happened before this, and it was not moved out since.
    unsafe fn take(&self) -> T;
}

/// What a queue is made of: the processor's atomics, or those of a model checker.
pub(crate) trait Parts<T> {
    /// Its indices.
    type Index: Index;
    /// Its slots.
    type Slot: Slot<T>;
}

/// The processor's own.
#[derive(Debug)]
pub struct Native;

impl<T> Parts<T> for Native {
    type Index = AtomicUsize;
    type Slot = NativeSlot<T>;
}

impl Index for AtomicUsize {
    fn new() -> AtomicUsize {
        AtomicUsize::new(0)
    }

    #[inline]
    fn acquire(&self) -> usize {
        self.load(Ordering::Acquire)
    }

    #[inline]
    fn release(&self, value: usize) {
        self.store(value, Ordering::Release)
    }
}

/// Memory for a value that may not be there yet.
#[derive(Debug)]
pub struct NativeSlot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> for NativeSlot<T> {
    fn new() -> NativeSlot<T> {
        NativeSlot(UnsafeCell::new(MaybeUninit::zeroed()))
    }

    #[inline]
    unsafe fn put(&self, value: T) {
        // SAFETY: nobody else touches the slot (the caller's promise).
        unsafe { (*self.0.get()).write(value) };
    }

    #[inline]
    unsafe fn take(&self) -> T {
        // SAFETY: nobody writes the slot, and it holds a value that is moved out once (the caller's
        // promises).
        unsafe { (*self.0.get()).assume_init_read() }
    }
}

/// Alone on its cache lines: two, since processors fetch them in pairs.
#[repr(align(128))]
struct Padded<T>(T);

struct Shared<T, P: Parts<T>> {
    /// How many values were ever pushed. Written by the producer.
    head: Padded<P::Index>,
    /// How many were ever popped. Written by the consumer.
    tail: Padded<P::Index>,
    slots: Box<[P::Slot]>,
    value: std::marker::PhantomData<T>,
}

impl<T, P: Parts<T>> Shared<T, P> {
    #[inline]
    fn slot(&self, index: usize) -> &P::Slot {
        &self.slots[index & (self.slots.len() - 1)]
    }
}

impl<T, P: Parts<T>> Drop for Shared<T, P> {
    /// Values that nobody popped.
    fn drop(&mut self) {
        let (mut tail, head) = (self.tail.0.acquire(), self.head.0.acquire());
        while tail != head {
            // SAFETY: both ends are gone, and what they did happened before this (the count of the `Arc`);
            // the slot lies in `[tail, head)`: a value was put in that was not popped.
            drop(unsafe { self.slot(tail).take() });
            tail = tail.wrapping_add(1);
        }
    }
}

/// The end that values are put in at.
#[expect(private_bounds, reason = "only `Native` is made outside this crate's tests")]
pub struct Producer<T, P: Parts<T> = Native> {
    shared: Arc<Shared<T, P>>,
    head: usize,
    /// The consumer's tail when it was last looked at: never ahead of the real one.
    tail_seen: usize,
}

/// The end that values come out at.
#[expect(private_bounds, reason = "only `Native` is made outside this crate's tests")]
pub struct Consumer<T, P: Parts<T> = Native> {
    shared: Arc<Shared<T, P>>,
    tail: usize,
    /// The producer's head when it was last looked at: never ahead of the real one.
    head_seen: usize,
}

// SAFETY: the end may move to another thread: it is the only one of its kind, and hands over slots by release
// and acquire. Values go to the other thread, or are dropped by whichever end is the last: `T` is `Send`.
unsafe impl<T: Send> Send for Producer<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Consumer<T> {}

/// A queue of `capacity` values, all of its memory written to.
///
/// # Panics
/// When `capacity` is not a power of two.
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    ring_of(capacity)
}

fn ring_of<T, P: Parts<T>>(capacity: usize) -> (Producer<T, P>, Consumer<T, P>) {
    assert!(
        capacity.is_power_of_two(),
        "the capacity of a queue must be a power of two, not {capacity}"
    );
    let shared = Arc::new(Shared {
        head: Padded(P::Index::new()),
        tail: Padded(P::Index::new()),
        slots: (0..capacity).map(|_| P::Slot::new()).collect(),
        value: std::marker::PhantomData,
    });
    let producer = Producer {
        shared: shared.clone(),
        head: 0,
        tail_seen: 0,
    };
    let consumer = Consumer {
        shared,
        tail: 0,
        head_seen: 0,
    };
    (producer, consumer)
}

#[expect(private_bounds, reason = "only `Native` is made outside this crate's tests")]
impl<T, P: Parts<T>> Producer<T, P> {
    /// How many values the queue holds when it is full.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }

    /// How many values fit now; the consumer may make it more at any moment.
    #[inline]
    pub fn room(&mut self) -> usize {
        // SYNC taken: what the consumer copied out before it published its tail may be written over; pairs
        // with `Consumer::publish`.
        self.tail_seen = self.shared.tail.0.acquire();
        self.capacity() - self.head.wrapping_sub(self.tail_seen)
    }

    /// Puts a value in.
    ///
    /// # Errors
    /// The queue is full: the value comes back.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.head.wrapping_sub(self.tail_seen) == self.capacity() && self.room() == 0 {
            return Err(value);
        }
        self.put(0, value);
        self.publish(1);
        Ok(())
    }

    /// Puts in as many values as fit, from the first on, and shows them to the consumer all at once; how
    /// many.
    #[inline]
    pub fn push_slice(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        if self.capacity() - self.head.wrapping_sub(self.tail_seen) < values.len() {
            self.room();
        }
        let room = self.capacity() - self.head.wrapping_sub(self.tail_seen);
        let values = &values[..values.len().min(room)];
        for (ahead, &value) in values.iter().enumerate() {
            self.put(ahead, value);
        }
        if !values.is_empty() {
            self.publish(values.len());
        }
        values.len()
    }

    /// Whether the consumer is gone: what is pushed will never be popped.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Writes `ahead` places past the head, where there is room.
    #[inline]
    fn put(&mut self, ahead: usize, value: T) {
        // SAFETY: the slot lies in `[head, tail + capacity)`, which the consumer does not read before
        // `publish`, and has finished with, as `room` saw.
        unsafe { self.shared.slot(self.head.wrapping_add(ahead)).put(value) };
    }

    #[inline]
    fn publish(&mut self, count: usize) {
        self.head = self.head.wrapping_add(count);
        // SYNC pushed: pairs with `Consumer::waiting`.
        self.shared.head.0.release(self.head);
    }
}

#[expect(private_bounds, reason = "only `Native` is made outside this crate's tests")]
impl<T, P: Parts<T>> Consumer<T, P> {
    /// How many values wait now; the producer may make it more at any moment.
    #[inline]
    pub fn waiting(&mut self) -> usize {
        // SYNC pushed: what was put in before the head was published can be read; pairs with
        // `Producer::publish`.
        self.head_seen = self.shared.head.0.acquire();
        self.head_seen.wrapping_sub(self.tail)
    }

    /// Takes the oldest value out.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.head_seen == self.tail && self.waiting() == 0 {
            return None;
        }
        let value = self.take(0);
        self.publish(1);
        Some(value)
    }

    /// Takes the oldest values out, as many as wait and fit, and gives their places back all at once; how
    /// many.
    #[inline]
    pub fn pop_slice(&mut self, values: &mut [T]) -> usize
    where
        T: Copy,
    {
        let count = self.waiting().min(values.len());
        for (ahead, value) in values[..count].iter_mut().enumerate() {
            *value = self.take(ahead);
        }
        if count > 0 {
            self.publish(count);
        }
        count
    }

    /// Whether the producer is gone: once the queue is empty, it stays empty. Ask before the last
    /// [`Consumer::pop`], not after.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Moves the value out that waits `ahead` places past the tail: once, before it is passed by `publish`.
    #[inline]
    fn take(&mut self, ahead: usize) -> T {
        // SAFETY: the slot lies in `[tail, head)`: the producer put a value in before it published its head,
        // as `waiting` saw, and does not write it again before `publish`.
        unsafe { self.shared.slot(self.tail.wrapping_add(ahead)).take() }
    }

    #[inline]
    fn publish(&mut self, count: usize) {
        self.tail = self.tail.wrapping_add(count);
        // SYNC taken: pairs with `Producer::room`.
        self.shared.tail.0.release(self.tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_in_order_and_a_full_queue_gives_back() {
        let (mut producer, mut consumer) = ring(4);
        assert_eq!(consumer.pop(), None);
        for value in 0..4 {
            assert_eq!(producer.push(value), Ok(()));
        }
        assert_eq!(producer.push(4), Err(4));
        assert_eq!((producer.room(), consumer.waiting()), (0, 4));
        assert_eq!(consumer.pop(), Some(0));
        assert_eq!(producer.push(4), Ok(()));
        let mut out = [0; 8];
        assert_eq!(consumer.pop_slice(&mut out), 4);
        assert_eq!(out[..4], [1, 2, 3, 4]);
        assert_eq!(producer.push_slice(&[5, 6, 7, 8, 9]), 4);
        assert_eq!(producer.push_slice(&[9]), 0);
        assert_eq!(consumer.pop_slice(&mut out[..3]), 3);
        assert_eq!((out[..3].to_vec(), consumer.pop()), (vec![5, 6, 7], Some(8)));
    }

    #[test]
    fn an_end_notices_that_the_other_is_gone() {
        let (mut producer, mut consumer) = ring(2);
        assert!(!producer.is_abandoned() && !consumer.is_abandoned());
        producer.push(1).expect("room");
        drop(producer);
        assert!(consumer.is_abandoned());
        assert_eq!((consumer.pop(), consumer.pop()), (Some(1), None));
        let (producer, consumer) = ring::<u8>(2);
        drop(consumer);
        assert!(producer.is_abandoned());
    }

    #[test]
    fn values_that_own_memory_are_dropped_once_wherever_they_are() {
        let alive = std::sync::Arc::new(());
        let (mut producer, mut consumer) = ring(4);
        for _ in 0..3 {
            producer.push(Box::new(alive.clone())).expect("room");
        }
        drop(consumer.pop());
        assert_eq!(std::sync::Arc::strong_count(&alive), 3);
        producer.push(Box::new(alive.clone())).expect("room");
        producer.push(Box::new(alive.clone())).expect("room");
        let refused = producer.push(Box::new(alive.clone()));
        assert_eq!(std::sync::Arc::strong_count(&alive), 6);
        drop(refused);
        drop(consumer);
        assert_eq!(std::sync::Arc::strong_count(&alive), 5);
        drop(producer);
        assert_eq!(std::sync::Arc::strong_count(&alive), 1);
    }

    #[test]
    #[should_panic(expected = "power of two, not 6")]
    fn a_capacity_that_is_no_power_of_two_is_refused() {
        ring::<u8>(6);
    }

    /// Two threads, a small queue, singly and in batches: every value once and in order.
    #[test]
    fn two_threads_lose_and_reorder_nothing() {
        // Under Miri a step takes microseconds, not nanoseconds.
        let count: u64 = if cfg!(miri) { 400 } else { 400_000 };
        let (mut producer, mut consumer) = ring::<[u64; 4]>(8);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut next = 0;
                while next < count {
                    let batch: Vec<[u64; 4]> =
                        (next..count.min(next + next % 5 + 1)).map(|n| [n; 4]).collect();
                    let pushed = match batch[..] {
                        [one] => producer.push(one).map_or(0, |()| 1),
                        _ => producer.push_slice(&batch),
                    };
                    next += pushed as u64;
                    if pushed == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            let (mut expected, mut out) = (0, [[0; 4]; 3]);
            while expected < count {
                let taken = match expected % 2 {
                    0 => consumer.pop_slice(&mut out),
                    _ => consumer.pop().map_or(0, |one| {
                        out[0] = one;
                        1
                    }),
                };
                for value in &out[..taken] {
                    assert_eq!(*value, [expected; 4]);
                    expected += 1;
                }
                if taken == 0 {
                    std::thread::yield_now();
                }
            }
        });
    }
}

/// The same code over the atomics and cells of a model checker, which tries every order in which two threads
/// can take their steps, and every value an atomic may be seen to have.
#[cfg(test)]
mod model {
    use super::{Index, Parts, Slot, ring_of};
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicUsize, Ordering};

    /// Indices as they are.
    struct Checked;

    /// Indices that order nothing, to see that the checker minds.
    struct Unordered;

    impl<T> Parts<T> for Checked {
        type Index = AtomicUsize;
        type Slot = CheckedSlot<T>;
    }

    impl<T> Parts<T> for Unordered {
        type Index = UnorderedIndex;
        type Slot = CheckedSlot<T>;
    }

    impl Index for AtomicUsize {
        fn new() -> AtomicUsize {
            AtomicUsize::new(0)
        }
        fn acquire(&self) -> usize {
            self.load(Ordering::Acquire)
        }
        fn release(&self, value: usize) {
            self.store(value, Ordering::Release)
        }
    }

    struct UnorderedIndex(AtomicUsize);

    impl Index for UnorderedIndex {
        fn new() -> UnorderedIndex {
            UnorderedIndex(AtomicUsize::new(0))
        }
        fn acquire(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
        fn release(&self, value: usize) {
            self.0.store(value, Ordering::Relaxed)
        }
    }

    /// The checker's cell reports two accesses that nothing orders.
    struct CheckedSlot<T>(UnsafeCell<Option<T>>);

    impl<T> Slot<T> for CheckedSlot<T> {
        fn new() -> CheckedSlot<T> {
            CheckedSlot(UnsafeCell::new(None))
        }
        unsafe fn put(&self, value: T) {
            // SAFETY: nobody else touches the slot (the caller's promise, which the checker checks).
            let before = self.0.with_mut(|slot| unsafe { (*slot).replace(value) });
            assert!(before.is_none(), "a value that nobody popped is written over");
        }
        unsafe fn take(&self) -> T {
            // SAFETY: nobody writes the slot (the caller's promise, which the checker checks).
            let value = self.0.with_mut(|slot| unsafe { (*slot).take() });
            value.expect("a value was put in")
        }
    }

    /// Three switches away from a thread that could go on: every known bug of such queues shows with two.
    fn bounded() -> loom::model::Builder {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model
    }

    #[test]
    fn every_interleaving_gives_all_values_once_in_order() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring_of::<u32, Checked>(2);
            let pushing = loom::thread::spawn(move || {
                let mut pushed = 0;
                while pushed < 3 {
                    match producer.push(pushed) {
                        Ok(()) => pushed += 1,
                        Err(_) => loom::thread::yield_now(),
                    }
                }
            });
            let mut expected = 0;
            while expected < 3 {
                match consumer.pop() {
                    Some(value) => {
                        assert_eq!(value, expected);
                        expected += 1;
                    }
                    None => loom::thread::yield_now(),
                }
            }
            assert_eq!(consumer.pop(), None);
            pushing.join().expect("pushed");
        });
    }

    #[test]
    fn every_interleaving_of_batches_gives_all_values_once_in_order() {
        bounded().check(|| {
            let (mut producer, mut consumer) = ring_of::<u32, Checked>(2);
            let pushing = loom::thread::spawn(move || {
                let mut left = &[0, 1, 2][..];
                while !left.is_empty() {
                    match producer.push_slice(left) {
                        0 => loom::thread::yield_now(),
                        pushed => left = &left[pushed..],
                    }
                }
            });
            let (mut seen, mut out) = (Vec::<u32>::new(), [0; 2]);
            while seen.len() < 3 {
                match consumer.pop_slice(&mut out) {
                    0 => loom::thread::yield_now(),
                    taken => seen.extend(&out[..taken]),
                }
            }
            assert_eq!(seen, [0, 1, 2]);
            pushing.join().expect("pushed");
        });
    }

    /// A row of a table that one thread fills and another reads: two cells the checker watches, filled one
    /// after the other.
    struct Row([UnsafeCell<u32>; 2]);

    impl Row {
        fn new() -> Box<Row> {
            Box::new(Row([UnsafeCell::new(0), UnsafeCell::new(0)]))
        }

        fn fill(&mut self, version: u32) {
            for cell in &self.0 {
                // SAFETY: the row is the caller's alone, which the checker checks.
                cell.with_mut(|cell| unsafe { *cell = version });
            }
        }

        fn read(&self) -> [u32; 2] {
            // SAFETY: nobody writes the row meanwhile, which the checker checks.
            [0, 1].map(|at| self.0[at].with(|cell| unsafe { *cell }))
        }
    }

    /// How tables go from the thread that fills them to the one that reads them, and back to be filled again:
    /// a ring each way. There are two, `versions` are handed over, and the reader gives one back when it has
    /// the next. What it reads, while the other may be filled, is of one version, whole, and never older than
    /// before.
    fn tables_go_round<P: Parts<Box<Row>> + 'static>(versions: u32) {
        let (mut filled, mut incoming) = ring_of::<Box<Row>, P>(2);
        let (mut give_back, mut back) = ring_of::<Box<Row>, P>(2);
        let filling = loom::thread::spawn(move || {
            let mut pool = vec![Row::new(), Row::new()];
            for version in 1..=versions {
                let mut row = loop {
                    pool.extend(back.pop());
                    match pool.pop() {
                        Some(row) => break row,
                        None => loom::thread::yield_now(),
                    }
                };
                row.fill(version);
                assert!(filled.push(row).is_ok(), "there is room for all there are");
            }
        });
        let (mut held, mut seen) = (Row::new(), 0);
        while seen < versions {
            match incoming.pop() {
                Some(row) => {
                    let before = std::mem::replace(&mut held, row);
                    // The one it began with is not of the other's.
                    if seen > 0 {
                        assert!(give_back.push(before).is_ok(), "there is room for all there are");
                    }
                }
                None => loom::thread::yield_now(),
            }
            let [first, second] = held.read();
            assert_eq!(first, second, "a torn row");
            assert!(first >= seen, "an older row");
            seen = first;
        }
        filling.join().expect("filled");
    }

    #[test]
    fn no_interleaving_reads_a_row_that_is_being_filled() {
        let model = bounded();
        model.check(|| tables_go_round::<Checked>(3));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn the_checker_finds_a_row_handed_over_without_order() {
        let model = bounded();
        model.check(|| tables_go_round::<Unordered>(3));
    }
}
