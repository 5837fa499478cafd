/* Prints the book of a symbol, its consolidated book, and then the events of the ring as they come.
 *
 *     cc -std=c11 -O2 -I bindings/c bindings/c/examples/book.c -o book
 *     ./book AAPL                    the first source that has it
 *     ./book AAPL bzx 20             the feed or source `bzx`, and 20 records of the ring
 *     TICKWIRE_FOLDER=... ./book ... another folder than the usual one
 */
#include "tickwire.h"

#include <inttypes.h>

static const char *const STATES[] = {"building", "live", "stale"};

/* A price with all its decimals: 1e-9 units. */
static void print_price(int64_t raw) {
    uint64_t size = raw < 0 ? 0 - (uint64_t)raw : (uint64_t)raw;
    char text[32];
    int length = snprintf(text, sizeof text, "%s%" PRIu64 ".%09" PRIu64, raw < 0 ? "-" : "", size / 1000000000u, size % 1000000000u);
    /* Two decimals at least, no zeros behind them. */
    while (length > 3 && text[length - 1] == '0' && text[length - 3] != '.') text[--length] = 0;
    printf("%14s", text);
}

static void print_level(const tw_book *book, int side, uint32_t rank) {
    if (rank < book->shown[side]) {
        const tw_level *level = &book->side[side][rank];
        printf("%10" PRIu64 " %5" PRIu64 " ", level->qty, level->orders);
        print_price(level->price);
    } else {
        printf("%31s", "");
    }
}

static void print_book(const tw_book *book) {
    uint32_t rank;
    printf("%s: %s, message %" PRIu64 ", volume %" PRIu64 " in %" PRIu64 " trades\n", book->symbol, STATES[book->state], book->seq,
           book->volume, book->trades);
    printf("%10s %5s %14s   %10s %5s %14s\n", "bid qty", "ord", "price", "ask qty", "ord", "price");
    for (rank = 0; rank < book->shown[TW_BID] || rank < book->shown[TW_ASK]; rank++) {
        print_level(book, TW_BID, rank);
        printf("  ");
        print_level(book, TW_ASK, rank);
        printf("\n");
    }
}

static void print_super(const tw_super *super) {
    static const char *const touches[] = {"", ", locked", ", crossed"};
    printf("over all feeds%s:", super->touch <= 2 ? touches[super->touch] : "");
    print_price(super->price[TW_BID]);
    printf(" x %" PRIu64 " /", super->qty[TW_BID]);
    print_price(super->price[TW_ASK]);
    printf(" x %" PRIu64 "\n", super->qty[TW_ASK]);
}

/* Follows a ring for so many records, or until the feed handler ends. */
static int follow(const tw_region *region, uint32_t number, uint64_t count) {
    tw_ring ring;
    tw_record record;
    uint64_t missed;
    int error = tw_ring_open(region, number, TW_FROM_OLDEST, &ring);
    while (error >= 0 && count > 0) {
        error = tw_ring_next(&ring, &record, &missed);
        if (missed > 0) printf("missed %" PRIu64 "\n", missed);
        if (error == 0) {
            struct timespec pause = {0, 1000000};
            if (tw_status(region) != TW_RUNNING) break;
            nanosleep(&pause, NULL);
        } else if (error == 1) {
            count--;
            if (record.what == TW_EVENT) {
                const tw_event *event = &record.as.event;
                printf("%" PRIu64 " event kind %u instrument %" PRIu32, record.index, (unsigned)event->kind, event->instrument);
                print_price(event->price);
                printf(" x %" PRIu64 "\n", event->qty);
            } else {
                const tw_update *update = &record.as.update;
                printf("%" PRIu64 " top of instrument %" PRIu32, record.index, update->instrument);
                print_price(update->price[TW_BID]);
                print_price(update->price[TW_ASK]);
                printf("\n");
            }
        }
    }
    return error < 0 ? error : TW_OK;
}

int main(int count, char **words) {
    tw_region region;
    tw_source source;
    tw_book book;
    tw_super super;
    uint32_t slot;
    int error;
    if (count < 2) {
        fprintf(stderr, "usage: book SYMBOL [SOURCE [RECORDS]]\n");
        return 2;
    }
    error = tw_open(&region, NULL);
    if (error == TW_OK) error = tw_find(&region, words[1], count > 2 ? words[2] : NULL, &slot);
    if (error == TW_OK) error = tw_read_book(&region, slot, &book);
    if (error == TW_OK) print_book(&book);
    if (error == TW_OK && tw_find_super(&region, words[1], &slot) == TW_OK) {
        error = tw_read_super(&region, slot, &super);
        if (error == TW_OK) print_super(&super);
    }
    if (error == TW_OK && count > 3) {
        error = tw_read_source(&region, (uint32_t)book.source, &source);
        if (error == TW_OK && source.ring != TW_NONE) error = follow(&region, (uint32_t)source.ring, strtoull(words[3], NULL, 10));
    }
    if (error != TW_OK) fprintf(stderr, "book: %s\n", tw_strerror(error));
    tw_close(&region);
    return error == TW_OK ? 0 : 1;
}
