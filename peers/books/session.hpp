// What the drivers of peers in C++ share: the session in memory, its messages, the time that this thread has run, and the file of books
// that `cargo xtask book-peers` compares with the one that `cargo bench -p tickwire-book -- --books FILE` writes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

namespace session {

// Messages of ITCH 5.0, each behind its length of two bytes.
struct Session {
  std::vector<uint8_t> bytes;
  size_t messages = 0;
  // Order reference numbers are at most this.
  uint64_t last_order = 0;
  // Stock locates are at most this.
  uint16_t last_locate = 0;
};

[[noreturn]] inline void fail(const char *what, const char *file) {
  std::fprintf(stderr, "%s: %s\n", file, what);
  std::exit(2);
}

inline uint64_t big_endian(const uint8_t *at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | at[i];
  return value;
}

// The stock locate, which every message has at the same place.
inline uint16_t locate(const uint8_t *message) { return uint16_t(message[1] << 8 | message[2]); }

// Calls `take(message, size)` of every message.
template <class Take>
inline void each(Session &session, Take take) {
  uint8_t *at = session.bytes.data(), *end = at + session.bytes.size();
  while (at < end) {
    size_t size = size_t(at[0] << 8 | at[1]);
    take(at + 2, size);
    at += 2 + size;
  }
}

inline Session read(const char *path) {
  Session session;
  std::FILE *file = std::fopen(path, "rb");
  if (!file || std::fseek(file, 0, SEEK_END) != 0) fail("it cannot be read", path);
  long size = std::ftell(file);
  std::rewind(file);
  if (size <= 0) fail("it is empty", path);
  session.bytes.resize(size_t(size));
  if (std::fread(session.bytes.data(), 1, session.bytes.size(), file) != session.bytes.size()) fail("it cannot be read", path);
  std::fclose(file);
  size_t at = 0;
  while (at + 2 <= session.bytes.size()) at += 2 + size_t(big_endian(&session.bytes[at], 2));
  if (at != session.bytes.size()) fail("its last message is not whole", path);
  each(session, [&](const uint8_t *message, size_t) {
    uint64_t order = 0;
    if (*message == 'A' || *message == 'F') order = big_endian(message + 11, 8);
    if (*message == 'U') order = big_endian(message + 19, 8);
    if (order > session.last_order) session.last_order = order;
    if (locate(message) > session.last_locate) session.last_locate = locate(message);
    ++session.messages;
  });
  return session;
}

// Time that this thread has run, so that what else the machine does counts less.
inline uint64_t thread_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return uint64_t(time.tv_sec) * 1000000000u + uint64_t(time.tv_nsec);
}

// A value is wanted: the compiler has to have it here.
inline void want(uint64_t value) { asm volatile("" : : "r"(value)); }

// The best level of a side and how many levels the side has; all zero of an empty side.
struct Side {
  uint64_t price = 0, quantity = 0;
  size_t levels = 0;
};

// Writes what `side(locate, is_ask)` says of every book.
template <class Of>
inline void write(const char *path, const Session &session, Of side) {
  std::FILE *file = std::fopen(path, "w");
  if (!file) fail("it cannot be written", path);
  for (unsigned locate = 1; locate <= session.last_locate; ++locate) {
    Side bid = side(uint16_t(locate), false), ask = side(uint16_t(locate), true);
    std::fprintf(file, "%u,%llu,%llu,%llu,%llu,%zu,%zu\n", locate, (unsigned long long)bid.price, (unsigned long long)bid.quantity,
                 (unsigned long long)ask.price, (unsigned long long)ask.quantity, bid.levels, ask.levels);
  }
  if (std::fclose(file) != 0) fail("it cannot be written", path);
}

// Words of the command line: SESSION BOOKS [best].
struct Words {
  const char *session, *books;
  bool reads_best;
};

inline Words words(int count, char **all) {
  if (count != 3 && !(count == 4 && std::string_view(all[3]) == "best")) {
    std::fprintf(stderr, "usage: %s SESSION BOOKS [best]\n", all[0]);
    std::exit(2);
  }
  return {all[1], all[2], count == 4};
}

// The answer: nanoseconds a message.
inline void say(const Session &session, uint64_t took) { std::printf("%.3f\n", double(took) / double(session.messages)); }

}  // namespace session
