/*
 * Recordings of market data as streams of Arrow, for C and C++, without a feed handler.
 *
 * Link with libtickwire_recording (cargo build --release -p tickwire-capi: .so and .a). What is handed over is the Arrow C stream
 * interface, so DuckDB, Arrow C++, nanoarrow and Polars take it as it is. No other function is needed, and no header of Arrow.
 *
 *     const char *files[] = {"day.pcap"};
 *     struct ArrowArrayStream rows;
 *     char error[256];
 *     if (tw_recording_open(files, 1, "mbo", NULL, &rows, error, sizeof error) != 0) { puts(error); return 1; }
 *     struct ArrowArray batch;
 *     while (rows.get_next(&rows, &batch) == 0 && batch.release != NULL) { use(&batch); batch.release(&batch); }
 *     rows.release(&rows);
 *
 * Files: captures (pcap, pcapng), ITCH 5.0 files, DBN files of mbo, LOBSTER message files, archives of events; gzip and zstd too.
 * They are decoded in a thread of the library's, which waits when two batches wait to be taken: memory stays flat. When get_next
 * answers something else than 0, get_last_error says the file, the place and what to do; the batches before it are good.
 */
#ifndef TICKWIRE_RECORDING_H
#define TICKWIRE_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The Arrow C data and stream interfaces, as their specification words them, where no other header has them. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif /* ARROW_C_STREAM_INTERFACE */

/* What of a recording is wanted. Set all of it to 0 first, then size. */
struct tw_recording_options {
    size_t size;                 /* sizeof(struct tw_recording_options) */
    const char *const *symbols;  /* only these; NULL: all */
    size_t symbols_len;
    uint64_t start_ns;           /* only what was received from then on, nanoseconds since the epoch */
    uint64_t end_ns;             /* and before then; 0: to the end */
    const char *date;            /* the day, in the venue's time zone, of files whose times have none: "2026-01-05" */
    const char *config;          /* feeds by group and port (TOML); NULL: they are found out */
    const char *protocol;        /* what the payloads are, where they would not be recognised */
    size_t batch_rows;           /* rows of a batch; 0: 32,768 */
    int prices_as_integers;      /* not 0: int64 in 1e-9 in the place of decimal128(18, 9) */
    int keep_damaged;            /* not 0: a damaged file ends where the damage is, without an error */
};

enum {
    TW_RECORDING_OK = 0,
    TW_RECORDING_FAILED = 1,
    TW_RECORDING_USAGE = 2,      /* an argument is wrong */
    TW_RECORDING_SYSTEM = 3      /* a file cannot be read */
};

/*
 * Opens files that make one recording, as rows of a schema: mbo, mbp-1, mbp-10, trades, bbo-1s, ohlcv-1s, ohlcv-1m, definition,
 * status, imbalance, statistics, cmbp-1. 0, and `out` is a stream that you release; or one of the numbers above, `out` is as it was,
 * and `error` (error_len bytes; may be NULL) has a sentence. `options` may be NULL. Any thread; a stream is used by one at a time.
 */
int tw_recording_open(const char *const *files, size_t files_len, const char *schema, const struct tw_recording_options *options,
                      struct ArrowArrayStream *out, char *error, size_t error_len);

#ifdef __cplusplus
}
#endif

#endif /* TICKWIRE_RECORDING_H */
