/* SPDX-License-Identifier: MIT */
#include "remote_version.h"

#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "platform/os.h"

#define CLOCKS_APART 60 /* seconds; the clock of a server that does not say its time may be so much behind */

static bool date_is_strong(const struct http_answer *answer)
{
    const uint64_t now = answer->date ? answer->date : os_wall_seconds() - CLOCKS_APART;
    return answer->changed && answer->changed < now;
}

void remote_version_take(struct remote_version *version, const struct http_answer *answer)
{
    *version->tag = *version->modified = '\0';
    if (*answer->tag == '"')
        memcpy(version->tag, answer->tag, sizeof version->tag);
    else if (date_is_strong(answer))
        memcpy(version->modified, answer->modified, sizeof version->modified);
}

bool remote_version_is(const struct remote_version *version, const struct http_answer *answer)
{
    return *version->tag ? !strcmp(version->tag, answer->tag) : !strcmp(version->modified, answer->modified);
}

uint64_t remote_version_number(const struct remote_version *version)
{
    const char *text = *version->tag ? version->tag : version->modified;
    return *text ? hash64(text, strlen(text)) | 1 : 0;
}

void remote_version_condition(const struct remote_version *version, char line[REMOTE_CONDITION_MOST])
{
    (void)snprintf(line, REMOTE_CONDITION_MOST, *version->tag ? "if-match: %s" : "if-unmodified-since: %s",
                   *version->tag ? version->tag : version->modified);
}
