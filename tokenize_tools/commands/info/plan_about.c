/* plan_about.c - see plan_about.h. */
#include "plan_about.h"

#include <inttypes.h>

#include "cli/cli.h"
#include "commands/options/target.h"
#include "format/plan_file.h"

static void about_json(const char *path, const struct plan_header *header)
{
    struct cli_json json;
    char hex[33];
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "plan", path);
    cli_json_text(&json, "dataset", id_hex(header->dataset, hex));
    cli_json_bool(&json, "sampled", header->identity == 2);
    cli_json_number(&json, "seq_len", header->seq_len);
    cli_json_number(&json, "rows", header->rows);
    cli_json_number(&json, "tokens", header->tokens);
    cli_json_number(&json, "documents", header->documents);
    cli_json_number(&json, "documents_cut", header->cut);
    cli_json_number(&json, "segments", header->segments);
    cli_json_number(&json, "row_segments", header->row_segments);
    if (header->documents_most)
        cli_json_number(&json, "max_documents", header->documents_most);
    else
        cli_json_null(&json, "max_documents");
    cli_json_number(&json, "bytes", header->file_bytes);
    cli_json_end(&json);
}

static void row_add(struct cli_table *table, const char *name, const char *value)
{
    const char *cells[] = {name, value};
    cli_table_row(table, cells);
}

static void about_table(const char *path, const struct plan_header *header)
{
    char a[64], b[64], c[64], text[256];
    struct cli_table *table = cli_table_new(2);
    const uint64_t room = header->rows * header->seq_len;
    row_add(table, "plan", path);
    row_add(table, "rows", cli_count(header->rows, a));
    row_add(table, "seq_len", cli_counted(header->seq_len, "token", a));
    (void)snprintf(text, sizeof text, "%s, and %s", cli_counted(header->tokens, "token", a),
                   cli_counted(room - header->tokens, "padding token", b));
    row_add(table, "holds", text);
    (void)snprintf(text, sizeof text, "%s, of which %s longer than a row and cut", cli_count(header->documents, a),
                   cli_count(header->cut, b));
    row_add(table, "documents", text);
    (void)snprintf(text, sizeof text, "%s, at most %s a row%s%s%s", cli_count(header->segments, a),
                   cli_count(header->row_segments, b), header->documents_most ? " (limit " : "",
                   header->documents_most ? cli_count(header->documents_most, c) : "",
                   header->documents_most ? ")" : "");
    row_add(table, "segments", text);
    row_add(table, header->identity == 2 ? "sampled id of its dataset" : "content id of its dataset",
            id_hex(header->dataset, a));
    row_add(table, "file", cli_bytes(header->file_bytes, a));
    cli_table_print(table, NULL, stdout);
    cli_table_free(table);
}

enum tokmap_status plan_about_print(const char *path, bool as_json, struct tokmap_error *error)
{
    struct plan plan;
    const enum tokmap_status status = plan_open(&plan, path, error);
    if (status)
        return status;
    if (as_json)
        about_json(path, &plan.header);
    else
        about_table(path, &plan.header);
    plan_close(&plan);
    return TOKMAP_OK;
}
