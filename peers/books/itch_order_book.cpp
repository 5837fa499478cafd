// charles-cooper/itch-order-book, its own reading of messages and its own book, unchanged, from a session in memory: nanoseconds a message.
// With `best` both sides' best prices are read after each message. Built and run by `cargo xtask book-peers`; the folder of the peer is an
// include path.

#include <endian.h>

#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>

#include "types.h"

#include "itch.h"
#include "order_book.h"

#include "session.hpp"

namespace {

sprice_t priced(price_t price, bool is_bid) { return sprice_t(is_bid ? int32_t(price) : -int32_t(price)); }

void add(const add_order_t &order) {
  order_book::add_order(order_id_t(order.oid), book_id_t(order.stock_locate), priced(order.price, order.buy == BUY_SELL::BUY), order.qty);
}

inline void apply(const char *message) {
  switch (itch_t(*message)) {
    case itch_t::ADD_ORDER:
      return add(add_order_t::parse(message));
    case itch_t::ADD_ORDER_MPID:
      return add(add_order_mpid_t::parse(message).add_msg);
    case itch_t::EXECUTE_ORDER: {
      auto trade = execute_order_t::parse(message);
      return order_book::execute_order(order_id_t(trade.oid), trade.qty);
    }
    case itch_t::EXECUTE_ORDER_WITH_PRICE: {
      auto trade = execute_with_price_t::parse(message).exec;
      return order_book::execute_order(order_id_t(trade.oid), trade.qty);
    }
    case itch_t::REDUCE_ORDER: {
      auto part = order_reduce_t::parse(message);
      return order_book::cancel_order(order_id_t(part.oid), part.qty);
    }
    case itch_t::DELETE_ORDER:
      return order_book::delete_order(order_id_t(order_delete_t::parse(message).oid));
    case itch_t::REPLACE_ORDER: {
      auto other = order_replace_t::parse(message);
      // The book gives the price its sign.
      return order_book::replace_order(order_id_t(other.oid), order_id_t(other.new_order_id), other.new_qty, priced(other.new_price, true));
    }
    default:
      return;
  }
}

inline int64_t best(const order_book::sorted_levels_t &levels) { return levels.empty() ? 0 : int32_t(levels.back().m_price); }

session::Side side(uint16_t locate, bool is_ask) {
  const order_book &book = order_book::s_books[locate];
  const auto &levels = is_ask ? book.m_offers : book.m_bids;
  if (levels.empty()) return {};
  uint64_t price = uint64_t(is_ask ? -best(levels) : best(levels));
  return {price, uint64_t(order_book::s_levels[levels.back().m_ptr].m_qty), levels.size()};
}

}  // namespace

int main(int count, char **all) {
  auto words = session::words(count, all);
  auto session = session::read(words.session);
  if (session.last_order >= uint64_t(std::numeric_limits<int32_t>::max()) || session.last_locate >= order_book::MAX_BOOKS)
    session::fail("an order's or a symbol's number is too large for this peer", words.session);
  order_book::oid_map.reserve(order_id_t(session.last_order));
  uint64_t start = session::thread_ns();
  if (words.reads_best) {
    session::each(session, [](const uint8_t *message, size_t) {
      apply(reinterpret_cast<const char *>(message));
      const order_book &book = order_book::s_books[session::locate(message)];
      session::want(uint64_t(best(book.m_bids) + best(book.m_offers)));
    });
  } else {
    session::each(session, [](const uint8_t *message, size_t) { apply(reinterpret_cast<const char *>(message)); });
  }
  uint64_t took = session::thread_ns() - start;
  session::write(words.books, session, side);
  session::say(session, took);
}
