/*
 * output_names.c - see output_names.h.
 *
 * Example: the files of one shard web with --also megatron are web.tmx, web.bin.partial, web.bin.0123456789abcdef
 * (format/shard_commit.h), web.idx, and web.work/journal, but neither web.npy nor website.bin. Those of a set web are
 * web-00003.tmx, web-00003.idx, and so on, but not web.idx, which may be an input. With the sets train and val, they
 * are web.train-00003.tmx and so on.
 */
#include "output_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

static bool is_same_folder(const char *a, const char *b)
{
    struct os_stat of_a, of_b;
    return !os_stat(a, &of_a) && !os_stat(b, &of_b) && of_a.device == of_b.device && of_a.inode == of_b.inode;
}

/* Whether a text is one of some endings, and then nothing, or what a file has at its end that does not have its name
 * yet, or any more. */
static bool is_one_of(const char *text, const char *const *endings, size_t count)
{
    enum { ID_DIGITS = 16 };
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = strlen(endings[i]);
        const char *rest = text + bytes;
        if (strncmp(text, endings[i], bytes) != 0)
            continue;
        if (!*rest || !strcmp(rest, ".partial") ||
            (*rest == '.' && strlen(rest) == 1 + ID_DIGITS && strspn(rest + 1, "0123456789abcdef") == ID_DIGITS))
            return true;
    }
    return false;
}

/* What follows the name of the output in the name of a file; NULL: it begins otherwise. */
static const char *rest_of(const char *output, const char *path)
{
    const char *name = path_name(output), *leaf = path_name(path);
    const size_t bytes = strlen(name);
    return strncmp(leaf, name, bytes) ? NULL : leaf + bytes;
}

/* What follows the name of a shard of a set; NULL: another name. */
static const char *ending_of(const struct output_names *names, uint32_t set, const char *rest)
{
    enum { DIGITS = 5 };
    const char *of = names->split ? names->split->sets[set].name : "";
    const size_t bytes = strlen(of);
    if (names->split && (*rest != '.' || strncmp(rest + 1, of, bytes) != 0))
        return NULL;
    rest += names->split ? 1 + bytes : 0;
    if (!names->split && !names->numbered)
        return rest;
    return *rest == '-' && strspn(rest + 1, "0123456789") == DIGITS ? rest + 1 + DIGITS : NULL;
}

static bool is_beside(const char *output, const char *path)
{
    char *of_path = path_folder(path), *of_output = path_folder(output);
    const bool is = of_path && of_output && is_same_folder(of_path, of_output);
    free(of_path);
    free(of_output);
    return is;
}

/* Whether a path is the name of a shard and one of some endings. */
static bool is_of_shard(const struct output_names *names, const char *path, const char *const *endings, size_t count)
{
    const char *rest = rest_of(names->name, path);
    bool is = false;
    for (uint32_t set = 0; rest && !is && set < (names->split ? names->split->count : 1); set++) {
        const char *ending = ending_of(names, set, rest);
        is = ending && is_one_of(ending, endings, count);
    }
    return is && is_beside(names->name, path);
}

/* Whether a path is in the folder OUTPUT.work, to whatever name it leads. */
static bool is_work(const char *output, const char *path)
{
    static const char end[] = ".work";
    char *folder = path_name(path) != path ? path_folder(path) : NULL;
    char *work = folder ? path_join("", 0, output, strlen(output), end) : NULL;
    const bool is = work && !strcmp(folder + max64(strlen(folder), sizeof end - 1) - (sizeof end - 1), end) &&
                    is_same_folder(folder, work);
    free(folder);
    free(work);
    return is;
}

bool output_names_also(const struct output_names *names, const char *path)
{
    return names->also && is_of_shard(names, path, names->also->endings, names->also->ending_count);
}

bool output_names_have(const struct output_names *names, const char *path)
{
    static const char *const ends[] = {".bin", ".tmx", ".bin.zst", ".mask"}, *const list[] = {".dropped"};
    const char *rest = rest_of(names->name, path);
    return is_of_shard(names, path, ends, sizeof ends / sizeof ends[0]) || output_names_also(names, path) ||
           (rest && is_one_of(rest, list, 1) && is_beside(names->name, path)) || is_work(names->name, path);
}

enum tokmap_status output_names_exclude(const struct pack_options *options, struct corpus *corpus,
                                        struct tokmap_error *error)
{
    const struct pack_also *also = options->shard_tokens || options->split ? NULL : options->also;
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; also && i < also->ending_count && !status; i++) {
        char *path = path_join("", 0, options->prefix, strlen(options->prefix), also->endings[i]);
        status = path ? corpus_exclude(corpus, path, error) : error_set_memory(error, "a path", 0);
        free(path);
    }
    return status;
}
