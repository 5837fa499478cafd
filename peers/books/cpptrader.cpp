// chronoxor/CppTrader's market managers behind its own ITCH handler, as its programs of `performance` have them, from a session in memory:
// nanoseconds a message. With `best` both sides' best prices are read after each message. Built and run by `cargo xtask book-peers`, once for
// each program: PEER is what stands in it above its `main`, and one of MANAGER, OPTIMIZED and AGGRESSIVE says which it is. The optimised ones
// have room for PEER_ORDERS orders, as many as the session numbers, where they have room for 300 million.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "session.hpp"

static size_t peer_orders;
#define PEER_ORDERS peer_orders

#include PEER

namespace {

#ifdef MANAGER
struct Peer {
  MyMarketHandler handler;
  MarketManager market{handler};
  MyITCHHandler itch{market};
  static uint64_t quantity(const LevelNode &level) { return level.TotalVolume; }
};
#endif

#ifdef OPTIMIZED
struct Peer {
  MarketHandler handler;
  MarketManagerOptimized market{handler};
  MyITCHHandler itch{market};
  static uint64_t quantity(const Level &level) { return level.Volume; }
};
#endif

#ifdef AGGRESSIVE
struct Peer {
  MarketManagerOptimized market;
  MyITCHHandler itch{market};
  static uint64_t quantity(const Level &level) { return level.Volume; }
};
#endif

// The optimised ones have room for so many symbols.
constexpr unsigned LOCATES = 10000;

// An offer's price is negative in one of them.
template <class Number>
uint64_t absolute(Number price) {
  return price < 0 ? uint64_t(-int64_t(price)) : uint64_t(price);
}

template <class Level>
inline uint64_t price(const Level *level) {
  return level ? absolute(level->Price) : 0;
}

}  // namespace

int main(int count, char **all) {
  auto words = session::words(count, all);
  auto session = session::read(words.session);
  peer_orders = size_t(session.last_order) + 1;
  if (session.last_locate >= LOCATES) session::fail("a symbol's number is too large for this peer", words.session);
  // The directory at the session's beginning makes the books.
  auto peer = std::make_unique<Peer>();
  uint64_t start = session::thread_ns();
  if (words.reads_best) {
    session::each(session, [&](uint8_t *message, size_t size) {
      peer->itch.ProcessMessage(message, size);
      const auto *book = peer->market.GetOrderBook(session::locate(message));
      if (book) session::want(price(book->best_bid()) + price(book->best_ask()));
    });
  } else {
    peer->itch.Process(session.bytes.data(), session.bytes.size());
  }
  uint64_t took = session::thread_ns() - start;
  if (peer->itch.errors() > 0 || peer->itch.messages() != session.messages) session::fail("the peer did not read every message", words.session);
  session::write(words.books, session, [&](uint16_t locate, bool is_ask) -> session::Side {
    const auto *book = peer->market.GetOrderBook(locate);
    if (!book) return {};
    const auto *level = is_ask ? book->best_ask() : book->best_bid();
    if (!level) return {};
    return {price(level), Peer::quantity(*level), is_ask ? book->asks().size() : book->bids().size()};
  });
  session::say(session, took);
}
