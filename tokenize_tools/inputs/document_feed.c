/* document_feed.c - see document_feed.h. */
#include "document_feed.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "record_scan.h"

#define SIZE_BYTES 4

void document_feed_begin(struct document_feed *feed, uint32_t feeder)
{
    *feed = (struct document_feed){.feeder = feeder};
}

uint8_t *document_feed_head(struct document_feed *feed, size_t *bytes)
{
    assert(feed->feeder && !feed->over);
    if (feed->left)
        return NULL;
    *bytes = (feed->head_bytes < SIZE_BYTES ? SIZE_BYTES : sizeof feed->head) - feed->head_bytes;
    return feed->head + feed->head_bytes;
}

enum tokmap_status document_feed_take(struct document_feed *feed, const char *bytes_of_frame, size_t bytes,
                                      const char *path, uint64_t offset, struct tokmap_error *error)
{
    if (bytes_of_frame) {
        assert(bytes <= feed->left);
        feed->left -= bytes;
        feed->lines += record_scan_lines(bytes_of_frame, bytes);
        return TOKMAP_OK;
    }
    feed->head_bytes += bytes;
    if (feed->head_bytes == SIZE_BYTES) {
        feed->left = load32(feed->head);
        feed->head_bytes = feed->left ? 0 : SIZE_BYTES;
    }
    if (feed->head_bytes < sizeof feed->head)
        return TOKMAP_OK;
    feed->over = true;
    const uint64_t written = load64(feed->head + SIZE_BYTES);
    if (written == feed->lines)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_CORRUPT, path, offset,
                     "%" PRIu64 " lines of documents came, but the program that writes them has written %" PRIu64
                     ", so the output would not be what it wrote, and is given up; another process probably writes to "
                     "this pipe, or reads from it",
                     feed->lines, written);
}

bool document_feed_is_left(const struct document_feed *feed)
{
    /* A parent in another namespace of processes has the number 0 here, gone or not. */
    const uint32_t parent = os_parent_id();
    return parent && parent != feed->feeder;
}

enum tokmap_status document_feed_cut_off(const struct document_feed *feed, const char *path, uint64_t offset,
                                         struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, path, offset,
                     "the program that writes the documents ended before it had written all of them, after %" PRIu64
                     ": it was probably killed; the output is given up, so that it does not lack the others: run the "
                     "program again",
                     feed->lines);
}
