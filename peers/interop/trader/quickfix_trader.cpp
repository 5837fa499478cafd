// The trader of `tickwire lab run fix` with QuickFIX C++ linked in: what it does, and what it writes down, is in
// apps/tickwire/src/fix/rig/trader.rs and stamps.rs. Built by `cargo xtask lab-peers`; the lab starts it:
//
//   quickfix-trader CONFIG STAMPS KEEP-EVERY KEEP-AT-MOST tsc|kernel CORE|-
//
// One thread (SocketInitiator) has both sessions, as ours. "Bytes in" is the call of the log for an incoming message, the earliest
// moment that QuickFIX shows: its socket read and framing are before it.

#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/Group.h>
#include <quickfix/Log.h>
#include <quickfix/Message.h>
#include <quickfix/MessageStore.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketInitiator.h>
#include <quickfix/Values.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <csignal>
#include <thread>
#include <time.h>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace {

/// Readings are of the time stamp counter, or nanoseconds of CLOCK_MONOTONIC where the lab does not trust it.
bool reads_counter = true;

inline uint64_t ticks() {
#if defined(__x86_64__)
  if (reads_counter) return __rdtsc();
#endif
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

/// As stamps.rs has it.
struct Stamps {
  uint64_t seq, bytes_in, handed, decided, sent, report_in, report_handed;
};
static_assert(sizeof(Stamps) == 56, "seven numbers");

/// When bytes of a session came last: market, venue.
uint64_t market_in = 0;
uint64_t venue_in = 0;

class NoteIncoming : public FIX::Log {
public:
  explicit NoteIncoming(uint64_t *at) : m_at(at) {}
  void clear() override {}
  void backup() override {}
  void onIncoming(const std::string &) override {
    if (m_at) *m_at = ticks();
  }
  void onOutgoing(const std::string &) override {}
  void onEvent(const std::string &text) override { std::cerr << text << std::endl; }

private:
  uint64_t *m_at;
};

class Logs : public FIX::LogFactory {
public:
  FIX::Log *create() override { return new NoteIncoming(nullptr); }
  FIX::Log *create(const FIX::SessionID &id) override {
    return new NoteIncoming(id.getTargetCompID() == "MARKET" ? &market_in : &venue_in);
  }
  void destroy(FIX::Log *log) override { delete log; }
};

class Trader : public FIX::Application {
public:
  Trader(uint64_t keep_every, size_t keep_at_most) : m_keep_every(keep_every), m_room(keep_at_most) {
    // Touched now, so that no page fault happens later.
    m_kept.resize(m_room, Stamps{1, 0, 0, 0, 0, 0, 0});
    m_kept.clear();
  }

  std::atomic<bool> is_over{false};
  uint64_t faults = 0;
  const std::vector<Stamps> &kept() const { return m_kept; }

  void onCreate(const FIX::SessionID &id) override {
    (id.getTargetCompID() == "MARKET" ? m_market : m_venue) = id;
  }
  void onLogon(const FIX::SessionID &) override {
    // Reports must have where to come from before the first order.
    if (++m_logged_on == 2) subscribe();
  }
  void onLogout(const FIX::SessionID &id) override {
    // Every report came before it, on the same connection.
    if (id == m_venue && m_logged_on >= 2) is_over = true;
  }
  void toAdmin(FIX::Message &, const FIX::SessionID &) override {}
  void toApp(FIX::Message &, const FIX::SessionID &) EXCEPT(FIX::DoNotSend) override {}
  void fromAdmin(const FIX::Message &, const FIX::SessionID &)
      EXCEPT(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) override {}

  void fromApp(const FIX::Message &message, const FIX::SessionID &id)
      EXCEPT(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override {
    const uint64_t handed = ticks();
    if (id.getTargetCompID() == m_market.getTargetCompID())
      on_market(message, handed);
    else
      on_report(message, handed);
  }

private:
  void subscribe() {
    FIX::Message request;
    request.getHeader().setField(FIX::MsgType("V"));
    request.setField(FIX::StringField(262, "1"));
    request.setField(FIX::CharField(263, '1'));
    request.setField(FIX::IntField(264, 5));
    request.setField(FIX::CharField(265, '1'));
    for (char type : {'0', '1'}) {
      FIX::Group types(267, 269);
      types.setField(FIX::CharField(269, type));
      request.addGroup(types);
    }
    FIX::Group symbols(146, 55);
    symbols.setField(FIX::Symbol("WIRE"));
    request.addGroup(symbols);
    FIX::Session::sendToTarget(request, m_market);
  }

  /// The price of the best offer as this message has it, in its own text; empty if it says nothing of it.
  static const std::string &best(const FIX::Message &message, bool has_levels) {
    static const std::string none;
    const std::string *price = &none;
    const size_t count = message.groupCount(268);
    for (size_t at = 1; at <= count; ++at) {
      const FIX::FieldMap &entry = message.getGroupRef(int(at), 268);
      if (entry.getField(269) != "1") continue;
      if (has_levels && entry.getField(290) != "1") continue;
      price = &entry.getField(270);
    }
    return *price;
  }

  void on_market(const FIX::Message &message, uint64_t handed) {
    const std::string &type = message.getHeader().getField(FIX::FIELD::MsgType);
    if (type == "W") {
      m_offer = best(message, false);
      return;
    }
    if (type != "X") {
      ++faults;
      return;
    }
    const std::string &price = best(message, true);
    if (price.empty() || price == m_offer) return;
    m_offer = price;
    const uint64_t decided = ticks();
    const std::string &seq = message.getHeader().getField(FIX::FIELD::MsgSeqNum);
    FIX::Message order;
    order.getHeader().setField(FIX::MsgType("D"));
    order.setField(FIX::ClOrdID(seq));
    order.setField(FIX::Account("ACCOUNT-0042"));
    order.setField(FIX::HandlInst('1'));
    order.setField(FIX::Symbol("WIRE"));
    order.setField(FIX::Side(FIX::Side_BUY));
    order.setField(FIX::TransactTime());
    order.setField(FIX::StringField(FIX::FIELD::OrderQty, "100"));
    order.setField(FIX::OrdType(FIX::OrdType_LIMIT));
    order.setField(FIX::StringField(FIX::FIELD::Price, price));
    order.setField(FIX::TimeInForce(FIX::TimeInForce_DAY));
    const uint64_t came = market_in;
    if (!FIX::Session::sendToTarget(order, m_venue)) ++faults;
    const uint64_t sent = ticks();
    if (m_orders++ % m_keep_every == 0 && m_kept.size() < m_room) {
      m_open.push_back(m_kept.size());
      m_kept.push_back(Stamps{std::strtoull(seq.c_str(), nullptr, 10), came, handed, decided, sent, 0, 0});
    }
  }

  void on_report(const FIX::Message &message, uint64_t handed) {
    const uint64_t seq = std::strtoull(message.getField(FIX::FIELD::ClOrdID).c_str(), nullptr, 10);
    while (!m_open.empty() && m_kept[m_open.front()].seq <= seq) {
      Stamps &stamps = m_kept[m_open.front()];
      m_open.pop_front();
      if (stamps.seq == seq) {
        stamps.report_in = venue_in;
        stamps.report_handed = handed;
      }
    }
  }

  FIX::SessionID m_market, m_venue;
  std::string m_offer;
  int m_logged_on = 0;
  uint64_t m_orders = 0;
  uint64_t m_keep_every;
  size_t m_room;
  std::vector<Stamps> m_kept;
  std::deque<size_t> m_open;
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 7) {
    std::cerr << "usage: quickfix-trader CONFIG STAMPS KEEP-EVERY KEEP-AT-MOST tsc|kernel CORE|-\n";
    return 2;
  }
  // It ends with whoever started it.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // Ctrl-C is the lab's business: it logs this trader out.
  std::signal(SIGINT, SIG_IGN);
  reads_counter = std::string(argv[5]) == "tsc";
  if (std::string(argv[6]) != "-") {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(size_t(std::atoi(argv[6])), &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0) {
      std::cerr << "not pinned to core " << argv[6] << "\n";
      return 3;
    }
  }
  try {
    FIX::SessionSettings settings(argv[1]);
    Trader trader(std::strtoull(argv[3], nullptr, 10), std::strtoull(argv[4], nullptr, 10));
    Logs logs;
    std::unique_ptr<FIX::MessageStoreFactory> stores;
    if (settings.get().has("FileStorePath"))
      stores.reset(new FIX::FileStoreFactory(settings));
    else
      stores.reset(new FIX::MemoryStoreFactory());
    FIX::SocketInitiator initiator(trader, *stores, settings, logs);
    initiator.start();
    while (!trader.is_over) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    initiator.stop(true);
    std::FILE *file = std::fopen(argv[2], "wb");
    const auto &kept = trader.kept();
    const bool is_written = file && std::fwrite("TWSTMP01", 1, 8, file) == 8 &&
                            std::fwrite(kept.data(), sizeof(Stamps), kept.size(), file) == kept.size();
    if (!file || std::fclose(file) != 0 || !is_written) {
      std::cerr << "cannot write " << argv[2] << "\n";
      return 3;
    }
    return trader.faults == 0 ? 0 : 1;
  } catch (const std::exception &e) {
    std::cerr << e.what() << "\n";
    return 3;
  }
}
