/* pack_seal.c - see pack_seal.h. */
#include "pack_seal.h"

#include <string.h>

#include "cli/messages.h"
#include "common/bytes.h"
#include "format/sealed.h"
#include "format/shard_seal.h"
#include "platform/process.h"
#include "text/decimal.h"

#define SEAL_THREADS_MOST 16 /* so that their memory stays below 150 MiB */

int pack_seal_check(const struct cli_command *command, struct pack_seal *sealed)
{
    uint64_t level = SEAL_LEVEL;
    if (!sealed->given)
        return 0;
    if (*sealed->text &&
        (!decimal_parse(sealed->text, strlen(sealed->text), &level) || !level || level > SEAL_LEVEL_MOST))
        return cli_misused(command, "--seal=LEVEL must be a level of zstd, 1 to %d; got '%s'", SEAL_LEVEL_MOST,
                           sealed->text);
    sealed->seal.level = (int)level;
    struct tokmap_error error = {0};
    return sealed_load(NULL, &error) ? cli_failed(command->program, &error) : 0;
}

static int sealed_report(void *user, uint64_t done, uint64_t total)
{
    struct pack_seal *sealed = user;
    if (sealed->alone && !sealed->begun) {
        cli_progress_end(sealed->progress);
        cli_progress_start(sealed->progress, "sealing", total, sealed->shown);
        sealed->begun = true;
    }
    if (sealed->alone)
        cli_progress_update(sealed->progress, done);
    return os_signal_caught() != 0;
}

const struct shard_writer_seal *pack_seal_start(struct pack_seal *sealed, uint64_t threads, bool alone,
                                                struct cli_progress *progress, int shown)
{
    if (!sealed->given)
        return NULL;
    sealed->seal.threads = (uint32_t)min64(threads, SEAL_THREADS_MOST);
    sealed->seal.progress = sealed_report;
    sealed->seal.user = sealed;
    sealed->alone = alone;
    sealed->progress = progress;
    sealed->shown = shown;
    return &sealed->seal;
}
