//! A bounded queue from one thread to one other: values of one size, no lock, no allocation after [`ring`], no system call.
//!
//! ```text
//! Producer  head ─────────────►┐ Release            Acquire ┌─► Consumer
//!           a copy of tail ◄───│── Acquire ──── Release ────│◄── tail
//!                              └──► slots[head & mask] ─────┘
//! ```
//!
//! Each end keeps a copy of the other's index and looks at the real one only when the copy says full, or empty: while the
//! queue is neither, the ends share no cache line but those of the values. When it is full, [`Producer::push`] gives the value
//! back and the caller decides; nothing is lost and nothing waits here.

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

    /// Copies the value out.
    ///
    /// # Safety
    /// * Nobody writes the slot meanwhile.
    /// * A value was put in, and that happened before this.
    unsafe fn get(&self) -> T;
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

impl<T: Copy> Parts<T> for Native {
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

impl<T: Copy> Slot<T> for NativeSlot<T> {
    fn new() -> NativeSlot<T> {
        NativeSlot(UnsafeCell::new(MaybeUninit::zeroed()))
    }

    #[inline]
    unsafe fn put(&self, value: T) {
        // SAFETY: nobody else touches the slot (the caller's promise).
        unsafe { (*self.0.get()).write(value) };
    }

    #[inline]
    unsafe fn get(&self) -> T {
        // SAFETY: nobody writes the slot, and it holds a value (the caller's promises); `T` is `Copy`.
        unsafe { (*self.0.get()).assume_init() }
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

// SAFETY: the end may move to another thread: it is the only one of its kind, and hands over slots by release and acquire.
unsafe impl<T: Copy + Send> Send for Producer<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Send> Send for Consumer<T> {}

/// A queue of `capacity` values, all of its memory written to.
///
/// # Panics
/// When `capacity` is not a power of two.
pub fn ring<T: Copy>(capacity: usize) -> (Producer<T>, Consumer<T>) {
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
impl<T: Copy, P: Parts<T>> Producer<T, P> {
    /// How many values the queue holds when it is full.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }

    /// How many values fit now; the consumer may make it more at any moment.
    #[inline]
    pub fn room(&mut self) -> usize {
        // SYNC taken: what the consumer copied out before it published its tail may be written over; pairs with `Consumer::publish`.
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

    /// Puts in as many values as fit, from the first on, and shows them to the consumer all at once; how many.
    #[inline]
    pub fn push_slice(&mut self, values: &[T]) -> usize {
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
        // SAFETY: the slot lies in `[head, tail + capacity)`, which the consumer does not read before `publish`, and has
        // finished with, as `room` saw.
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
impl<T: Copy, P: Parts<T>> Consumer<T, P> {
    /// How many values wait now; the producer may make it more at any moment.
    #[inline]
    pub fn waiting(&mut self) -> usize {
        // SYNC pushed: what was put in before the head was published can be read; pairs with `Producer::publish`.
        self.head_seen = self.shared.head.0.acquire();
        self.head_seen.wrapping_sub(self.tail)
    }

    /// Takes the oldest value out.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.head_seen == self.tail && self.waiting() == 0 {
            return None;
        }
        let value = self.get(0);
        self.publish(1);
        Some(value)
    }

    /// Takes the oldest values out, as many as wait and fit, and gives their places back all at once; how many.
    #[inline]
    pub fn pop_slice(&mut self, values: &mut [T]) -> usize {
        let count = self.waiting().min(values.len());
        for (ahead, value) in values[..count].iter_mut().enumerate() {
            *value = self.get(ahead);
        }
        if count > 0 {
            self.publish(count);
        }
        count
    }

    /// Whether the producer is gone: once the queue is empty, it stays empty. Ask before the last [`Consumer::pop`], not after.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Reads `ahead` places past the tail, where a value waits.
    #[inline]
    fn get(&self, ahead: usize) -> T {
        // SAFETY: the slot lies in `[tail, head)`: the producer put a value in before it published its head, as `waiting` saw, and
        // does not write it again before `publish`.
        unsafe { self.shared.slot(self.tail.wrapping_add(ahead)).get() }
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

/// The same code over the atomics and cells of a model checker, which tries every order in which two threads can take their
/// steps, and every value an atomic may be seen to have.
#[cfg(test)]
mod model {
    use super::{Index, Parts, Slot, ring_of};
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicUsize, Ordering};

    struct Checked;

    impl Parts<u32> for Checked {
        type Index = AtomicUsize;
        type Slot = CheckedSlot;
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

    /// The checker's cell reports two accesses that nothing orders.
    struct CheckedSlot(UnsafeCell<Option<u32>>);

    impl Slot<u32> for CheckedSlot {
        fn new() -> CheckedSlot {
            CheckedSlot(UnsafeCell::new(None))
        }
        unsafe fn put(&self, value: u32) {
            // SAFETY: nobody else touches the slot (the caller's promise, which the checker checks).
            self.0.with_mut(|slot| unsafe { *slot = Some(value) });
        }
        unsafe fn get(&self) -> u32 {
            // SAFETY: nobody writes the slot (the caller's promise, which the checker checks).
            self.0.with(|slot| unsafe { *slot }).expect("a value was put in")
        }
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
        // Three switches away from a thread that could go on: every known bug of such queues shows with two.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
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
}
