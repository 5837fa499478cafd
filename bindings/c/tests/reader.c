/* Tests of tickwire.h against a writer whose every word is known (crates/runtime/examples/region.rs), C and C++.
 *
 *     reader REGION_PROGRAM BOOK_PROGRAM     runs the tests
 *     reader live REGION_PROGRAM TICKWIRE_PROGRAM CONFIG CAPTURE
 *                                            runs those against `tickwire feed` that plays a recording
 *     reader dump FOLDER                     prints all that can be read, as `region dump FOLDER` does
 *     reader bench FOLDER                    nanoseconds of a read
 */
#include "tickwire.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) fail(__LINE__, #condition); \
    } while (0)

static const char *region_program, *book_program;
static char folder[512];
static const char *test = "";

static void fail(int line, const char *what) {
    fprintf(stderr, "reader.c:%d: %s: does not hold: %s\n", line, test, what);
    exit(1);
}

/* ---- Everything that can be read, as text ---- */

static int64_t index_of(uint64_t number) {
    return number == TW_NONE ? -1 : (int64_t)number;
}

static void dump_histogram(FILE *out, const tw_region *region, uint64_t number) {
    static tw_histogram h;
    if (tw_read_histogram(region, number, &h) != TW_OK) return;
    fprintf(out, "histogram %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", number,
            h.count, h.sum, h.min, h.max, tw_quantile(&h, 500000), tw_quantile(&h, 990000), tw_quantile(&h, 999000));
}

static void dump_sources(FILE *out, const tw_region *region) {
    uint32_t number, at;
    for (number = 0; number < tw_sources(region); number++) {
        tw_source s;
        uint64_t counters[TW_COUNTERS];
        if (tw_read_source(region, number, &s) != TW_OK) continue;
        fprintf(out, "source %" PRIu32 " [%s] [%s] [%s] %" PRIu64 " %" PRIu64 " ", number, s.name, s.feed_name, s.protocol, s.feed, s.venue);
        fprintf(out, "%" PRId64 " %" PRId64 " %" PRId64 " ", index_of(s.ring), index_of(s.latency), index_of(s.super_latency));
        fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " ", s.state, s.next_seq, s.last_packet);
        fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s.packets, s.updates, s.books, s.refused);
        /* A damaged header may give another number of them. */
        for (at = 0; tw_read_counters(region, number, counters) == TW_OK && at < TW_COUNTERS; at++)
            if (counters[at] > 0) fprintf(out, "counter %" PRIu32 " %s %" PRIu64 "\n", number, tw_counter_at(at)->id, counters[at]);
        for (at = 0; at < s.kinds; at++) {
            tw_kind k;
            CHECK(tw_read_kind(region, number, at, &k) == TW_OK);
            fprintf(out, "kind %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n", number, k.type, k.seen, k.filtered, index_of(k.latency));
            dump_histogram(out, region, k.latency);
        }
        dump_histogram(out, region, s.latency);
        dump_histogram(out, region, s.super_latency);
    }
}

static void dump_books(FILE *out, const tw_region *region) {
    uint32_t slot, side, at;
    for (slot = 0; slot < tw_books(region); slot++) {
        static tw_book b;
        int error = tw_read_book(region, slot, &b);
        if (error == TW_ERR_NOT_FOUND) continue;
        CHECK(error == TW_OK);
        fprintf(out, "book %" PRIu32 " %s %" PRIu64 " %" PRIu64 " ", slot, b.symbol, b.source, b.instrument);
        fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", b.state, b.status, b.writes, b.seq);
        fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " ", b.venue_ts, b.recv_ts, b.publish_ts);
        fprintf(out, "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", b.last_price, b.last_qty, b.last_ts, b.volume, b.trades);
        fprintf(out, "%" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " ", b.auction, b.reference, b.near_price, b.far_price);
        fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b.paired, b.imbalance, b.imbalance_side);
        for (side = 0; side < 2; side++) {
            fprintf(out, "side %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", side, b.levels[side], b.qty[side], b.orders[side]);
            for (at = 0; at < b.shown[side]; at++) {
                const tw_level *level = &b.side[side][at];
                fprintf(out, "level %" PRId64 " %" PRIu64 " %" PRIu64 "\n", level->price, level->qty, level->orders);
            }
        }
    }
}

static void dump_supers(FILE *out, const tw_region *region) {
    uint32_t slot, side, at;
    for (slot = 0; slot < tw_supers(region); slot++) {
        static tw_super b;
        int error = tw_read_super(region, slot, &b);
        if (error == TW_ERR_NOT_FOUND) continue;
        CHECK(error == TW_OK);
        fprintf(out, "super %" PRIu32 " %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", slot, b.symbol, b.writes, b.feeds, b.stale, b.touch);
        fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", b.publish_ts, b.recv_ts, b.national_venue_ts, b.national_recv_ts);
        fprintf(out, "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b.last_price, b.last_qty, b.last_ts, b.volume, b.trades);
        for (side = 0; side < 2; side++) {
            fprintf(out, "side %" PRIu32 " %" PRId64 " %" PRIu64 " %" PRIu64 " ", side, b.price[side], b.qty[side], b.at_best[side]);
            fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " ", b.shares[side], b.levels[side], b.total_qty[side]);
            fprintf(out, "%" PRId64 " %" PRIu64 " %" PRIu64 " ", b.national_price[side], b.national_qty[side], b.national_at[side]);
            fprintf(out, "%" PRId64 " %" PRIu64 "\n", b.difference[side], b.different_since[side]);
            for (at = 0; at < b.shown[side]; at++) {
                const tw_share *share = &b.side[side][at];
                fprintf(out, "share %" PRId64 " %" PRIu64 " %" PRIu32 " %" PRIu32 "\n", share->price, share->qty, share->feed, share->orders);
            }
        }
    }
}

static void dump_rings(FILE *out, const tw_region *region) {
    uint32_t number;
    for (number = 0; number < region->rings.count; number++) {
        tw_ring ring;
        tw_record r;
        uint64_t missed, code;
        CHECK(tw_ring_open(region, number, TW_FROM_OLDEST, &ring) == TW_OK);
        while (tw_ring_next(&ring, &r, &missed) == 1) {
            if (missed > 0) fprintf(out, "missed %" PRIu64 "\n", missed);
            if (r.what == TW_EVENT) {
                const tw_event *e = &r.as.event;
                memcpy(&code, e->code, 8);
                fprintf(out, "event %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", number, r.index, r.source, e->seq, e->venue_ts, e->recv_ts);
                fprintf(out, "%" PRIu32 " %d %d %d %d %" PRIu64 " ", e->instrument, e->venue, e->kind, e->side, e->status, e->order_id);
                fprintf(out, "%" PRId64 " %" PRIu64 " %" PRIu64 " ", e->price, e->qty, e->ref_id);
                fprintf(out, "%" PRId64 " %" PRIu64 " %" PRId64 " ", e->ask_price, e->ask_qty, e->near_price);
                fprintf(out, "%" PRId64 " %" PRIu64 " %" PRIu32 " ", e->far_price, e->imbalance_qty, e->order_count);
                fprintf(out, "%" PRIu32 " %" PRIu64 "\n", e->flags, code);
            } else {
                const tw_update *u = &r.as.update;
                fprintf(out, "update %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", number, r.index, r.source, u->seq, u->venue_ts, u->recv_ts);
                fprintf(out, "%" PRIu32 " %d %d %d ", u->instrument, u->venue, u->state, u->changed);
                fprintf(out, "%" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n", u->price[0], u->price[1], u->qty[0], u->qty[1]);
            }
        }
    }
}

static void dump(FILE *out, const tw_region *region) {
    tw_liveness status = tw_status(region);
    fprintf(out, "region %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", region->feeds, region->book_levels, region->super_shares, region->ring_records);
    fprintf(out, "%" PRIu64 " %s\n", tw_word_at(region, TW_WORD_HEADER_STATE), status == TW_RUNNING || status == TW_STUCK ? "true" : "false");
    dump_sources(out, region);
    dump_books(out, region);
    dump_supers(out, region);
    dump_rings(out, region);
}

/* ---- The writer as a child ---- */

typedef struct writer {
    pid_t pid;
    FILE *orders, *answers;
} writer;

static void expect(writer *w, const char *answer) {
    char line[128];
    CHECK(fgets(line, sizeof line, w->answers) != NULL);
    CHECK(strncmp(line, answer, strlen(answer)) == 0);
}

static void order(writer *w, const char *line) {
    fprintf(w->orders, "%s\n", line);
    fflush(w->orders);
    expect(w, "ok");
}

static writer start(const char *levels, const char *records) {
    writer w;
    int down[2], up[2];
    CHECK(pipe(down) == 0 && pipe(up) == 0);
    w.pid = fork();
    CHECK(w.pid >= 0);
    if (w.pid == 0) {
        /* A test that fails leaves nobody behind. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[0]), close(down[1]), close(up[0]), close(up[1]);
        execl(region_program, region_program, "write", folder, levels, levels, records, (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    /* The next child must not hold this one's input open. */
    fcntl(down[1], F_SETFD, FD_CLOEXEC);
    fcntl(up[0], F_SETFD, FD_CLOEXEC);
    w.orders = fdopen(down[1], "w");
    w.answers = fdopen(up[0], "r");
    expect(&w, "ready");
    return w;
}

/* Ends it: by a signal, or when its input closes. */
static void stop(writer *w, int signal) {
    if (signal != 0) kill(w->pid, signal);
    fclose(w->orders);
    fclose(w->answers);
    CHECK(waitpid(w->pid, NULL, 0) == w->pid);
}

/* ---- What a write says, as in region.rs ---- */

static uint64_t levels_of(uint64_t k, uint64_t n, uint64_t side, uint64_t shown) {
    return (n + k + side) % (shown + 3);
}

static void check_book(const tw_region *region, const tw_book *b, uint64_t k) {
    uint64_t n = b->seq, side, rank, count;
    int64_t base = (int64_t)((k + 1) * UINT64_C(100000000000) + n % 1000 * 1000000);
    CHECK(b->writes == n + 1 && b->venue_ts == n * 1000 + k && b->recv_ts == n * 1000 + k + 1 && b->publish_ts == n * 1000 + k + 500);
    CHECK(b->state == (n % 64 == 0 ? TW_BOOK_STALE : TW_BOOK_LIVE) && b->status == TW_STATUS_TRADING);
    CHECK(b->last_price == base && b->last_qty == n + 1 && b->last_ts == n * 1000 && b->volume == n * 3 && b->trades == n);
    CHECK(b->reference == base && b->near_price == base - (int64_t)n && b->far_price == base + (int64_t)n);
    CHECK(b->paired == n * 11 && b->imbalance == n * 13 && b->imbalance_side == n % 3);
    for (side = 0; side < 2; side++) {
        count = levels_of(k, n, side, region->book_levels);
        CHECK(b->levels[side] == count && b->qty[side] == count * 7 + n && b->orders[side] == count + n % 7);
        CHECK(b->shown[side] == (count < region->book_levels ? count : region->book_levels));
        for (rank = 0; rank < b->shown[side]; rank++) {
            const tw_level *level = &b->side[side][rank];
            int64_t away = ((int64_t)rank + 1) * 10000000;
            CHECK(level->price == (side == TW_BID ? base - away : base + away));
            CHECK(level->qty == n * 100 + rank * 2 + side + 1 && level->orders == (n + rank) % 50 + 1);
        }
    }
}

static void check_super(const tw_region *region, const tw_super *b) {
    uint64_t n = b->trades, side, rank, count;
    int64_t base = (int64_t)(10 * UINT64_C(100000000000) + n % 1000 * 1000000);
    CHECK(b->writes == n + 1 && b->feeds == 3 && b->stale == (n % 8 == 0 ? 2u : 0u) && b->volume == n * 3 && b->last_price == base);
    for (side = 0; side < 2; side++) {
        count = levels_of(9, n, side, region->super_shares);
        CHECK(b->shares[side] == count && b->total_qty[side] == count * 7 + n && b->national_qty[side] == n * 100);
        CHECK(b->different_since[side] == n && b->qty[side] == n * 100 + side + 1);
        for (rank = 0; rank < b->shown[side]; rank++) {
            const tw_share *share = &b->side[side][rank];
            CHECK(share->qty == n * 100 + rank * 2 + side + 1 && share->feed == rank % 2 && share->orders == (n + rank) % 50 + 1);
        }
    }
}

static void check_record(const tw_record *r) {
    /* Four books a write, an event and an update each. */
    uint64_t n = r->index / 8 + 1;
    if (r->index % 2 == 0) {
        const tw_event *e = &r->as.event;
        CHECK(r->what == TW_EVENT && e->seq == n && e->order_id == n * 3 && e->qty == n * 5 && e->ref_id == n * 7);
        CHECK(e->price == -e->ask_price && e->ask_qty == n * 9 && e->near_price == e->price + 1 && e->imbalance_qty == n * 11);
        CHECK(e->order_count == (uint32_t)n && e->flags == TW_FLAG_LAST && strcmp(e->code, "KNOWN") == 0);
    } else {
        const tw_update *u = &r->as.update;
        CHECK(r->what == TW_UPDATE && u->seq == n && u->qty[0] == n * 2 && u->qty[1] == n * 3 && u->price[1] == u->price[0] + 2);
    }
}

/* ---- The tests ---- */

/* The whole of a stream that ends. */
static char *text_of(FILE *from) {
    size_t size = 0, room = 1 << 20;
    char *text = (char *)malloc(room + 1);
    CHECK(text != NULL);
    for (;;) {
        size_t got = fread(text + size, 1, room - size, from);
        if (got == 0) break;
        size += got;
        if (size == room) {
            room *= 2;
            text = (char *)realloc(text, room + 1);
            CHECK(text != NULL);
        }
    }
    text[size] = 0;
    return text;
}

static char *run(int *status, const char *format, ...) {
    char command[2048];
    va_list words;
    FILE *from;
    char *text;
    va_start(words, format);
    vsnprintf(command, sizeof command, format, words);
    va_end(words);
    from = popen(command, "r");
    CHECK(from != NULL);
    text = text_of(from);
    *status = pclose(from);
    return text;
}

static void equal_to_the_rust_reader(const tw_region *region) {
    FILE *out = tmpfile();
    char *ours, *theirs;
    int status;
    CHECK(out != NULL);
    dump(out, region);
    rewind(out);
    ours = text_of(out);
    fclose(out);
    theirs = run(&status, "'%s' dump '%s'", region_program, folder);
    CHECK(status == 0 && strlen(theirs) > 1000);
    CHECK(strcmp(ours, theirs) == 0);
    free(ours);
    free(theirs);
}

static void values_are_those_of_the_rust_reader(const char *levels) {
    tw_region region;
    tw_book book;
    tw_super super;
    uint32_t slot;
    int step;
    writer w;
    test = "values_are_those_of_the_rust_reader";
    w = start(levels, "64");
    CHECK(tw_open(&region, folder) == TW_OK);
    CHECK(region.book_levels == strtoull(levels, NULL, 10) && tw_status(&region) == TW_RUNNING && tw_refresh(&region) == 0);
    for (step = 0; step < 4; step++) {
        order(&w, step == 0 ? "step 1" : "step 21");
        equal_to_the_rust_reader(&region);
    }
    CHECK(tw_find(&region, "AAPL", "nasdaq", &slot) == TW_OK && slot == 0 && tw_read_book(&region, slot, &book) == TW_OK);
    check_book(&region, &book, 0);
    CHECK(tw_find(&region, "AAPL", "bzx", &slot) == TW_OK && slot == 2 && tw_read_book(&region, slot, &book) == TW_OK);
    check_book(&region, &book, 2);
    CHECK(strcmp(book.symbol, "AAPL") == 0 && book.source == 1 && book.instrument == 7);
    CHECK(tw_find(&region, "ZVZZT", "bzx 2", &slot) == TW_OK && slot == 3 && tw_find(&region, "ZVZZT", NULL, &slot) == TW_OK);
    CHECK(tw_find_super(&region, "AAPL", &slot) == TW_OK && tw_read_super(&region, slot, &super) == TW_OK);
    check_super(&region, &super);
    CHECK(tw_find(&region, "ZVZZT", "bzx 1", &slot) == TW_ERR_NOT_FOUND && tw_find(&region, "AAP", NULL, &slot) == TW_ERR_NOT_FOUND);
    CHECK(tw_find_super(&region, "MSFT", &slot) == TW_ERR_NOT_FOUND && tw_read_book(&region, 4, &book) == TW_ERR_NOT_FOUND);
    CHECK(tw_read_book(&region, 8, &book) == TW_ERR_RANGE && tw_read_super(&region, 9, &super) == TW_ERR_RANGE);
    CHECK(strcmp(tw_venue_name(TW_VENUE_BZX), "bzx") == 0 && tw_venue_name(0) == NULL && tw_venue_name(99) == NULL);
    tw_close(&region);
    tw_close(&region);
    stop(&w, 0);
}

static void no_read_is_torn_under_a_fast_writer(void) {
    tw_region region;
    tw_book book;
    tw_super super;
    uint64_t reads = 0, busy = 0, written = 3;
    uint32_t slot = 0;
    writer w;
    test = "no_read_is_torn_under_a_fast_writer";
    w = start("10", "1024");
    CHECK(tw_open(&region, folder) == TW_OK);
    super.trades = 0;
    /* A machine that is busy with others may give the reader no turn for as long as one round takes. */
    while (reads <= 1000) {
        order(&w, "fast 50000");
        written += 50000;
        do {
            int error = tw_read_book(&region, slot, &book);
            CHECK(error == TW_OK || error == TW_ERR_BUSY);
            busy += error != TW_OK;
            if (error == TW_OK) check_book(&region, &book, slot);
            error = tw_read_super(&region, 0, &super);
            CHECK(error == TW_OK || error == TW_ERR_BUSY);
            if (error == TW_OK) check_super(&region, &super);
            reads++;
            slot = (slot + 1) % 4;
        } while (super.trades < written && reads < UINT64_C(100000000));
        expect(&w, "ok");
    }
    /* Of the four books, one is being written at a time. */
    CHECK(busy * 2 < reads);
    tw_close(&region);
    stop(&w, 0);
}

static void a_slow_reader_learns_how_much_it_missed(void) {
    tw_region region;
    tw_ring ring, late;
    tw_record record;
    uint64_t read = 0, missed, lost = 0;
    writer w;
    test = "a_slow_reader_learns_how_much_it_missed";
    w = start("5", "64");
    CHECK(tw_open(&region, folder) == TW_OK);
    CHECK(tw_ring_open(&region, 1, TW_FROM_NOW, &ring) == TW_ERR_RANGE);
    CHECK(tw_ring_open(&region, 0, TW_FROM_OLDEST, &ring) == TW_OK && ring.next == 0);
    while (tw_ring_next(&ring, &record, &missed) == 1) {
        CHECK(missed == 0 && record.index == read++);
        check_record(&record);
    }
    CHECK(read == 24 && missed == 0 && tw_ring_next(&ring, &record, &missed) == 0);
    /* 8 records a write; the ring holds 64. */
    order(&w, "step 50");
    CHECK(tw_ring_open(&region, 0, TW_FROM_NOW, &late) == TW_OK && late.next == 24 + 400);
    CHECK(tw_ring_next(&late, &record, &missed) == 0 && missed == 0);
    CHECK(tw_ring_next(&ring, &record, &missed) == 1 && missed > 0 && missed == record.index - 24);
    check_record(&record);
    read++;
    lost += missed;
    while (tw_ring_next(&ring, &record, &missed) == 1) {
        CHECK(missed == 0 && record.index == read + lost);
        check_record(&record);
        read++;
    }
    CHECK(read + lost == 24 + 400 && ring.missed == lost);
    tw_close(&region);
    stop(&w, 0);
}

/* The smaller the ring, the more often a record is written over while it is read. */
static void every_record_is_read_whole_or_counted(const char *records) {
    tw_region region;
    tw_ring ring;
    tw_record record;
    uint64_t read = 0, missed, lost = 0;
    writer w;
    test = "every_record_is_read_whole_or_counted";
    w = start("5", records);
    CHECK(tw_open(&region, folder) == TW_OK && tw_ring_open(&region, 0, TW_FROM_NOW, &ring) == TW_OK);
    order(&w, "fast 60000");
    while (read + lost < 480000) {
        int got = tw_ring_next(&ring, &record, &missed);
        lost += missed;
        if (got == 0) continue;
        CHECK(got == 1 && record.index == 24 + read + lost);
        check_record(&record);
        read++;
    }
    expect(&w, "ok");
    CHECK(ring.missed == lost && read + lost == 480000);
    tw_close(&region);
    stop(&w, 0);
}

static void a_dead_writer_is_noticed_and_its_successor_found(void) {
    tw_region region;
    tw_ring ring;
    tw_record record;
    tw_book book;
    uint64_t missed, generation;
    int round;
    writer w;
    test = "a_dead_writer_is_noticed_and_its_successor_found";
    w = start("10", "64");
    CHECK(tw_open(&region, folder) == TW_OK && region.pid == (uint64_t)w.pid);
    for (round = 0; round < 5; round++) {
        CHECK(tw_status(&region) == TW_RUNNING && tw_is_alive(&region) == 1 && tw_heartbeat_age(&region) < UINT64_C(10000000000));
        CHECK(tw_ring_open(&region, 0, TW_FROM_OLDEST, &ring) == TW_OK);
        generation = region.generation;
        order(&w, "fast 1000000");
        stop(&w, SIGKILL);
        CHECK(tw_is_alive(&region) == 0 && tw_status(&region) == TW_DEAD && tw_refresh(&region) == 0);
        /* What it left is whole, except the one book that it was writing. */
        {
            int error = tw_read_book(&region, 1, &book);
            if (error == TW_OK) check_book(&region, &book, 1);
            CHECK(error == TW_OK || error == TW_ERR_BUSY);
        }
        w = start(round % 2 == 0 ? "20" : "3", "64");
        CHECK(tw_refresh(&region) == 1 && region.generation > generation && region.book_levels == (round % 2 == 0 ? 20u : 3u));
        CHECK(tw_ring_next(&ring, &record, &missed) == TW_ERR_REPLACED);
        CHECK(tw_read_book(&region, 1, &book) == TW_OK && book.seq == 3);
        check_book(&region, &book, 1);
    }
    order(&w, "end");
    stop(&w, 0);
    CHECK(tw_status(&region) == TW_STOPPED && tw_is_alive(&region) == 0);
    tw_close(&region);
}

static void books_of_a_source_that_is_not_live_are_not_live(void) {
    static const uint64_t limits[] = {TW_BOOK_BUILDING, TW_BOOK_LIVE, TW_BOOK_STALE, TW_BOOK_STALE};
    tw_region region;
    tw_book book;
    uint64_t state;
    writer w;
    test = "books_of_a_source_that_is_not_live_are_not_live";
    w = start("10", "64");
    CHECK(tw_open(&region, folder) == TW_OK);
    for (state = 0; state < 4; state++) {
        char line[] = "state 0 0";
        line[8] = (char)('0' + state);
        order(&w, line);
        CHECK(tw_read_book(&region, 1, &book) == TW_OK && book.state == limits[state]);
        CHECK(tw_read_book(&region, 2, &book) == TW_OK && book.state == TW_BOOK_LIVE);
        equal_to_the_rust_reader(&region);
    }
    tw_close(&region);
    stop(&w, 0);
}

/* Writes a region file of `words` and says what opening it gives. */
static int open_words(const uint64_t *words, size_t count) {
    char path[600];
    tw_region region;
    FILE *out;
    int error;
    snprintf(path, sizeof path, "%s/region", folder);
    out = fopen(path, "wb");
    CHECK(out != NULL && fwrite(words, 8, count, out) == count && fclose(out) == 0);
    error = tw_open(&region, folder);
    tw_close(&region);
    return error;
}

/* A file that is cut raises SIGBUS where it is read: the reader is told that the writer is dead, and the process goes on. */
static void a_region_that_is_cut_is_a_dead_one_and_not_the_end_of_the_process(void) {
    char path[600];
    static tw_book book;
    tw_region region, untouched;
    uint32_t slot;
    int error;
    writer w;
    test = "a_region_that_is_cut_is_a_dead_one_and_not_the_end_of_the_process";
    w = start("10", "64");
    CHECK(tw_open(&region, folder) == TW_OK && tw_open(&untouched, folder) == TW_OK && tw_status(&region) == TW_RUNNING);
    snprintf(path, sizeof path, "%s/region", folder);
    CHECK(truncate(path, 4096) == 0);
    CHECK(tw_is_cut(&untouched) == 1 && tw_status(&untouched) == TW_DEAD && tw_is_alive(&untouched) == 0);
    for (slot = 0; slot < tw_books(&region); slot++) {
        error = tw_read_book(&region, slot, &book);
        CHECK(error != TW_OK || book.state != TW_BOOK_LIVE);
    }
    CHECK(tw_is_cut(&region) == 1 && tw_status(&region) == TW_DEAD && tw_is_alive(&region) == 0);
    tw_close(&region);
    tw_close(&untouched);
    stop(&w, SIGKILL);
}

/* Whose region it is decides before anything is read from it. Root alone can give a file away. */
static void a_region_of_another_user_is_read_by_who_says_so(void) {
    char path[600];
    tw_region region;
    writer w;
    test = "a_region_of_another_user_is_read_by_who_says_so";
    w = start("10", "64");
    snprintf(path, sizeof path, "%s/region", folder);
    if (geteuid() == 0) {
        CHECK(chown(path, 65534, 65534) == 0);
        CHECK(tw_open(&region, folder) == TW_ERR_OWNER && region.file == -1);
        CHECK(setenv("TICKWIRE_OWNER", "65534", 1) == 0 && tw_open(&region, folder) == TW_OK);
        tw_close(&region);
        CHECK(unsetenv("TICKWIRE_OWNER") == 0 && chown(path, 0, 0) == 0);
    } else {
        printf("SKIPPED: %s: root alone can give a file to another user\n", test);
    }
    /* And no link is followed. */
    CHECK(remove(path) == 0 && symlink("/dev/zero", path) == 0);
    CHECK(tw_open(&region, folder) == TW_ERR_SYSTEM && remove(path) == 0);
    stop(&w, SIGKILL);
}

static void what_is_no_region_is_refused(void) {
    char path[600];
    tw_region region;
    uint64_t *words, seed = 42;
    size_t count, at;
    int tries;
    FILE *in;
    writer w;
    test = "what_is_no_region_is_refused";
    w = start("10", "64");
    order(&w, "end");
    stop(&w, 0);
    snprintf(path, sizeof path, "%s/region", folder);
    in = fopen(path, "rb");
    CHECK(in != NULL && fseek(in, 0, SEEK_END) == 0);
    count = (size_t)ftell(in) / 8;
    words = (uint64_t *)malloc(count * 8);
    rewind(in);
    CHECK(words != NULL && fread(words, 8, count, in) == count && fclose(in) == 0);
    CHECK(open_words(words, count) == TW_OK);
    CHECK(open_words(words, count - 1) == TW_ERR_DAMAGED && open_words(words, 600) == TW_ERR_DAMAGED);
    CHECK(open_words(words, 100) == TW_ERR_NOT_TICKWIRE && open_words(words, 0) == TW_ERR_NOT_TICKWIRE);
    words[TW_WORD_HEADER_VERSION]++;
    CHECK(open_words(words, count) == TW_ERR_VERSION);
    words[TW_WORD_HEADER_VERSION]--;
    words[TW_WORD_HEADER_STATE] = TW_STARTING;
    CHECK(open_words(words, count) == TW_ERR_STARTING);
    words[TW_WORD_HEADER_STATE] = TW_STOPPED;
    /* Whatever the header's numbers: refused, or read within the mapping. */
    for (tries = 0; tries < 300; tries++) {
        uint64_t kept;
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        at = 2 + (size_t)(seed >> 33) % 30;
        kept = words[at];
        words[at] = seed >> (seed >> 58);
        if (open_words(words, count) == TW_OK) {
            FILE *out = tmpfile();
            CHECK(out != NULL && tw_open(&region, folder) == TW_OK);
            dump_sources(out, &region);
            dump_supers(out, &region);
            dump_rings(out, &region);
            tw_close(&region);
            fclose(out);
        }
        words[at] = kept;
    }
    words[0] = 0;
    CHECK(open_words(words, count) == TW_ERR_NOT_TICKWIRE);
    free(words);
    CHECK(unlink(path) == 0 && tw_open(&region, folder) == TW_ERR_NOT_RUNNING);
    tw_close(&region);
    for (tries = 0; tries >= TW_ERR_OWNER; tries--) CHECK(strcmp(tw_strerror(tries), "unknown error") != 0);
}

static void the_example_prints_a_book_and_follows_the_ring(void) {
    char *text;
    int status;
    writer w;
    test = "the_example_prints_a_book_and_follows_the_ring";
    w = start("10", "64");
    text = run(&status, "TICKWIRE_FOLDER='%s' '%s' AAPL bzx 24", folder, book_program);
    CHECK(status == 0 && strstr(text, "AAPL: live, message 3") != NULL && strstr(text, "over all feeds, locked") != NULL);
    CHECK(strstr(text, "300.013") != NULL && strstr(text, "23 top of instrument 7") != NULL);
    free(text);
    text = run(&status, "TICKWIRE_FOLDER='%s' '%s' NONE 2>&1", folder, book_program);
    CHECK(WEXITSTATUS(status) == 1 && strstr(text, "no such symbol") != NULL);
    free(text);
    stop(&w, 0);
}

/* ---- Against the feed handler itself ---- */

static const char *tickwire_program, *daemon_config, *capture;

static pid_t start_daemon(const char *speed) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(nowhere, 1);
        execl(tickwire_program, tickwire_program, "feed", "-c", daemon_config, "--folder", folder, "--replay", capture, "--speed", speed, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void sleep_ms(long ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Packets of a recording: pcap with 16 bytes before each. */
static uint64_t packets_of(const char *path) {
    unsigned char head[24];
    uint32_t length;
    uint64_t count = 0;
    FILE *in = fopen(path, "rb");
    CHECK(in != NULL && fread(head, 24, 1, in) == 1);
    while (fread(head, 16, 1, in) == 1) {
        memcpy(&length, head + 8, 4);
        CHECK(fseek(in, (long)length, SEEK_CUR) == 0);
        count++;
    }
    fclose(in);
    return count;
}

/* What holds of any book, whatever the market does. */
static void check_any_book(const tw_region *region, const tw_book *b) {
    uint64_t side, rank, qty;
    for (side = 0; side < 2; side++) {
        CHECK(b->shown[side] == (b->levels[side] < region->book_levels ? b->levels[side] : region->book_levels));
        for (rank = 0, qty = 0; rank < b->shown[side]; rank++) {
            const tw_level *level = &b->side[side][rank];
            CHECK(level->qty > 0 && level->orders > 0);
            CHECK(rank == 0 || (side == TW_BID ? level->price < level[-1].price : level->price > level[-1].price));
            qty += level->qty;
        }
        CHECK(qty <= b->qty[side] && (b->shown[side] < b->levels[side] || qty == b->qty[side]));
    }
    /* 0: another message of its packet followed, and the clock was read for that one alone. */
    CHECK(b->publish_ts == 0 || b->publish_ts >= b->recv_ts || b->writes <= 1);
}

/* Reads everything while it is written, until the recording is over; levels seen in all. */
static uint64_t read_along(const tw_region *region, uint64_t packets) {
    static tw_book book;
    static tw_super super;
    uint64_t levels = 0, live = 0, records = 0, missed, expected = 0, seen;
    tw_ring ring;
    tw_record record;
    tw_source source;
    uint32_t slot, number, turns;
    int error, batch;
    CHECK(tw_ring_open(region, 0, TW_FROM_OLDEST, &ring) == TW_OK);
    expected = ring.next;
    for (turns = 0; turns < 6000; turns++) {
        for (slot = 0; slot < tw_books(region); slot++) {
            error = tw_read_book(region, slot, &book);
            if (error == TW_ERR_BUSY || error == TW_ERR_NOT_FOUND) continue;
            CHECK(error == TW_OK);
            check_any_book(region, &book);
            levels += book.shown[0] + book.shown[1];
            live += book.state == TW_BOOK_LIVE;
        }
        for (slot = 0; slot < tw_supers(region); slot++) {
            error = tw_read_super(region, slot, &super);
            CHECK(error == TW_OK || error == TW_ERR_BUSY || error == TW_ERR_NOT_FOUND);
        }
        for (batch = 0; batch < 4096 && tw_ring_next(&ring, &record, &missed) == 1; batch++) {
            expected += missed;
            CHECK(record.index == expected++ && record.source < tw_sources(region));
            CHECK(record.what == TW_UPDATE || (record.as.event.kind >= TW_KIND_ADD && record.as.event.kind <= TW_KIND_END_OF_GROUP));
            records++;
        }
        for (number = 0, seen = 0; number < tw_sources(region); number++)
            if (tw_read_source(region, number, &source) == TW_OK) seen += source.packets;
        if (seen == packets) break;
        CHECK(seen < packets);
        sleep_ms(10);
    }
    CHECK(seen == packets && levels > 0 && records > 0);
    printf("live daemon: %" PRIu64 " levels of %" PRIu64 " live books and %" PRIu64 " records read while it wrote, %" PRIu64 " missed\n", levels, live,
           records, ring.missed);
    return levels;
}

/* All books of it, without times: the same after every play of a recording. */
static char *books_of(const tw_region *region) {
    FILE *out = tmpfile();
    static tw_book b;
    uint32_t slot, side, at;
    char *text;
    CHECK(out != NULL);
    for (slot = 0; slot < tw_books(region); slot++) {
        CHECK(tw_read_book(region, slot, &b) == TW_OK);
        fprintf(out, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b.symbol, b.source, b.volume, b.trades);
        for (side = 0; side < 2; side++)
            for (at = 0; at < b.shown[side]; at++) fprintf(out, "%" PRId64 " %" PRIu64 "\n", b.side[side][at].price, b.side[side][at].qty);
    }
    rewind(out);
    text = text_of(out);
    fclose(out);
    return text;
}

/* The last packet is counted before its books are written, and a silent channel becomes stale: as soon as both see the same. */
static void soon_equal_to_the_rust_reader(const tw_region *region) {
    int tries, status, equal = 0;
    for (tries = 0; tries < 50 && !equal; tries++) {
        FILE *out = tmpfile();
        char *ours, *theirs;
        CHECK(out != NULL);
        sleep_ms(100);
        dump(out, region);
        rewind(out);
        ours = text_of(out);
        fclose(out);
        theirs = run(&status, "'%s' dump '%s'", region_program, folder);
        CHECK(status == 0);
        equal = strcmp(ours, theirs) == 0;
        free(ours);
        free(theirs);
    }
    CHECK(equal);
}

static void wait_for_daemon(tw_region *region) {
    int tries;
    for (tries = 0; tries < 6000 && tw_open(region, folder) != TW_OK; tries++) sleep_ms(10);
    CHECK(region->words != NULL && tw_status(region) == TW_RUNNING);
}

static void a_running_feed_handler_is_read(void) {
    tw_region region;
    tw_book book;
    uint64_t packets = packets_of(capture), generation;
    char *first, *second;
    uint32_t slot;
    int tries, status;
    pid_t pid;
    test = "a_running_feed_handler_is_read";
    pid = start_daemon("1");
    wait_for_daemon(&region);
    CHECK(region.pid == (uint64_t)pid);
    read_along(&region, packets);
    soon_equal_to_the_rust_reader(&region);
    CHECK(tw_find(&region, "AAPL", "bzx", &slot) == TW_OK && tw_read_book(&region, slot, &book) == TW_OK && book.trades > 0);
    CHECK(tw_find_super(&region, "AAPL", &slot) == TW_OK);
    first = books_of(&region);
    generation = region.generation;
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK(tw_status(&region) == TW_DEAD && tw_refresh(&region) == 0);
    pid = start_daemon("max");
    for (tries = 0; tries < 6000 && tw_refresh(&region) != 1; tries++) sleep_ms(10);
    CHECK(region.pid == (uint64_t)pid && region.generation > generation);
    read_along(&region, packets);
    soon_equal_to_the_rust_reader(&region);
    second = books_of(&region);
    CHECK(strlen(first) > 100 && strcmp(first, second) == 0);
    free(first);
    free(second);
    kill(pid, SIGTERM);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 130);
    CHECK(tw_status(&region) == TW_STOPPED);
    tw_close(&region);
}

/* ---- How long a read takes ---- */

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void bench(const tw_region *region) {
    static double rounds[101];
    static tw_book book;
    static tw_super super;
    uint32_t slot, round, at, levels = 0;
    double start;
    for (slot = 0; slot < tw_books(region); slot++) {
        if (tw_read_book(region, slot, &book) != TW_OK) continue;
        levels = book.shown[0] + book.shown[1];
        for (round = 0; round < 101; round++) {
            start = nanoseconds();
            for (at = 0; at < 10000; at++) CHECK(tw_read_book(region, slot, &book) == TW_OK);
            rounds[round] = (nanoseconds() - start) / 10000;
        }
        qsort(rounds, 101, sizeof rounds[0], compare);
        printf("book %s of %" PRIu32 " levels: %.1f ns median, %.1f best, %.1f worst of 101 rounds of 10,000 reads\n", book.symbol, levels,
               rounds[50], rounds[0], rounds[100]);
    }
    for (slot = 0; slot < tw_supers(region); slot++) {
        if (tw_read_super(region, slot, &super) != TW_OK) continue;
        for (round = 0; round < 101; round++) {
            start = nanoseconds();
            for (at = 0; at < 10000; at++) CHECK(tw_read_super(region, slot, &super) == TW_OK);
            rounds[round] = (nanoseconds() - start) / 10000;
        }
        qsort(rounds, 101, sizeof rounds[0], compare);
        printf("consolidated book %s of %" PRIu32 " shares: %.1f ns median\n", super.symbol, super.shown[0] + super.shown[1], rounds[50]);
    }
}

static void run_all(void) {
    values_are_those_of_the_rust_reader("10");
    values_are_those_of_the_rust_reader("1");
    values_are_those_of_the_rust_reader("64");
    no_read_is_torn_under_a_fast_writer();
    a_slow_reader_learns_how_much_it_missed();
    every_record_is_read_whole_or_counted("64");
    every_record_is_read_whole_or_counted("2");
    a_dead_writer_is_noticed_and_its_successor_found();
    books_of_a_source_that_is_not_live_are_not_live();
    the_example_prints_a_book_and_follows_the_ring();
    a_region_that_is_cut_is_a_dead_one_and_not_the_end_of_the_process();
    a_region_of_another_user_is_read_by_who_says_so();
    what_is_no_region_is_refused();
    printf("13 tests of tickwire.h passed\n");
}

int main(int count, char **words) {
    const char *place = getenv("TMPDIR");
    char path[600];
    if (count == 3 && (strcmp(words[1], "dump") == 0 || strcmp(words[1], "bench") == 0)) {
        tw_region region;
        int error = tw_open(&region, words[2]);
        if (error != TW_OK) {
            fprintf(stderr, "reader: %s\n", tw_strerror(error));
            return 1;
        }
        if (words[1][0] == 'd') dump(stdout, &region);
        else bench(&region);
        tw_close(&region);
        return 0;
    }
    if (count != 3 && !(count == 6 && strcmp(words[1], "live") == 0)) {
        fprintf(stderr, "usage: reader REGION_PROGRAM BOOK_PROGRAM | reader live REGION_PROGRAM TICKWIRE_PROGRAM CONFIG CAPTURE\n"
                        "       reader dump FOLDER | reader bench FOLDER\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    snprintf(folder, sizeof folder, "%s/tickwire-c-XXXXXX", place != NULL ? place : P_tmpdir);
    CHECK(mkdtemp(folder) != NULL);
    if (count == 6) {
        region_program = words[2];
        tickwire_program = words[3];
        daemon_config = words[4];
        capture = words[5];
        a_running_feed_handler_is_read();
    } else {
        region_program = words[1];
        book_program = words[2];
        run_all();
    }
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    CHECK(system(path) == 0);
    return 0;
}
