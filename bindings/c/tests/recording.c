/* Reads a recording as rows of mbo: recording CAPTURE ROWS SUM, which the program's own export counted: of rows, and of the column
 * order_id modulo 2^64. Then what is wrong has to be said. */
#include "tickwire_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(what)                                                                                                                     \
    do {                                                                                                                               \
        if (!(what)) {                                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                                 \
            exit(1);                                                                                                                   \
        }                                                                                                                              \
    } while (0)

/* The place of a column. */
static int64_t column(struct ArrowArrayStream *rows, const char *name, const char *format)
{
    struct ArrowSchema schema;
    int64_t at, found = -1;
    MUST(rows->get_schema(rows, &schema) == 0);
    MUST(strcmp(schema.format, "+s") == 0);
    for (at = 0; at < schema.n_children; at++) {
        if (strcmp(schema.children[at]->name, name) == 0) {
            found = at;
            MUST(strcmp(schema.children[at]->format, format) == 0);
        }
    }
    schema.release(&schema);
    MUST(found >= 0);
    return found;
}

int main(int count, char **words)
{
    struct ArrowArrayStream rows;
    struct ArrowArray batch;
    struct tw_recording_options options;
    const char *files[1];
    char error[200];
    uint64_t number = 0, sum = 0;
    int64_t at, orders, prices;

    MUST(count == 4);
    files[0] = words[1];
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.batch_rows = 1000;
    options.prices_as_integers = 1;
    MUST(tw_recording_open(files, 1, "mbo", &options, &rows, error, sizeof error) == TW_RECORDING_OK);
    orders = column(&rows, "order_id", "L");
    prices = column(&rows, "price", "l");
    for (;;) {
        MUST(rows.get_next(&rows, &batch) == 0);
        if (batch.release == NULL)
            break;
        MUST(batch.length > 0 && batch.length <= 1000);
        MUST(batch.children[prices]->length == batch.length);
        for (at = 0; at < batch.length; at++)
            sum += ((const uint64_t *)batch.children[orders]->buffers[1])[batch.children[orders]->offset + at];
        number += (uint64_t)batch.length;
        batch.release(&batch);
    }
    rows.release(&rows);
    printf("%llu rows, order numbers add up to %llu\n", (unsigned long long)number, (unsigned long long)sum);
    MUST(number == strtoull(words[2], NULL, 10) && sum == strtoull(words[3], NULL, 10));

    /* Left early. */
    MUST(tw_recording_open(files, 1, "mbp-10", NULL, &rows, error, sizeof error) == TW_RECORDING_OK);
    column(&rows, "bid_px_00", "d:18,9");
    MUST(rows.get_next(&rows, &batch) == 0 && batch.release != NULL);
    batch.release(&batch);
    rows.release(&rows);

    /* What is wrong. */
    MUST(tw_recording_open(files, 1, "mbp-11", NULL, &rows, error, sizeof error) == TW_RECORDING_USAGE);
    MUST(strstr(error, "mbp-10") != NULL);
    files[0] = "nowhere.pcap";
    MUST(tw_recording_open(files, 1, "mbo", NULL, &rows, error, sizeof error) == TW_RECORDING_SYSTEM);
    MUST(strstr(error, "nowhere.pcap") != NULL);
    MUST(tw_recording_open(files, 1, "mbo", NULL, &rows, NULL, 0) == TW_RECORDING_SYSTEM);
    /* A text is no recording: the stream says so. */
    files[0] = __FILE__;
    MUST(tw_recording_open(files, 1, "mbo", NULL, &rows, error, sizeof error) == TW_RECORDING_OK);
    MUST(rows.get_next(&rows, &batch) != 0);
    MUST(strstr(rows.get_last_error(&rows), "recording.c") != NULL);
    rows.release(&rows);
    return 0;
}
