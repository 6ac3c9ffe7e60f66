/* unit_record.c - see unit_record.h. */
#include "unit_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "pack_facts.h"
#include "platform/os.h"
#include "text/path.h"

#define MAGIC "tokmap-unit 1\n\0"
#define PAIRS 4096
#define RECORD_MOST ((uint64_t)16 << 20)
#define NAME "unit-"
#define MERGED "shard-"
#define DIGITS 6

struct head {
    char magic[16];
    uint64_t key, unit;
    uint64_t count, largest, low, high; /* of the histogram */
    uint64_t pairs;
    struct pack_result result;
};

char *unit_path(const char *folder, uint64_t unit, const char *ending)
{
    char name[64];
    (void)snprintf(name, sizeof name, NAME "%0*" PRIu64, DIGITS, unit);
    return path_join(folder, strlen(folder), name, strlen(name), ending);
}

char *unit_shard_path(const char *folder, uint64_t unit, const char *set_ending, uint64_t shard, const char *ending)
{
    char name[SET_ENDING_MOST + 128];
    (void)snprintf(name, sizeof name, NAME "%0*" PRIu64 ".work/" NAME "%0*" PRIu64 "%.*s-%05" PRIu64, DIGITS, unit,
                   DIGITS, unit, SET_ENDING_MOST, set_ending, shard);
    return path_join(folder, strlen(folder), name, strlen(name), ending);
}

char *merged_path(const char *folder, uint64_t number, const char *ending)
{
    char name[64];
    (void)snprintf(name, sizeof name, MERGED "%0*" PRIu64, DIGITS, number);
    return path_join(folder, strlen(folder), name, strlen(name), ending);
}

char *merged_shard_path(const char *folder, uint64_t number, const char *ending)
{
    char name[128];
    (void)snprintf(name, sizeof name, MERGED "%0*" PRIu64 ".work/" MERGED "%0*" PRIu64 "-00000", DIGITS, number, DIGITS,
                   number);
    return path_join(folder, strlen(folder), name, strlen(name), ending);
}

bool unit_is_name(const char *entry, bool *is_folder)
{
    static const char *const ends[] = {".work", ".partial", ".done", ".done.partial", ".skipped"};
    const bool is_merged = !strncmp(entry, MERGED, strlen(MERGED));
    if (!is_merged && strncmp(entry, NAME, strlen(NAME)) != 0)
        return false;
    const char *rest = entry + strlen(is_merged ? MERGED : NAME);
    if (strspn(rest, "0123456789") < DIGITS)
        return false;
    rest += strspn(rest, "0123456789");
    *is_folder = !strcmp(rest, ends[0]);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (!strcmp(rest, ends[i]))
            return true;
    return false;
}

uint64_t unit_record_layout(void)
{
    const uint64_t sizes[] = {7, sizeof(struct head), sizeof(struct pack_result), sizeof(struct corpus_counts),
                              sizeof(struct corpus_place)};
    return hash64(sizes, sizeof sizes);
}

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "the record of a unit", 0);
}

bool unit_record_key(const struct pack_options *options, uint64_t *key)
{
    struct pack_facts facts;
    struct hash_state *state = hash_state_new();
    const bool made = pack_facts_make(&facts, options, unit_record_layout()) && state;
    for (size_t i = 0; i < facts.count && made; i++) {
        hash_state_add(state, facts.list[i].name, strlen(facts.list[i].name) + 1);
        hash_state_add(state, facts.list[i].value, strlen(facts.list[i].value) + 1);
    }
    *key = made ? hash_state_64(state) : 0;
    hash_state_free(state);
    pack_facts_free(&facts);
    return made;
}

static enum tokmap_status record_make(struct bytes_buffer *text, const struct pack_options *options, uint64_t unit,
                                      const struct pack_result *result, const struct histogram *lengths,
                                      struct tokmap_error *error)
{
    uint64_t(*pairs)[2] = malloc(PAIRS * sizeof *pairs), cell = 0, hash;
    struct head *head = calloc(1, sizeof *head);
    bool good = pairs && head && unit_record_key(options, &head->key);
    if (good) {
        memcpy(head->magic, MAGIC, sizeof MAGIC);
        head->unit = unit;
        head->count = lengths->count;
        head->largest = lengths->largest;
        head->low = (uint64_t)lengths->sum;
        head->high = (uint64_t)(lengths->sum >> 64);
        head->result = *result;
        good = bytes_append(text, head, sizeof *head);
    }
    for (size_t used; good && (used = histogram_save(lengths, &cell, pairs, PAIRS));) {
        head->pairs += used;
        good = bytes_append(text, pairs, used * sizeof *pairs);
    }
    if (good) {
        memcpy(text->bytes, head, sizeof *head);
        hash = hash64(text->bytes, text->count);
        good = bytes_append(text, &hash, sizeof hash);
    }
    free(pairs);
    free(head);
    return good ? TOKMAP_OK : no_memory(error);
}

enum tokmap_status unit_record_write(const struct pack_options *options, const char *folder, uint64_t unit,
                                     const struct pack_result *result, const struct histogram *lengths, bool sync,
                                     struct tokmap_error *error)
{
    struct bytes_buffer text = {0};
    char *path = unit_path(folder, unit, ".done"), *partial = unit_path(folder, unit, ".done.partial");
    enum tokmap_status status =
        path && partial ? record_make(&text, options, unit, result, lengths, error) : no_memory(error);
    int fd = -1, system = 0;
    if (!status) {
        (void)os_unlink(partial);
        system = os_open(partial, OS_WRITE_NEW, &fd);
        if (!system)
            system = os_pwrite(fd, text.bytes, text.count, 0);
        if (!system && sync)
            system = os_sync(fd);
        if (fd >= 0)
            os_close(fd);
        if (!system)
            system = os_rename(partial, path);
        if (!system && sync)
            system = os_sync_folder(path);
        if (system) { /* the caller removes the shards of the unit, which no record may outlive */
            (void)os_unlink(path);
            (void)os_unlink(partial);
        }
    }
    if (system)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the end of a unit cannot be recorded");
    bytes_free(&text);
    free(path);
    free(partial);
    return status;
}

/* Whether a byte of a record can be read as a bool. */
static bool is_bool(const bool *value)
{
    uint8_t byte;
    memcpy(&byte, value, sizeof byte);
    return byte <= 1;
}

/* Whether a result whose hash is right can be that of a unit: what counts loops, and what is not a number. */
static bool result_is_good(const struct pack_result *result)
{
    bool good = is_bool(&result->has_mask) && is_bool(&result->kept) && is_bool(&result->dropped.by_minhash) &&
                is_bool(&result->dropped.read_twice);
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        good = good && result->sets[set].shards <= SET_SHARDS_MOST;
    return good;
}

/* Checks a record that was read, and takes it apart. Returns false if it is damaged. */
static bool record_take(const struct bytes_buffer *text, uint64_t key, uint64_t unit, struct pack_result *result,
                        struct histogram *lengths)
{
    struct histogram own = {0};
    struct head *head = malloc(sizeof *head);
    bool good = head && text->count >= sizeof *head + sizeof(uint64_t);
    if (good)
        memcpy(head, text->bytes, sizeof *head);
    const size_t end = text->count - sizeof(uint64_t);
    good = good && !memcmp(head->magic, MAGIC, sizeof MAGIC) && head->key == key && head->unit == unit &&
           head->pairs == (end - sizeof *head) / (2 * sizeof(uint64_t)) &&
           (end - sizeof *head) % (2 * sizeof(uint64_t)) == 0 &&
           hash64(text->bytes, end) == load64(text->bytes + end) && result_is_good(&head->result);
    if (good)
        *result = head->result;
    if (good && lengths) {
        good = histogram_new(&own);
        for (uint64_t i = 0; i < head->pairs && good; i++) {
            uint64_t pair[2];
            memcpy(pair, text->bytes + sizeof *head + i * sizeof pair, sizeof pair);
            good = histogram_load(&own, pair);
        }
        if (good) {
            own.count = head->count;
            own.largest = head->largest;
            own.sum = (unsigned __int128)head->high << 64 | head->low;
            histogram_merge(lengths, &own);
        }
        histogram_free(&own);
    }
    free(head);
    return good;
}

enum tokmap_status unit_record_read(const struct pack_options *options, const char *folder, uint64_t unit,
                                    struct pack_result *result, struct histogram *lengths, struct tokmap_error *error)
{
    struct bytes_buffer text = {0};
    struct os_stat found;
    char *path = unit_path(folder, unit, ".done");
    uint64_t key;
    int fd = -1;
    if (!path)
        return no_memory(error);
    enum tokmap_status status = TOKMAP_OK;
    int system = os_open(path, OS_READ_NOW, &fd);
    if (!system)
        system = os_fstat(fd, &found);
    if (system)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the record of a unit cannot be read");
    else if (found.kind == OS_KIND_FILE && found.bytes <= RECORD_MOST && !bytes_reserve(&text, (size_t)found.bytes + 1))
        status = no_memory(error);
    else if (found.kind == OS_KIND_FILE && found.bytes <= RECORD_MOST)
        system = os_pread(fd, text.bytes, (size_t)found.bytes, 0, &text.count);
    if (!status && system)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the record of a unit cannot be read");
    if (!status && !unit_record_key(options, &key))
        status = no_memory(error);
    if (!status && !record_take(&text, key, unit, result, lengths))
        status = error_set(error, TOKMAP_ERROR_CORRUPT, path, TOKMAP_NO_OFFSET,
                           "the record of this unit is damaged, or of work with other options; remove it, and run its "
                           "task again");
    if (fd >= 0)
        os_close(fd);
    bytes_free(&text);
    free(path);
    return status;
}
