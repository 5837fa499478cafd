//! Mass quotes out and market data in take no block from the heap.

use tickwire_fix::typed::{Price, Qty};
use tickwire_fix::{Encoder, Index, Precision, Stamp, Version};
use tickwire_fixmsg::fix44::values::{MDEntryType, MDUpdateAction, QuoteType};
use tickwire_fixmsg::fix44::{MarketDataIncrementalRefresh, MassQuote};
use tickwire_runtime::alloc::count_allocations;

#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

fn encoder<'b>(buffer: &'b mut [u8], msg_type: &[u8]) -> Encoder<'b> {
    let mut e = Encoder::new(buffer, Version::Fix44);
    e.text(35, msg_type);
    e
}

#[test]
fn a_mass_quote_is_written_and_market_data_is_read_without_allocating() {
    let (mut buffer, mut stamp, mut index) = ([0; 4096], Stamp::new(Precision::Millis), Index::new(128));
    let mut e = encoder(&mut buffer, MarketDataIncrementalRefresh::MSG_TYPE);
    MarketDataIncrementalRefresh::write(&mut e, &mut stamp, |m| {
        m.md_entries(1..5, |entry, level| {
            entry
                .md_update_action(MDUpdateAction::Change)
                .md_entry_type(MDEntryType::Bid);
            entry.instrument().symbol(b"WIRE");
            entry
                .md_entry_px(Price::from_4dp(level))
                .md_entry_size(Qty(level));
        });
    })
    .unwrap();
    let update = e.finish().unwrap().to_vec();
    let ((written, sum), count) = count_allocations(|| {
        let mut e = encoder(&mut buffer, MassQuote::MSG_TYPE);
        MassQuote::write(&mut e, &mut stamp, |m| {
            m.quote_id(b"Q1").quote_type(QuoteType::Tradeable);
            m.quote_sets([b"1"], |set, id| {
                set.quote_set_id(id).tot_no_quote_entries(16);
                set.quote_entries(0..16_u8, |entry, i| {
                    entry.quote_entry_id(&[b'A' + i]);
                    entry.instrument().symbol(b"WIRE");
                    entry.bid_px(Price::from_4dp(100)).offer_px(Price::from_4dp(200));
                });
            });
        })
        .unwrap();
        let written = e.finish().unwrap().len();
        let message = index.decode(&update).unwrap();
        let m = MarketDataIncrementalRefresh::read(&message).unwrap();
        let sizes = m
            .md_entries()
            .unwrap()
            .map(|entry| entry.md_entry_size().unwrap().unwrap().0);
        (written, sizes.sum::<u32>())
    });
    assert!(written > 400, "{written}");
    assert_eq!(sum, 10);
    assert_eq!((count.allocations, count.releases), (0, 0));
}
