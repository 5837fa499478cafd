/* Reads the shared memory of the Tickwire feed handler: books, consolidated books, events, counters and latencies.
 *
 * One header, C11 or C++17 on 64-bit little-endian Linux; nothing to link. The memory is mapped read-only: a reader cannot
 * block or disturb the feed handler, and any number of them may read at once. A `tw_region` may be read by several threads
 * as long as none of them opens, closes or refreshes it; a `tw_ring` belongs to one thread.
 *
 *     tw_region region;
 *     uint32_t slot;
 *     tw_book book;
 *     int error = tw_open(&region, NULL);
 *     if (error == TW_OK) error = tw_find(&region, "AAPL", "bzx", &slot);
 *     if (error == TW_OK) error = tw_read_book(&region, slot, &book);
 *     if (error != TW_OK) fprintf(stderr, "%s\n", tw_strerror(error));
 *
 * Functions return TW_OK (or another number of 0 or more, where said), else a negative `TW_ERR_...`. Prices are integers
 * in units of 1e-9 of the currency, times nanoseconds since the epoch (UTC); a venue's own times may count from its midnight.
 *
 * This file is made by `cargo xtask header`: definitions from the layout of the shared memory, functions from
 * tickwire.in.h. SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef TICKWIRE_H
#define TICKWIRE_H

#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOCK_MONOTONIC
#error "tickwire.h needs POSIX declarations: include it before other headers, or define _DEFAULT_SOURCE"
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || UINTPTR_MAX < UINT64_MAX
#error "the shared memory is that of a 64-bit little-endian machine"
#endif

/* A word that the feed handler may write at any time, and the fence that orders loads. C has them in its library; in C++17
 * an atomic cannot be laid over memory, so there it is the compiler's own. */
#ifdef __cplusplus
#define TW_LOAD(word) __atomic_load_n(word, __ATOMIC_RELAXED)
#define TW_ACQUIRE() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define TW_STATIC_ASSERT(condition, text) static_assert(condition, text)
extern "C" {
#else
#include <stdatomic.h>
typedef const _Atomic uint64_t tw_word;
#define TW_LOAD(word) atomic_load_explicit((tw_word *)(word), memory_order_relaxed)
#define TW_ACQUIRE() atomic_thread_fence(memory_order_acquire)
#define TW_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* ---- Definitions: made from the tables of the feed handler ------------------------------------------------------------ */

/* @LAYOUT@ */

/* ---- What is read ------------------------------------------------------------------------------------------------------ */

/* Sides: index of every array of two. */
enum { TW_BID = 0, TW_ASK = 1, TW_NO_SIDE = 2 };
/* Says "no such thing" in a number of a histogram or ring. */
#define TW_NONE UINT64_MAX

/* Why a call failed; `tw_strerror` says it in words. */
enum {
    TW_OK = 0,
    TW_ERR_NOT_RUNNING = -1,
    TW_ERR_SYSTEM = -2,
    TW_ERR_NOT_TICKWIRE = -3,
    TW_ERR_VERSION = -4,
    TW_ERR_DAMAGED = -5,
    TW_ERR_NOT_FOUND = -6,
    TW_ERR_BUSY = -7,
    TW_ERR_RANGE = -8,
    TW_ERR_REPLACED = -9,
    TW_ERR_PATH = -10,
    TW_ERR_STARTING = -11,
    TW_ERR_OWNER = -12
};

/* How the feed handler is. */
typedef enum tw_liveness {
    TW_STARTING = 1, /* has not made the region yet */
    TW_RUNNING = 2,  /* runs and renews its heartbeat */
    TW_STOPPED = 3,  /* ended in an orderly way */
    TW_DEAD = 4,     /* ended without a word; what is read is its last state */
    TW_STUCK = 5     /* the process is there, its heartbeat is older than a second */
} tw_liveness;

/* One part of the region: slots of one size. */
typedef struct tw_place {
    uint64_t offset, stride, count;
} tw_place;

/* A mapped region. Fields are for reading only. */
typedef struct tw_region {
    const uint64_t *words;
    uint64_t bytes, generation, pid, feeds, book_levels, super_shares, ring_records, counters;
    tw_place sources, histograms, books, supers, rings;
    int file, guard; /* guard: place in the list of `tw_on_bus_error` */
    dev_t device;
    ino_t inode;
    char path[1024];
} tw_region;

/* A channel of a feed. */
typedef struct tw_source {
    char name[33], feed_name[33], protocol[17];
    uint64_t feed, venue, ring;
    uint64_t latency, super_latency; /* numbers of histograms, or TW_NONE */
    uint64_t state;                  /* TW_BOOK_BUILDING, _LIVE, _STALE or TW_BOOK_ENDED */
    uint64_t next_seq, last_packet, packets, updates, books, refused;
    uint32_t kinds;
} tw_source;

/* A source that has ended; other states are those of books. */
enum { TW_BOOK_ENDED = 3 };

/* A kind of message of a source. */
typedef struct tw_kind {
    uint64_t type, seen, filtered, latency;
} tw_kind;

/* Latencies in nanoseconds. */
typedef struct tw_histogram {
    uint64_t count, sum, min, max, counts[TW_BUCKETS];
} tw_histogram;

/* One price level. */
typedef struct tw_level {
    int64_t price;
    uint64_t qty, orders; /* orders: 0 when the feed does not say */
} tw_level;

/* The book of one instrument of one source, whole at one moment. */
typedef struct tw_book {
    char symbol[25];
    uint64_t source, instrument, writes;
    uint64_t state; /* the worse of its own and its source's: TW_BOOK_BUILDING, _LIVE or _STALE; trade on a live one only */
    uint64_t status, seq, venue_ts, recv_ts, publish_ts; /* publish_ts: 0 where the clock was not read for this book */
    uint64_t levels[2], qty[2], orders[2]; /* of the whole book, not only of what is shown */
    int64_t last_price;
    uint64_t last_qty, last_ts, volume, trades;
    uint64_t auction; /* the venue's letter, 0: none */
    int64_t reference, near_price, far_price;
    uint64_t paired, imbalance, imbalance_side;
    uint32_t shown[2]; /* levels below, best first */
    tw_level side[2][TW_MAX_LEVELS];
} tw_book;

/* What one feed offers at one price. */
typedef struct tw_share {
    int64_t price;
    uint64_t qty;
    uint32_t feed, orders;
} tw_share;

/* The books of a symbol on all feeds, merged, whole at one moment. */
typedef struct tw_super {
    char symbol[25];
    uint64_t writes, feeds, stale, touch, publish_ts, recv_ts;
    int64_t price[2]; /* best prices; meaningless where the quantity is 0 */
    uint64_t qty[2], at_best[2];
    int64_t national_price[2];
    uint64_t national_qty[2], national_at[2], national_venue_ts, national_recv_ts;
    int64_t difference[2];
    uint64_t different_since[2];
    int64_t last_price;
    uint64_t last_qty, last_ts, volume, trades;
    uint64_t shares[2], levels[2], total_qty[2]; /* of the whole consolidated book */
    uint32_t shown[2];                           /* shares below, best price first, at one price by feed */
    tw_share side[2][TW_MAX_SHARES];
} tw_super;

/* One thing that happened on a market. Which fields carry meaning depends on the kind. */
typedef struct tw_event {
    uint64_t seq, venue_ts, recv_ts;
    uint32_t instrument;
    uint8_t venue, kind, side, status;
    uint64_t order_id;
    int64_t price;
    uint64_t qty, ref_id;
    int64_t ask_price;
    uint64_t ask_qty;
    int64_t near_price, far_price;
    uint64_t imbalance_qty;
    uint32_t order_count, flags;
    char code[8];
    uint64_t reserved;
} tw_event;

/* The top of a book after an event. */
typedef struct tw_update {
    uint64_t seq, venue_ts, recv_ts;
    uint32_t instrument;
    uint8_t venue, state, changed, reserved;
    int64_t price[2];
    uint64_t qty[2]; /* 0: the side is empty */
} tw_update;

/* A record of a ring. */
enum { TW_EVENT = 1, TW_UPDATE = 2 };
typedef struct tw_record {
    uint64_t index;
    uint32_t source, what; /* what: TW_EVENT or TW_UPDATE */
    union {
        tw_event event;
        tw_update update;
    } as;
} tw_record;

/* A place in a ring, from which a reader goes on. */
typedef struct tw_ring {
    const tw_region *region;
    uint64_t generation, next, missed; /* missed: in all */
    uint32_t number;
} tw_ring;

TW_STATIC_ASSERT(sizeof(tw_event) == 128 && offsetof(tw_event, instrument) == TW_AT_EVENT_INSTRUMENT, "tw_event");
TW_STATIC_ASSERT(offsetof(tw_event, status) == TW_AT_EVENT_STATUS && offsetof(tw_event, price) == TW_AT_EVENT_PRICE, "tw_event");
TW_STATIC_ASSERT(offsetof(tw_event, ref_id) == TW_AT_EVENT_REF_ID && offsetof(tw_event, far_price) == TW_AT_EVENT_FAR_PRICE, "tw_event");
TW_STATIC_ASSERT(offsetof(tw_event, imbalance_qty) == TW_AT_EVENT_IMBALANCE_QTY && offsetof(tw_event, flags) == TW_AT_EVENT_FLAGS, "tw_event");
TW_STATIC_ASSERT(offsetof(tw_event, code) == TW_AT_EVENT_CODE && offsetof(tw_event, reserved) == TW_AT_EVENT_RESERVED, "tw_event");
TW_STATIC_ASSERT(sizeof(tw_update) == 64 && offsetof(tw_update, changed) == TW_AT_UPDATE_CHANGED, "tw_update");
TW_STATIC_ASSERT(offsetof(tw_update, price) == TW_AT_UPDATE_PRICE && offsetof(tw_update, qty) == TW_AT_UPDATE_QTY, "tw_update");

/* ---- Files that are made shorter --------------------------------------------------------------------------------------- */

/* Reading behind the end of a file that was made shorter raises SIGBUS, which would end the process. `tw_open` installs a handler, once:
 * it puts zeroed memory in the place of the mapping that was hit, and from then on `tw_is_alive` says 0 and `tw_status` TW_DEAD, as they
 * do when nothing was touched yet. Any other SIGBUS goes where it went before. Each part of a program that includes this header has a list
 * and a handler of its own. Define TW_NO_GUARD to have none. */
#define TW_GUARDED_MAX 64
typedef struct tw_guarded {
    uintptr_t start, end; /* start: 0 while nobody has it */
    int is_taken, is_lost;
} tw_guarded;
static tw_guarded tw_guards[TW_GUARDED_MAX];
static struct sigaction tw_handled_before;
static int tw_is_handling;

static inline void tw_on_bus_error(int number, siginfo_t *about, void *context) {
    uintptr_t hit = (uintptr_t)about->si_addr;
    int at;
    for (at = 0; about->si_code > 0 && at < TW_GUARDED_MAX; at++) {
        tw_guarded *guard = &tw_guards[at];
        uintptr_t start = __atomic_load_n(&guard->start, __ATOMIC_ACQUIRE), end = guard->end;
        if (start == 0 || hit < start || hit >= end) continue;
        __atomic_store_n(&guard->is_lost, 1, __ATOMIC_RELEASE);
        /* A bare system call, which a handler may make. */
        if (mmap((void *)start, (size_t)(end - start), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) return;
    }
    if ((tw_handled_before.sa_flags & SA_SIGINFO) != 0) {
        tw_handled_before.sa_sigaction(number, about, context);
    } else if (tw_handled_before.sa_handler != SIG_DFL && tw_handled_before.sa_handler != SIG_IGN) {
        tw_handled_before.sa_handler(number);
    } else {
        sigaction(SIGBUS, &tw_handled_before, NULL);
    }
}

/* Guards a mapping: the number of its place, -1 when there is none left. */
static inline int tw_guard(const void *memory, uint64_t bytes) {
    int at;
#ifndef TW_NO_GUARD
    if (!__atomic_exchange_n(&tw_is_handling, 1, __ATOMIC_ACQ_REL)) {
        struct sigaction own;
        memset(&own, 0, sizeof own);
        own.sa_sigaction = tw_on_bus_error;
        own.sa_flags = SA_SIGINFO | SA_ONSTACK;
        if (sigaction(SIGBUS, NULL, &tw_handled_before) != 0 || sigaction(SIGBUS, &own, NULL) != 0) return -1;
    }
#endif
    for (at = 0; at < TW_GUARDED_MAX; at++) {
        tw_guarded *guard = &tw_guards[at];
        if (__atomic_exchange_n(&guard->is_taken, 1, __ATOMIC_ACQ_REL)) continue;
        guard->is_lost = 0;
        guard->end = (uintptr_t)memory + (uintptr_t)bytes;
        __atomic_store_n(&guard->start, (uintptr_t)memory, __ATOMIC_RELEASE);
        return at;
    }
    errno = EMFILE;
    return -1;
}

static inline void tw_unguard(int guard) {
    if (guard < 0 || guard >= TW_GUARDED_MAX) return;
    __atomic_store_n(&tw_guards[guard].start, (uintptr_t)0, __ATOMIC_RELEASE);
    __atomic_store_n(&tw_guards[guard].is_taken, 0, __ATOMIC_RELEASE);
}

/* ---- Opening, closing, liveness ---------------------------------------------------------------------------------------- */

/* An error in words. */
static inline const char *tw_strerror(int error) {
    switch (error) {
    case TW_OK: return "no error";
    case TW_ERR_NOT_RUNNING: return "no feed handler has written here: start `tickwire feed`, or name its folder";
    case TW_ERR_SYSTEM: return "the system refused to open or map the region; errno says why";
    case TW_ERR_NOT_TICKWIRE: return "the file is not a region of the feed handler";
    case TW_ERR_VERSION: return "the region has another layout version: use the tickwire.h that came with the feed handler";
    case TW_ERR_DAMAGED: return "the region's header contradicts its size: restart the feed handler";
    case TW_ERR_NOT_FOUND: return "no such symbol, or no such source; is it subscribed?";
    case TW_ERR_BUSY: return "the slot is being written; read it again, and if it stays so ask whether the writer is alive";
    case TW_ERR_RANGE: return "no slot, source, kind, histogram or ring of this number";
    case TW_ERR_REPLACED: return "the feed handler was restarted and the region attached anew: open the ring again";
    case TW_ERR_PATH: return "the folder's name is too long";
    case TW_ERR_OWNER: return "the region is another user's, not yours or root's, who could show any book: name that user in TICKWIRE_OWNER if it is meant";
    case TW_ERR_STARTING: return "the feed handler is still starting; try again in a moment";
    default: return "unknown error";
    }
}

static inline uint64_t tw_word_at(const tw_region *region, uint64_t word) {
    return TW_LOAD(&region->words[word]);
}

/* Text of `words` words; `to` has one byte more. */
static inline void tw_text(const uint64_t *from, uint32_t words, char *to) {
    uint32_t at;
    for (at = 0; at < words; at++) {
        uint64_t word = TW_LOAD(&from[at]);
        memcpy(to + 8 * at, &word, 8);
    }
    to[8 * words] = 0;
}

static inline int tw_place_of(tw_region *region, uint64_t row, uint64_t least, tw_place *place) {
    uint64_t words = region->bytes / 8;
    place->offset = tw_word_at(region, row);
    place->stride = tw_word_at(region, row + 1);
    place->count = tw_word_at(region, row + 2);
    return place->offset <= words && place->stride >= least && place->stride <= words
        && place->count <= (words - place->offset) / place->stride;
}

/* Whether a region of this user may be believed: our own, root's, and those of the user whom TICKWIRE_OWNER names. */
static inline int tw_is_owner(uid_t owner) {
    const char *name = getenv("TICKWIRE_OWNER");
    char *end;
    unsigned long number;
    struct passwd *entry;
    if (owner == 0 || owner == geteuid()) return 1;
    if (name == NULL || name[0] == 0) return 0;
    entry = getpwnam(name);
    if (entry != NULL) return entry->pw_uid == owner;
    number = strtoul(name, &end, 10);
    return *end == 0 && number == (unsigned long)owner;
}

/* Ends a mapping. */
static inline void tw_unmap(tw_region *region) {
    tw_unguard(region->guard);
    if (region->words != NULL) munmap((void *)(uintptr_t)region->words, (size_t)region->bytes);
    if (region->file >= 0) close(region->file);
    region->words = NULL;
    region->file = region->guard = -1;
}

/* Maps the file at `region->path`. On an error nothing is mapped and nothing open. */
static inline int tw_attach(tw_region *region) {
    struct stat about;
    void *memory;
    uint64_t state;
    int version_is_ours, fits;
    region->words = NULL;
    region->guard = -1;
    region->file = open(region->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (region->file < 0) return errno == ENOENT ? TW_ERR_NOT_RUNNING : TW_ERR_SYSTEM;
    if (fstat(region->file, &about) != 0) {
        tw_unmap(region);
        return TW_ERR_SYSTEM;
    }
    if (!tw_is_owner(about.st_uid)) {
        tw_unmap(region);
        return TW_ERR_OWNER;
    }
    region->device = about.st_dev;
    region->inode = about.st_ino;
    region->bytes = (uint64_t)about.st_size / 8 * 8;
    if (region->bytes < 8 * TW_WORDS_OF_HEADER) {
        tw_unmap(region);
        return TW_ERR_NOT_TICKWIRE;
    }
    memory = mmap(NULL, (size_t)region->bytes, PROT_READ, MAP_SHARED, region->file, 0);
    if (memory == MAP_FAILED) {
        tw_unmap(region);
        return TW_ERR_SYSTEM;
    }
    region->words = (const uint64_t *)memory;
    region->guard = tw_guard(memory, region->bytes);
    if (region->guard < 0) {
        tw_unmap(region);
        return TW_ERR_SYSTEM;
    }
    if (tw_word_at(region, TW_WORD_HEADER_MAGIC) != TW_MAGIC) {
        tw_unmap(region);
        return TW_ERR_NOT_TICKWIRE;
    }
    TW_ACQUIRE();
    version_is_ours = tw_word_at(region, TW_WORD_HEADER_VERSION) == TW_VERSION;
    region->generation = tw_word_at(region, TW_WORD_HEADER_GENERATION);
    region->pid = tw_word_at(region, TW_WORD_HEADER_PID);
    region->feeds = tw_word_at(region, TW_WORD_HEADER_FEEDS);
    region->book_levels = tw_word_at(region, TW_WORD_HEADER_BOOK_LEVELS);
    region->super_shares = tw_word_at(region, TW_WORD_HEADER_SUPER_SHARES);
    region->ring_records = tw_word_at(region, TW_WORD_HEADER_RING_RECORDS);
    region->counters = tw_word_at(region, TW_WORD_HEADER_COUNTERS);
    fits = tw_word_at(region, TW_WORD_HEADER_BYTES) <= region->bytes && region->feeds <= TW_MAX_FEEDS
        && region->book_levels >= 1 && region->book_levels <= TW_MAX_LEVELS && region->super_shares >= 1
        && region->super_shares <= TW_MAX_SHARES && region->ring_records >= 1 && region->ring_records <= 1u << 24
        && (region->ring_records & (region->ring_records - 1)) == 0 && region->counters <= TW_MAX_COUNTERS
        && tw_place_of(region, TW_WORD_HEADER_SECTION_SOURCES, TW_WORDS_OF_SOURCE, &region->sources)
        && tw_place_of(region, TW_WORD_HEADER_SECTION_HISTOGRAMS, TW_WORDS_OF_HISTOGRAM, &region->histograms)
        && tw_place_of(region, TW_WORD_HEADER_SECTION_BOOKS,
                       TW_WORDS_OF_BOOK + 2 * TW_LEVEL_WORDS * region->book_levels, &region->books)
        && tw_place_of(region, TW_WORD_HEADER_SECTION_SUPERS,
                       TW_WORDS_OF_SUPER_BOOK + 2 * TW_SHARE_WORDS * region->super_shares, &region->supers)
        && tw_place_of(region, TW_WORD_HEADER_SECTION_RINGS,
                       TW_WORDS_OF_RING + TW_WORDS_OF_RECORD * region->ring_records, &region->rings);
    state = tw_word_at(region, TW_WORD_HEADER_STATE);
    TW_ACQUIRE();
    if (version_is_ours && fits && (state == TW_RUNNING || state == TW_STOPPED)) return TW_OK;
    tw_unmap(region);
    if (!version_is_ours) return TW_ERR_VERSION;
    return fits && state == TW_STARTING ? TW_ERR_STARTING : TW_ERR_DAMAGED;
}

/* Attaches to the feed handler of a folder; NULL: the folder that TICKWIRE_FOLDER names, else `tickwire` in XDG_RUNTIME_DIR (/run/tickwire
 * for root), else, where that has no region, /run/tickwire. The region must be of our own user or root, or of the user whom TICKWIRE_OWNER
 * names. A region whose writer has ended can be opened too: ask `tw_is_alive`. */
static inline int tw_open(tw_region *region, const char *folder) {
    int length;
    memset(region, 0, sizeof *region);
    region->file = region->guard = -1;
    if (folder == NULL) folder = getenv("TICKWIRE_FOLDER");
    if (folder != NULL && folder[0] != 0) {
        length = snprintf(region->path, sizeof region->path, "%s/region", folder);
    } else {
        const char *own = getenv("XDG_RUNTIME_DIR");
        const unsigned long user = (unsigned long)geteuid();
        if (user == 0) {
            length = snprintf(region->path, sizeof region->path, "/run/tickwire/region");
        } else if (own != NULL && own[0] != 0) {
            length = snprintf(region->path, sizeof region->path, "%s/tickwire/region", own);
        } else {
            length = snprintf(region->path, sizeof region->path, "/run/user/%lu/tickwire/region", user);
        }
        if (access("/run/tickwire/region", F_OK) == 0 && length > 0 && access(region->path, F_OK) != 0) {
            length = snprintf(region->path, sizeof region->path, "/run/tickwire/region");
        }
    }
    if (length < 0 || (size_t)length >= sizeof region->path) return TW_ERR_PATH;
    return tw_attach(region);
}

/* Ends the mapping. Closing twice, or after an `tw_open` that failed, does nothing. */
static inline void tw_close(tw_region *region) {
    tw_unmap(region);
}

/* Whether the file was made shorter in use: what is read is zeros then, at least in part. 1 or 0. A system call. */
static inline int tw_is_cut(const tw_region *region) {
    struct stat about;
    if (region->guard >= 0 && __atomic_load_n(&tw_guards[region->guard].is_lost, __ATOMIC_ACQUIRE)) return 1;
    return fstat(region->file, &about) == 0 && (uint64_t)about.st_size < region->bytes;
}

/* Whether the process that writes this region is there and the region whole: 1 or 0. System calls; ask it every second or so. The writer
 * holds a write lock, which who may only read the file cannot take; asking takes none. */
static inline int tw_is_alive(const tw_region *region) {
    struct flock lock;
    if (tw_is_cut(region)) return 0;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(region->file, F_GETLK, &lock) != 0) return errno == ENOLCK || errno == EINTR;
    return lock.l_type != F_UNLCK;
}

/* How old the writer's heartbeat is, in nanoseconds; it is renewed every 100 ms. */
static inline uint64_t tw_heartbeat_age(const tw_region *region) {
    struct timespec now;
    uint64_t beat = tw_word_at(region, TW_WORD_HEADER_HEARTBEAT), ns;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return ns > beat ? ns - beat : 0;
}

/* How the feed handler is. */
static inline tw_liveness tw_status(const tw_region *region) {
    uint64_t state = tw_word_at(region, TW_WORD_HEADER_STATE);
    if (tw_is_cut(region)) return TW_DEAD;
    if (state == TW_STOPPED) return TW_STOPPED;
    if (!tw_is_alive(region)) return TW_DEAD;
    if (state == TW_STARTING) return TW_STARTING;
    return tw_heartbeat_age(region) > 1000000000u ? TW_STUCK : TW_RUNNING;
}

/* Attaches anew when the feed handler was started again: 1 when it was, 0 when this is still the newest region. On an error
 * the old mapping stays. Slots and rings of before must be looked up again. */
static inline int tw_refresh(tw_region *region) {
    struct stat about;
    tw_region fresh;
    int error;
    if (region->words != NULL) {
        if (stat(region->path, &about) != 0) return errno == ENOENT ? 0 : TW_ERR_SYSTEM;
        if (about.st_dev == region->device && about.st_ino == region->inode) return 0;
    }
    memset(&fresh, 0, sizeof fresh);
    memcpy(fresh.path, region->path, sizeof fresh.path);
    error = tw_attach(&fresh);
    if (error != TW_OK) return error;
    tw_close(region);
    *region = fresh;
    return 1;
}

/* ---- Sources, counters, latencies --------------------------------------------------------------------------------------- */

/* Rows of sources, used or not. */
static inline uint32_t tw_sources(const tw_region *region) {
    return (uint32_t)region->sources.count;
}

static inline const uint64_t *tw_source_row(const tw_region *region, uint64_t source) {
    if (source >= region->sources.count) return NULL;
    return &region->words[region->sources.offset + source * region->sources.stride];
}

/* Source `number`; TW_ERR_NOT_FOUND when its row is not in use. */
static inline int tw_read_source(const tw_region *region, uint32_t number, tw_source *source) {
    const uint64_t *row = tw_source_row(region, number);
    uint64_t kinds;
    if (row == NULL) return TW_ERR_RANGE;
    tw_text(&row[TW_WORD_SOURCE_FEED_NAME], 4, source->feed_name);
    if (source->feed_name[0] == 0) return TW_ERR_NOT_FOUND;
    TW_ACQUIRE();
    tw_text(&row[TW_WORD_SOURCE_NAME], 4, source->name);
    tw_text(&row[TW_WORD_SOURCE_PROTOCOL], 2, source->protocol);
    source->feed = TW_LOAD(&row[TW_WORD_SOURCE_FEED]);
    source->venue = TW_LOAD(&row[TW_WORD_SOURCE_VENUE]);
    source->ring = TW_LOAD(&row[TW_WORD_SOURCE_RING]);
    source->latency = TW_LOAD(&row[TW_WORD_SOURCE_LATENCY]);
    source->super_latency = TW_LOAD(&row[TW_WORD_SOURCE_SUPER_LATENCY]);
    source->state = TW_LOAD(&row[TW_WORD_SOURCE_STATE]);
    source->next_seq = TW_LOAD(&row[TW_WORD_SOURCE_NEXT_SEQ]);
    source->last_packet = TW_LOAD(&row[TW_WORD_SOURCE_LAST_PACKET]);
    source->packets = TW_LOAD(&row[TW_WORD_SOURCE_PACKETS]);
    source->updates = TW_LOAD(&row[TW_WORD_SOURCE_UPDATES]);
    source->books = TW_LOAD(&row[TW_WORD_SOURCE_BOOKS]);
    source->refused = TW_LOAD(&row[TW_WORD_SOURCE_REFUSED]);
    kinds = TW_LOAD(&row[TW_WORD_SOURCE_KINDS]);
    source->kinds = kinds < TW_MAX_KINDS ? (uint32_t)kinds : TW_MAX_KINDS;
    return TW_OK;
}

/* The counters of a source, in the order of `tw_counter_at`. TW_ERR_VERSION: the writer's table of counters has another length,
 * so that their order says nothing. */
static inline int tw_read_counters(const tw_region *region, uint32_t source, uint64_t values[TW_COUNTERS]) {
    const uint64_t *row = tw_source_row(region, source);
    uint32_t at;
    if (row == NULL) return TW_ERR_RANGE;
    if (region->counters != TW_COUNTERS) return TW_ERR_VERSION;
    for (at = 0; at < TW_COUNTERS; at++) values[at] = TW_LOAD(&row[TW_WORD_SOURCE_COUNTERS + at]);
    return TW_OK;
}

/* Kind `number` of a source, 0 to `kinds` - 1. */
static inline int tw_read_kind(const tw_region *region, uint32_t source, uint32_t number, tw_kind *kind) {
    const uint64_t *row = tw_source_row(region, source);
    if (row == NULL || number >= TW_MAX_KINDS || number >= TW_LOAD(&row[TW_WORD_SOURCE_KINDS])) return TW_ERR_RANGE;
    TW_ACQUIRE();
    row += TW_WORD_SOURCE_FIRST_KIND + TW_WORDS_OF_KIND * number;
    kind->type = TW_LOAD(&row[TW_WORD_KIND_TYPE]);
    kind->seen = TW_LOAD(&row[TW_WORD_KIND_SEEN]);
    kind->filtered = TW_LOAD(&row[TW_WORD_KIND_FILTERED]);
    kind->latency = TW_LOAD(&row[TW_WORD_KIND_LATENCY]);
    return TW_OK;
}

/* A copy of a histogram as it is now; `number` as in `tw_source.latency`, `.super_latency` or `tw_kind.latency`. */
static inline int tw_read_histogram(const tw_region *region, uint64_t number, tw_histogram *histogram) {
    const uint64_t *row;
    uint32_t at;
    if (number >= region->histograms.count) return TW_ERR_RANGE;
    row = &region->words[region->histograms.offset + number * region->histograms.stride];
    histogram->count = 0;
    for (at = 0; at < TW_BUCKETS; at++) {
        histogram->counts[at] = TW_LOAD(&row[TW_WORD_HISTOGRAM_COUNTS + at]);
        histogram->count += histogram->counts[at];
    }
    histogram->sum = TW_LOAD(&row[TW_WORD_HISTOGRAM_SUM]);
    histogram->min = TW_LOAD(&row[TW_WORD_HISTOGRAM_MIN]);
    histogram->max = TW_LOAD(&row[TW_WORD_HISTOGRAM_MAX]);
    return TW_OK;
}

/* The greatest value of a bucket: 32 steps to an octave. */
static inline uint64_t tw_bucket_end(uint32_t bucket) {
    uint32_t shift;
    if (bucket < 64) return bucket;
    shift = (bucket >> 5) - 1;
    return (((uint64_t)bucket - ((uint64_t)shift << 5) + 1) << shift) - 1;
}

/* A latency that `per_million` millionths of all do not exceed, to the width of a bucket: 500000 is the median, 999000 the
 * 99.9th percentile. 0 when there is none. */
static inline uint64_t tw_quantile(const tw_histogram *histogram, uint32_t per_million) {
    uint64_t so_far = 0, whole = histogram->count / 1000000u, part = histogram->count % 1000000u, wanted;
    uint32_t bucket, millionths = per_million < 1000000u ? per_million : 1000000u;
    if (histogram->count == 0) return 0;
    wanted = whole * millionths + (part * millionths + 999999u) / 1000000u;
    if (wanted == 0) wanted = 1;
    for (bucket = 0; bucket < TW_BUCKETS; bucket++) {
        so_far += histogram->counts[bucket];
        if (so_far >= wanted) {
            uint64_t end = tw_bucket_end(bucket), least = histogram->min < histogram->max ? histogram->min : histogram->max;
            if (end > histogram->max) end = histogram->max;
            return end > least ? end : least;
        }
    }
    return 0;
}

/* ---- Books -------------------------------------------------------------------------------------------------------------- */

/* How often a slot is read until TW_ERR_BUSY: a write takes some 30 ns. */
#define TW_ATTEMPTS 256

/* Slots of books that may be in use: 0 to this less 1. */
static inline uint32_t tw_books(const tw_region *region) {
    uint64_t claimed = tw_word_at(region, TW_WORD_HEADER_BOOKS_CLAIMED);
    return (uint32_t)(claimed < region->books.count ? claimed : region->books.count);
}

/* Slots of consolidated books that may be in use: 0 to this less 1. */
static inline uint32_t tw_supers(const tw_region *region) {
    uint64_t claimed = tw_word_at(region, TW_WORD_HEADER_SUPERS_CLAIMED);
    return (uint32_t)(claimed < region->supers.count ? claimed : region->supers.count);
}

static inline const uint64_t *tw_book_slot(const tw_region *region, uint64_t slot) {
    return &region->words[region->books.offset + slot * region->books.stride];
}

static inline const uint64_t *tw_super_slot(const tw_region *region, uint64_t slot) {
    return &region->words[region->supers.offset + slot * region->supers.stride];
}

/* The book of `symbol` on the source or feed called `source` (NULL: the first that has it). A look through all slots: keep
 * the answer, it holds until the feed handler is restarted. */
static inline int tw_find(const tw_region *region, const char *symbol, const char *source, uint32_t *slot) {
    uint32_t at, books = tw_books(region);
    char text[33];
    for (at = 0; at < books; at++) {
        const uint64_t *book = tw_book_slot(region, at), *row;
        if (TW_LOAD(&book[TW_WORD_BOOK_SEQUENCE]) == 0) continue;
        TW_ACQUIRE();
        tw_text(&book[TW_WORD_BOOK_SYMBOL], 3, text);
        if (strcmp(text, symbol) != 0) continue;
        row = tw_source_row(region, TW_LOAD(&book[TW_WORD_BOOK_SOURCE]));
        if (row == NULL) continue;
        if (source != NULL) {
            tw_text(&row[TW_WORD_SOURCE_NAME], 4, text);
            if (strcmp(text, source) != 0) {
                tw_text(&row[TW_WORD_SOURCE_FEED_NAME], 4, text);
                if (strcmp(text, source) != 0) continue;
            }
        }
        *slot = at;
        return TW_OK;
    }
    return TW_ERR_NOT_FOUND;
}

/* The consolidated book of `symbol`. */
static inline int tw_find_super(const tw_region *region, const char *symbol, uint32_t *slot) {
    uint32_t at, supers = tw_supers(region);
    char text[25];
    for (at = 0; at < supers; at++) {
        const uint64_t *super = tw_super_slot(region, at);
        if (TW_LOAD(&super[TW_WORD_SUPER_BOOK_SEQUENCE]) == 0) continue;
        TW_ACQUIRE();
        tw_text(&super[TW_WORD_SUPER_BOOK_SYMBOL], 3, text);
        if (strcmp(text, symbol) == 0) {
            *slot = at;
            return TW_OK;
        }
    }
    return TW_ERR_NOT_FOUND;
}

static inline void tw_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* What a book's state comes to behind a source of this state; what a later version may add is nothing to trust a book by. */
static inline uint64_t tw_limit(uint64_t source, uint64_t book) {
    if (source > TW_BOOK_LIVE || book > TW_BOOK_LIVE) return TW_BOOK_STALE;
    return source == TW_BOOK_LIVE ? book : (uint64_t)TW_BOOK_BUILDING;
}

static inline uint64_t tw_source_state(const tw_region *region, uint64_t source) {
    const uint64_t *row = tw_source_row(region, source);
    return row == NULL ? (uint64_t)TW_BOOK_STALE : TW_LOAD(&row[TW_WORD_SOURCE_STATE]);
}

/* How often a source said its state. */
static inline uint64_t tw_source_changes(const tw_region *region, uint64_t source) {
    const uint64_t *row = tw_source_row(region, source);
    return row == NULL ? 0 : TW_LOAD(&row[TW_WORD_SOURCE_CHANGES]);
}

/* A copy of a book, whole at one moment. TW_ERR_BUSY: written at every attempt; try later. */
static inline int tw_read_book(const tw_region *region, uint32_t slot, tw_book *book) {
    const uint64_t *words;
    uint64_t before = 0, shown, levels = region->book_levels, source, changes, trust;
    uint32_t attempt, side, at;
    if (slot >= region->books.count) return TW_ERR_RANGE;
    words = tw_book_slot(region, slot);
    /* The source is asked before: when it became live again, books that were made right first are seen. And after: what was
     * written behind a gap is seen as stale, also when the gap came and went meanwhile, which only the count of changes tells. */
    source = TW_LOAD(&words[TW_WORD_BOOK_SOURCE]);
    changes = tw_source_changes(region, source);
    TW_ACQUIRE();
    trust = tw_source_state(region, source);
    for (attempt = 0; attempt < TW_ATTEMPTS; attempt++, tw_pause()) {
        before = TW_LOAD(&words[TW_WORD_BOOK_SEQUENCE]);
        if (before == 0 || (before & 1) != 0) continue;
        TW_ACQUIRE();
        book->source = TW_LOAD(&words[TW_WORD_BOOK_SOURCE]);
        book->instrument = TW_LOAD(&words[TW_WORD_BOOK_INSTRUMENT]);
        tw_text(&words[TW_WORD_BOOK_SYMBOL], 3, book->symbol);
        book->state = TW_LOAD(&words[TW_WORD_BOOK_STATE]);
        book->status = TW_LOAD(&words[TW_WORD_BOOK_STATUS]);
        book->seq = TW_LOAD(&words[TW_WORD_BOOK_SEQ]);
        book->venue_ts = TW_LOAD(&words[TW_WORD_BOOK_VENUE_TS]);
        book->recv_ts = TW_LOAD(&words[TW_WORD_BOOK_RECV_TS]);
        book->publish_ts = TW_LOAD(&words[TW_WORD_BOOK_PUBLISH_TS]);
        book->last_price = (int64_t)TW_LOAD(&words[TW_WORD_BOOK_LAST_PRICE]);
        book->last_qty = TW_LOAD(&words[TW_WORD_BOOK_LAST_QTY]);
        book->last_ts = TW_LOAD(&words[TW_WORD_BOOK_LAST_TS]);
        book->volume = TW_LOAD(&words[TW_WORD_BOOK_VOLUME]);
        book->trades = TW_LOAD(&words[TW_WORD_BOOK_TRADES]);
        book->auction = TW_LOAD(&words[TW_WORD_BOOK_AUCTION]);
        book->reference = (int64_t)TW_LOAD(&words[TW_WORD_BOOK_REFERENCE]);
        book->near_price = (int64_t)TW_LOAD(&words[TW_WORD_BOOK_NEAR]);
        book->far_price = (int64_t)TW_LOAD(&words[TW_WORD_BOOK_FAR]);
        book->paired = TW_LOAD(&words[TW_WORD_BOOK_PAIRED]);
        book->imbalance = TW_LOAD(&words[TW_WORD_BOOK_IMBALANCE]);
        book->imbalance_side = TW_LOAD(&words[TW_WORD_BOOK_IMBALANCE_SIDE]);
        for (side = 0; side < 2; side++) {
            const uint64_t *level = &words[TW_WORDS_OF_BOOK + side * TW_LEVEL_WORDS * levels];
            book->levels[side] = TW_LOAD(&words[TW_WORD_BOOK_LEVELS + side]);
            book->qty[side] = TW_LOAD(&words[TW_WORD_BOOK_QTY + side]);
            book->orders[side] = TW_LOAD(&words[TW_WORD_BOOK_ORDERS + side]);
            shown = book->levels[side] < levels ? book->levels[side] : levels;
            book->shown[side] = (uint32_t)shown;
            for (at = 0; at < shown; at++, level += TW_LEVEL_WORDS) {
                book->side[side][at].price = (int64_t)TW_LOAD(&level[0]);
                book->side[side][at].qty = TW_LOAD(&level[1]);
                book->side[side][at].orders = TW_LOAD(&level[2]);
            }
        }
        TW_ACQUIRE();
        if (TW_LOAD(&words[TW_WORD_BOOK_SEQUENCE]) != before) continue;
        book->writes = before / 2;
        book->state = tw_limit(tw_source_state(region, source), tw_limit(trust, book->state));
        TW_ACQUIRE();
        if (tw_source_changes(region, source) != changes) book->state = TW_BOOK_STALE;
        return TW_OK;
    }
    return before == 0 ? TW_ERR_NOT_FOUND : TW_ERR_BUSY;
}

/* A copy of a consolidated book, whole at one moment. TW_ERR_BUSY: written at every attempt; try later. */
static inline int tw_read_super(const tw_region *region, uint32_t slot, tw_super *super) {
    const uint64_t *words;
    uint64_t before = 0, shown, shares = region->super_shares, both;
    uint32_t attempt, side, at;
    if (slot >= region->supers.count) return TW_ERR_RANGE;
    words = tw_super_slot(region, slot);
    for (attempt = 0; attempt < TW_ATTEMPTS; attempt++, tw_pause()) {
        before = TW_LOAD(&words[TW_WORD_SUPER_BOOK_SEQUENCE]);
        if (before == 0 || (before & 1) != 0) continue;
        TW_ACQUIRE();
        tw_text(&words[TW_WORD_SUPER_BOOK_SYMBOL], 3, super->symbol);
        super->feeds = TW_LOAD(&words[TW_WORD_SUPER_BOOK_FEEDS]);
        super->stale = TW_LOAD(&words[TW_WORD_SUPER_BOOK_STALE]);
        super->touch = TW_LOAD(&words[TW_WORD_SUPER_BOOK_TOUCH]);
        super->publish_ts = TW_LOAD(&words[TW_WORD_SUPER_BOOK_PUBLISH_TS]);
        super->recv_ts = TW_LOAD(&words[TW_WORD_SUPER_BOOK_RECV_TS]);
        super->national_venue_ts = TW_LOAD(&words[TW_WORD_SUPER_BOOK_NATIONAL_VENUE_TS]);
        super->national_recv_ts = TW_LOAD(&words[TW_WORD_SUPER_BOOK_NATIONAL_RECV_TS]);
        super->last_price = (int64_t)TW_LOAD(&words[TW_WORD_SUPER_BOOK_LAST_PRICE]);
        super->last_qty = TW_LOAD(&words[TW_WORD_SUPER_BOOK_LAST_QTY]);
        super->last_ts = TW_LOAD(&words[TW_WORD_SUPER_BOOK_LAST_TS]);
        super->volume = TW_LOAD(&words[TW_WORD_SUPER_BOOK_VOLUME]);
        super->trades = TW_LOAD(&words[TW_WORD_SUPER_BOOK_TRADES]);
        for (side = 0; side < 2; side++) {
            const uint64_t *share = &words[TW_WORDS_OF_SUPER_BOOK + side * TW_SHARE_WORDS * shares];
            super->price[side] = (int64_t)TW_LOAD(&words[TW_WORD_SUPER_BOOK_PRICE + side]);
            super->qty[side] = TW_LOAD(&words[TW_WORD_SUPER_BOOK_QTY + side]);
            super->at_best[side] = TW_LOAD(&words[TW_WORD_SUPER_BOOK_AT_BEST + side]);
            super->national_price[side] = (int64_t)TW_LOAD(&words[TW_WORD_SUPER_BOOK_NATIONAL_PRICE + side]);
            super->national_qty[side] = TW_LOAD(&words[TW_WORD_SUPER_BOOK_NATIONAL_QTY + side]);
            super->national_at[side] = TW_LOAD(&words[TW_WORD_SUPER_BOOK_NATIONAL_AT + side]);
            super->difference[side] = (int64_t)TW_LOAD(&words[TW_WORD_SUPER_BOOK_DIFFERENCE + side]);
            super->different_since[side] = TW_LOAD(&words[TW_WORD_SUPER_BOOK_DIFFERENT_SINCE + side]);
            super->shares[side] = TW_LOAD(&words[TW_WORD_SUPER_BOOK_SHARES + side]);
            super->levels[side] = TW_LOAD(&words[TW_WORD_SUPER_BOOK_LEVELS + side]);
            super->total_qty[side] = TW_LOAD(&words[TW_WORD_SUPER_BOOK_TOTAL_QTY + side]);
            shown = super->shares[side] < shares ? super->shares[side] : shares;
            super->shown[side] = (uint32_t)shown;
            for (at = 0; at < shown; at++, share += TW_SHARE_WORDS) {
                super->side[side][at].price = (int64_t)TW_LOAD(&share[0]);
                super->side[side][at].qty = TW_LOAD(&share[1]);
                both = TW_LOAD(&share[2]);
                super->side[side][at].feed = (uint32_t)both;
                super->side[side][at].orders = (uint32_t)(both >> 32);
            }
        }
        TW_ACQUIRE();
        if (TW_LOAD(&words[TW_WORD_SUPER_BOOK_SEQUENCE]) != before) continue;
        super->writes = before / 2;
        return TW_OK;
    }
    return before == 0 ? TW_ERR_NOT_FOUND : TW_ERR_BUSY;
}

/* ---- Events ------------------------------------------------------------------------------------------------------------- */

/* Where a reader of a ring begins. */
enum { TW_FROM_OLDEST = 0, TW_FROM_NOW = 1 };

/* A place in ring `number` (0 to `region->rings.count` - 1): before the oldest record that is still there, or after the
 * newest. The region must outlive it. */
static inline int tw_ring_open(const tw_region *region, uint32_t number, int from, tw_ring *ring) {
    uint64_t head;
    if (number >= region->rings.count) return TW_ERR_RANGE;
    head = tw_word_at(region, region->rings.offset + number * region->rings.stride + TW_WORD_RING_HEAD);
    ring->region = region;
    ring->generation = region->generation;
    ring->number = number;
    ring->missed = 0;
    ring->next = from == TW_FROM_NOW ? head : head < region->ring_records ? 0 : head + 1 - region->ring_records;
    return TW_OK;
}

/* The next record: 1 when there is one, 0 when nothing new was written. `*missed` is how many records before it were
 * overwritten before they could be read (also when the answer is 0); the reader then goes on an eighth of the ring after the
 * oldest one left. TW_ERR_REPLACED: the region was attached anew. */
static inline int tw_ring_next(tw_ring *ring, tw_record *record, uint64_t *missed) {
    const tw_region *region = ring->region;
    const uint64_t *words;
    uint64_t body[TW_WORDS_OF_RECORD], head, stamp, oldest, jump, size = region->ring_records;
    uint32_t at;
    int64_t ahead;
    *missed = 0;
    if (ring->generation != region->generation) return TW_ERR_REPLACED;
    words = &region->words[region->rings.offset + ring->number * region->rings.stride];
    for (;;) {
        const uint64_t *from = &words[TW_WORDS_OF_RING + (ring->next & (size - 1)) * TW_WORDS_OF_RECORD];
        stamp = TW_LOAD(&from[TW_WORD_RECORD_STAMP]);
        TW_ACQUIRE();
        /* How far the record in this place is ahead of the one wanted; both numbers are kept modulo 2^40. */
        ahead = (int64_t)(((stamp >> 24) - ring->next) << 24);
        if (ahead < 0 || (ahead == 0 && ((stamp & 1) != 0 || (stamp & 0xff) == 0))) return 0;
        jump = 0;
        if (ahead == 0) {
            for (at = 0; at < TW_WORD_RECORD_STAMP; at++) body[at] = TW_LOAD(&from[at]);
            TW_ACQUIRE();
            if (TW_LOAD(&from[TW_WORD_RECORD_STAMP]) == stamp) {
                record->what = (uint32_t)(stamp >> 1) & 0x7f;
                if (record->what == TW_EVENT || record->what == TW_UPDATE) break;
                jump = 1; /* of a kind that this header does not know */
            }
        }
        if (jump == 0) {
            /* The record numbered `head` may be half written, over the one numbered `head - size`. */
            head = TW_LOAD(&words[TW_WORD_RING_HEAD]);
            if (head <= ring->next) return 0;
            oldest = head + 1 > size ? head + 1 - size + size / 8 : size / 8;
            jump = oldest > ring->next ? oldest - ring->next : 1;
        }
        ring->next += jump;
        ring->missed += jump;
        *missed += jump;
    }
    TW_STATIC_ASSERT(sizeof body == sizeof record->as, "a record is an event");
    body[TW_WORD_RECORD_STAMP] = 0;
    memcpy(&record->as, body, sizeof body);
    record->index = ring->next++;
    record->source = (uint32_t)(stamp >> 8) & 0xffff;
    return 1;
}

#ifdef __cplusplus
}
#endif
#endif
