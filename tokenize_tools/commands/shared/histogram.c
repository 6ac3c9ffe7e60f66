/* histogram.c - see histogram.h. */
#include "histogram.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

#define EXACT 65536u
#define EXACT_BITS 16
#define CELL_BITS 9
#define CELLS (EXACT + ((64 - EXACT_BITS) << CELL_BITS))

/* The documents of a synthetic dataset that are counted. It has very many, all of the same distribution. */
#define SYNTHETIC_DOCUMENTS ((uint64_t)1 << 20)

static size_t cell_of(uint64_t number)
{
    if (number < EXACT)
        return (size_t)number;
    const unsigned power = 63u - (unsigned)__builtin_clzll(number);
    const uint64_t part = (number >> (power - CELL_BITS)) & ((1u << CELL_BITS) - 1);
    return EXACT + ((size_t)(power - EXACT_BITS) << CELL_BITS) + (size_t)part;
}

/* Returns the largest number that a cell covers. */
static uint64_t cell_top(size_t cell)
{
    if (cell < EXACT)
        return cell;
    const unsigned power = EXACT_BITS + (unsigned)((cell - EXACT) >> CELL_BITS);
    const uint64_t part = (cell - EXACT) & ((1u << CELL_BITS) - 1);
    return ((uint64_t)1 << power) + ((part + 1) << (power - CELL_BITS)) - 1;
}

bool histogram_new(struct histogram *histogram)
{
    memset(histogram, 0, sizeof *histogram);
    histogram->cells = calloc(CELLS, sizeof *histogram->cells);
    return histogram->cells != NULL;
}

void histogram_free(struct histogram *histogram)
{
    free(histogram->cells);
    memset(histogram, 0, sizeof *histogram);
}

void histogram_add(struct histogram *histogram, uint64_t number, uint64_t times)
{
    if (!times)
        return;
    histogram->cells[cell_of(number)] += times;
    histogram->count += times;
    histogram->sum += (unsigned __int128)number * times;
    histogram->largest = max64(histogram->largest, number);
}

uint64_t histogram_percentile(const struct histogram *histogram, uint64_t per_thousand)
{
    const uint64_t wanted =
        max64(1, histogram->count - mul_div(histogram->count, 1000 - min64(per_thousand, 1000), 1000));
    uint64_t seen = 0;
    for (size_t cell = 0; cell < CELLS; cell++) {
        seen += histogram->cells[cell];
        if (seen >= wanted)
            return min64(cell_top(cell), histogram->largest);
    }
    return histogram->largest;
}

void lengths_of(const struct histogram *histogram, struct lengths *lengths)
{
    *lengths = (struct lengths){.documents = histogram->count, .largest = histogram->largest};
    if (!histogram->count)
        return;
    lengths->p50 = histogram_percentile(histogram, 500);
    lengths->p90 = histogram_percentile(histogram, 900);
    lengths->p99 = histogram_percentile(histogram, 990);
    lengths->mean = (double)histogram->sum / (double)histogram->count;
}

enum tokmap_status dataset_lengths(const struct tokmap_dataset *dataset, bool quiet, struct lengths *lengths,
                                   struct tokmap_error *error)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct histogram histogram;
    struct cli_progress progress;
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status)
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "%s", tokmap_status_text(status));
    if (!histogram_new(&histogram))
        return error_set_memory(error, "the lengths of documents", CELLS * sizeof *histogram.cells);
    const uint64_t documents = info.shards ? info.documents : min64(info.documents, SYNTHETIC_DOCUMENTS);
    cli_progress_start(&progress, "measuring documents", documents, quiet);
    progress.unit = "documents";
    for (uint64_t number = 0; number < documents && !status; number++) {
        struct tokmap_document document;
        status = tokmap_dataset_document(dataset, number, &document, error);
        if (!status)
            histogram_add(&histogram, document.tokens, 1);
        if (number % 65536 == 0)
            cli_progress_update(&progress, number);
    }
    cli_progress_end(&progress);
    lengths_of(&histogram, lengths);
    histogram_free(&histogram);
    return status;
}

const char *lengths_text(const struct lengths *lengths, char text[LENGTHS_TEXT])
{
    char a[32], b[32], c[32], d[32];
    if (!lengths->documents)
        return memcpy(text, "none", sizeof "none");
    (void)snprintf(text, LENGTHS_TEXT, "p50 %s, p90 %s, p99 %s, max %s, mean %.1f", cli_count(lengths->p50, a),
                   cli_count(lengths->p90, b), cli_count(lengths->p99, c), cli_count(lengths->largest, d),
                   lengths->mean);
    return text;
}

void lengths_json(const struct lengths *lengths, struct cli_json *json)
{
    if (!lengths->documents) {
        cli_json_null(json, "document_tokens");
        return;
    }
    cli_json_object(json, "document_tokens");
    cli_json_number(json, "p50", lengths->p50);
    cli_json_number(json, "p90", lengths->p90);
    cli_json_number(json, "p99", lengths->p99);
    cli_json_number(json, "max", lengths->largest);
    cli_json_real(json, "mean", lengths->mean);
    cli_json_end(json);
}

const char *bytes_a_token_text(uint64_t text_bytes, uint64_t tokens, char text[64])
{
    if (tokens)
        (void)snprintf(text, 64, "%.2f bytes of text", (double)text_bytes / (double)tokens);
    else
        (void)snprintf(text, 64, "unknown");
    return text;
}
