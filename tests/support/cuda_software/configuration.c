/* SPDX-License-Identifier: MIT */
/* configuration.c - TOKMAP_CUDA_SOFTWARE, injected faults, pseudo-random numbers. See cuda_software.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "software.h"

static const struct configuration defaults = {.devices = 1,
                                              .memory = (uint64_t)8 << 30,
                                              .pinned = UINT64_MAX,
                                              .version = 12040,
                                              .capability = 90,
                                              .numa = 0,
                                              .registers = 48};
struct configuration configuration = {.devices = 1,
                                      .memory = (uint64_t)8 << 30,
                                      .pinned = UINT64_MAX,
                                      .version = 12040,
                                      .capability = 90,
                                      .numa = 0,
                                      .registers = 48};
static uint64_t calls_since[2][CUDA_ENTRY_COUNT]; /* the configuration was read; [1]: calls that could fail late */

const char *const entry_names[CUDA_ENTRY_COUNT] = {
#define CUDA_ENTRY_NAME(name, symbol, arguments) #name,
    CUDA_ENTRIES(CUDA_ENTRY_NAME)
#undef CUDA_ENTRY_NAME
};

uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

CUresult fault_of(enum cuda_entry entry, bool late)
{
    uint64_t call = ++calls_since[late][entry];
    for (unsigned i = 0; i < configuration.fault_count; i++) {
        const struct fault *fault = &configuration.faults[i];
        if (fault->entry == entry && fault->late == late &&
            (fault->call == call || (fault->onwards && fault->call < call)))
            return fault->code;
    }
    return CUDA_SUCCESS;
}

static bool find_entry(const char *name, size_t length, enum cuda_entry *entry)
{
    for (unsigned i = 0; i < CUDA_ENTRY_COUNT; i++) {
        if (strlen(entry_names[i]) == length && !strncmp(entry_names[i], name, length)) {
            *entry = (enum cuda_entry)i;
            return true;
        }
    }
    return false;
}

/* NAME:N[+][:CODE] */
static bool read_fault(struct configuration *into, const char *text, size_t length, bool late)
{
    const char *colon = memchr(text, ':', length);
    char *end;
    struct fault fault = {.late = late, .code = late ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_UNKNOWN};
    if (!colon || into->fault_count == FAULTS_MOST || !find_entry(text, (size_t)(colon - text), &fault.entry))
        return false;
    fault.call = strtoull(colon + 1, &end, 10);
    fault.onwards = *end == '+';
    end += fault.onwards;
    if (*end == ':')
        fault.code = (CUresult)strtol(end + 1, &end, 10);
    into->faults[into->fault_count++] = fault;
    return end == text + length && fault.call;
}

static bool read_number(const char *value, size_t length, uint64_t *number)
{
    char *end;
    *number = strtoull(value, &end, 10);
    return length && end == value + length;
}

static bool read_word(struct configuration *into, const char *word, size_t length)
{
    const char *equals = memchr(word, '=', length);
    size_t name = equals ? (size_t)(equals - word) : length, rest = equals ? length - name - 1 : 0;
    const char *value = equals ? equals + 1 : NULL;
    uint64_t number = 0;
    enum cuda_entry entry;
#define IS(text) (name == strlen(text) && !strncmp(word, text, name))
    if (!equals) {
        into->stub |= IS("stub");
        into->lenient |= IS("lenient");
        into->quiet |= IS("quiet");
        into->lazy |= IS("lazy");
        into->reuse |= IS("reuse");
        into->pageable |= IS("pageable") || IS("host_tables");
        into->host_tables |= IS("host_tables");
        return IS("stub") || IS("lenient") || IS("quiet") || IS("lazy") || IS("reuse") || IS("pageable") ||
               IS("host_tables") || !length;
    }
    if (IS("fail") || IS("late"))
        return read_fault(into, value, rest, IS("late"));
    if (IS("report") && rest && rest < sizeof into->report) {
        memcpy(into->report, value, rest);
        into->report[rest] = '\0';
        return true;
    }
    if (IS("missing"))
        return find_entry(value, rest, &entry) && (into->missing[entry] = true);
    if (IS("numa") && rest == 2 && !strncmp(value, "-1", 2)) {
        into->numa = -1;
        return true;
    }
    if (!read_number(value, rest, &number))
        return false;
    if (IS("delay"))
        into->delay_us = number;
    else if (IS("seed"))
        into->seed = number;
    else if (IS("devices") && number <= DEVICES_MOST)
        into->devices = (int)number;
    else if (IS("memory"))
        into->memory = number;
    else if (IS("pinned"))
        into->pinned = number;
    else if (IS("version"))
        into->version = (int)number;
    else if (IS("capability"))
        into->capability = (int)number;
    else if (IS("registers") && number && number <= 255)
        into->registers = (unsigned)number;
    else if (IS("numa"))
        into->numa = (int)number;
    else
        return false;
    return true;
#undef IS
}

int cuda_software_configure(const char *text)
{
    struct configuration read = defaults;
    bool fine = true;
    for (const char *word = text; word && *word;) {
        size_t length = strcspn(word, ",");
        fine &= read_word(&read, word, length);
        word += length + (word[length] == ',');
    }
    pthread_mutex_lock(&big);
    configuration = read;
    memset(calls_since, 0, sizeof calls_since);
    pthread_mutex_unlock(&big);
    return fine;
}

__attribute__((constructor)) static void configure_from_environment(void)
{
    const char *text = getenv("TOKMAP_CUDA_SOFTWARE");
    if (!cuda_software_configure(text))
        (void)fprintf(stderr, "TOKMAP_CUDA_SOFTWARE=%s is not valid; cuda_software.h lists the words\n", text);
}
