/* SPDX-License-Identifier: MIT */
/* html_report.c - see html_report.h. */
#include "html_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/visible.h"
#include "result_rows.h"

#define RESULTS_FOLDER "bench/results"

static const char style[] =
    ":root{color-scheme:light dark;--back:#fff;--text:#1f2328;--muted:#5a6470;--line:#d9dee4;--head:#f3f5f7}\n"
    "@media (prefers-color-scheme:dark){:root{--back:#14181f;--text:#e6edf3;--muted:#a3adb8;--line:#333b46;"
    "--head:#1d232c}}\n"
    "body{font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;background:var(--back);color:var(--text);"
    "max-width:1240px;margin:0 auto;padding:24px}\n"
    "h1{font-size:24px}h2{font-size:19px;margin:48px 0 4px;border-top:1px solid var(--line);padding-top:20px}\n"
    "p.of,figcaption{color:var(--muted);margin:2px 0;font-size:13px;overflow-wrap:anywhere}\n"
    "nav{columns:3 220px;font-size:14px}nav a{display:block;color:inherit}\n"
    "figure{margin:16px 0;max-width:960px}figure svg{max-width:100%;height:auto;display:block}\n"
    "div.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;"
    "margin:12px 0}\n"
    "th,td{padding:3px 9px;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}\n"
    "th{background:var(--head);padding:0}th button{all:unset;cursor:pointer;padding:3px 9px;font-weight:600}\n"
    "th button:focus-visible{outline:2px solid}th[aria-sort=ascending] button::after{content:' \\2191'}\n"
    "th[aria-sort=descending] button::after{content:' \\2193'}\n"
    "td.n{text-align:right}td.say{white-space:normal;min-width:260px}\n"
    "td.by{color:var(--muted);font-size:11px;max-width:150px;overflow:hidden;text-overflow:ellipsis}\n";

static const char script[] =
    "document.querySelectorAll('th button').forEach(function(b){b.addEventListener('click',function(){\n"
    "var h=b.parentNode,r=h.parentNode,t=r.closest('table').tBodies[0],i=Array.prototype.indexOf.call(r.children,h);\n"
    "var up=h.getAttribute('aria-sort')!=='ascending';\n"
    "Array.prototype.forEach.call(r.children,function(c){c.removeAttribute('aria-sort')});\n"
    "h.setAttribute('aria-sort',up?'ascending':'descending');\n"
    "function key(x){var c=x.children[i],v=c.getAttribute('data-v');return v===null?c.textContent:Number(v)}\n"
    "Array.prototype.slice.call(t.rows).sort(function(a,b){var x=key(a),y=key(b),\n"
    "d=typeof x==='number'&&typeof y==='number'?x-y:String(x).localeCompare(String(y));\n"
    "return up?d:-d}).forEach(function(x){t.appendChild(x)})})});\n";

struct page {
    FILE *file;
    const struct result_rows *rows;
    const struct result_plots *plots;
    bool *taken; /* rows that are in a section */
};

/* Writes a text as HTML: markup is escaped, and what is not plain is made visible. */
static void text_write(FILE *file, const char *text)
{
    const size_t count = strlen(text);
    for (size_t at = 0, step; at < count; at += step) {
        char form[4 * VISIBLE_MOST + 1];
        bool plain;
        step = visible_step(text + at, count - at, &plain);
        const size_t bytes = visible_copy(form, sizeof form, text + at, step, "");
        switch (text[at]) {
        case '&':
            (void)fputs("&amp;", file);
            break;
        case '<':
            (void)fputs("&lt;", file);
            break;
        case '>':
            (void)fputs("&gt;", file);
            break;
        case '"':
            (void)fputs("&quot;", file);
            break;
        case '\'':
            (void)fputs("&#39;", file);
            break;
        default:
            (void)fwrite(form, 1, bytes, file);
        }
    }
}

static void cell_text(FILE *file, const char *kind, const char *text)
{
    (void)fprintf(file, "<td%s%s%s", *kind ? " class=" : "", kind, !strcmp(kind, "by") ? " title=\"" : "");
    if (!strcmp(kind, "by")) {
        text_write(file, text);
        (void)fputc('"', file);
    }
    (void)fputc('>', file);
    text_write(file, text);
    (void)fputs("</td>", file);
}

static void cell_number(FILE *file, double value)
{
    char count[32];
    const double size = fabs(value);
    if (!isfinite(value)) {
        (void)fputs("<td class=n data-v=\"-1e999\"></td>", file);
        return;
    }
    (void)fprintf(file, "<td class=n data-v=\"%.12g\">", value);
    if (size >= 1e5 && size < 1e15)
        (void)fprintf(file, "%s%s", value < 0 ? "-" : "", cli_count((uint64_t)(size + 0.5), count));
    else
        (void)fprintf(file, size == floor(size) && size < 1e5 ? "%.0f" : "%.4g", value);
    (void)fputs("</td>", file);
}

static bool same_section(const struct result_row *a, const struct result_row *b)
{
    return !strcmp(a->command, b->command) && !strcmp(a->case_name, b->case_name) && !strcmp(a->table, b->table) &&
           !strcmp(a->machine, b->machine) && !strcmp(a->date, b->date);
}

static void row_write(FILE *file, const struct result_row *row, bool named)
{
    char digits[32];
    (void)fputs("<tr>", file);
    if (named)
        cell_text(file, "", row->row);
    cell_text(file, "", row->metric);
    if (*row->text || !isfinite(row->value)) {
        (void)fputs("<td class=say colspan=8>", file);
        text_write(file, row->verdict);
        (void)fputs(*row->verdict && *row->text ? ": " : "", file);
        text_write(file, row->text);
        (void)fputs("</td>", file);
    } else {
        cell_number(file, row->value);
        cell_text(file, "", row->unit);
        cell_text(file, "", row->better);
        cell_number(file, row->smallest);
        cell_number(file, row->largest);
        (void)snprintf(digits, sizeof digits, "%" PRIu64, row->count);
        (void)fprintf(file, "<td class=n data-v=\"%s\">%s</td>", digits, digits);
        cell_number(file, row->limit);
        cell_number(file, row->ratio);
    }
    cell_text(file, "", *row->text ? "" : row->verdict);
    cell_text(file, "by", row->command);
    cell_text(file, "by", row->machine);
    cell_text(file, "by", row->date);
    (void)fputs("</tr>\n", file);
}

/* Writes the rows of the section that `first` begins. */
static void table_write(struct page *page, size_t first)
{
    static const char *const heads[] = {"metric", "median", "unit",    "better",  "min",     "max", "n",
                                        "limit",  "ratio",  "verdict", "command", "machine", "date"};
    const struct result_row *begin = &page->rows->rows[first];
    bool named = false;
    for (size_t i = first; i < page->rows->count; i++)
        named |= *page->rows->rows[i].row && same_section(&page->rows->rows[i], begin);
    (void)fputs("<div class=wide><table><thead><tr>", page->file);
    if (named)
        (void)fputs("<th scope=col><button>system</button></th>", page->file);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        (void)fprintf(page->file, "<th scope=col><button>%s</button></th>", heads[i]);
    (void)fputs("</tr></thead><tbody>\n", page->file);
    for (size_t i = first; i < page->rows->count; i++)
        if (!page->taken[i] && same_section(&page->rows->rows[i], begin)) {
            page->taken[i] = true;
            row_write(page->file, &page->rows->rows[i], named);
        }
    (void)fputs("</tbody></table></div>\n", page->file);
}

static void title_write(FILE *file, const struct result_row *row)
{
    text_write(file, row->case_name);
    (void)fputs(*row->table ? " " : "", file);
    text_write(file, row->table);
}

/* Writes the pictures of the section, as they are on their own, with ids that no other picture of the page has. */
static enum tokmap_status pictures_write(struct page *page, const struct result_row *of, struct tokmap_error *error)
{
    for (size_t i = 0; i < page->plots->count; i++) {
        const struct result_plot *plot = &page->plots->plots[i];
        struct cli_plot inside = plot->plot;
        struct bytes_buffer picture = {0};
        char ids[32];
        if (strcmp(plot->command, of->command) != 0 || strcmp(plot->case_name, of->case_name) != 0 ||
            strcmp(plot->table, of->table) != 0)
            continue;
        (void)snprintf(ids, sizeof ids, "p%zu", i);
        inside.ids = ids;
        const enum tokmap_status status = cli_plot_render(&inside, CLI_PLOT_SVG, &picture, error);
        const char *text = (const char *)picture.bytes;
        const char *svg = status ? NULL : memmem(text, picture.count, "<svg", 4);
        if (svg) { /* without the declaration of XML before it */
            (void)fputs("<figure>", page->file);
            (void)fwrite(svg, 1, picture.count - (size_t)(svg - text), page->file);
            (void)fputs("</figure>\n", page->file);
        }
        bytes_free(&picture);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

static enum tokmap_status sections_write(struct page *page, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < page->rows->count && !status; i++) {
        const struct result_row *row = &page->rows->rows[i];
        bool drawn = false;
        if (page->taken[i])
            continue;
        (void)fprintf(page->file, "<section><h2 id=s%zu>", i);
        title_write(page->file, row);
        (void)fputs("</h2>\n<p class=of><code>", page->file);
        text_write(page->file, row->command);
        (void)fputs("</code></p><p class=of>", page->file);
        text_write(page->file, row->machine);
        (void)fputs(*row->machine ? ", " : "", page->file);
        text_write(page->file, row->date);
        (void)fputs("</p>\n", page->file);
        for (size_t j = 0; j < i; j++) /* the same command on another date has its own rows, and one set of pictures */
            drawn |= !strcmp(page->rows->rows[j].command, row->command) &&
                     !strcmp(page->rows->rows[j].case_name, row->case_name) &&
                     !strcmp(page->rows->rows[j].table, row->table);
        if (!drawn)
            status = pictures_write(page, row, error);
        table_write(page, i);
        (void)fputs("</section>\n", page->file);
    }
    return status;
}

static void contents_write(struct page *page)
{
    const struct result_row *rows = page->rows->rows;
    (void)fputs("<nav aria-label=\"Results\">\n", page->file);
    for (size_t i = 0; i < page->rows->count; i++) {
        bool before = false;
        for (size_t j = i; j-- > 0 && !before;)
            before = same_section(&rows[j], &rows[i]);
        if (before)
            continue;
        (void)fprintf(page->file, "<a href=\"#s%zu\">", i);
        title_write(page->file, &rows[i]);
        (void)fputs("</a>\n", page->file);
    }
    (void)fputs("</nav>\n", page->file);
}

static enum tokmap_status page_write(struct page *page, struct tokmap_error *error)
{
    char date[CLI_DATE];
    (void)fprintf(page->file,
                  "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
                  "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
                  "script-src 'unsafe-inline'\">\n"
                  "<meta name=viewport content=\"width=device-width\">\n<title>tokmap-bench: results</title>\n"
                  "<style>%s</style></head><body>\n<h1>Results of tokmap-bench</h1>\n"
                  "<p class=of>Written on %s. Each row names the command that printed it, the machine, and the date. "
                  "Figures are medians of interleaved repeats; a click on a head sorts a table.</p>\n",
                  style, cli_date(date));
    contents_write(page);
    const enum tokmap_status status = sections_write(page, error);
    (void)fprintf(page->file, "<script>%s</script></body></html>\n", script);
    return status;
}

/* Makes the page in memory and writes it. */
static enum tokmap_status report_make(const struct result_rows *rows, const struct result_plots *plots,
                                      const char *output, struct tokmap_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    struct page page = {.rows = rows, .plots = plots, .taken = calloc(rows->count + 1, sizeof *page.taken)};
    page.file = page.taken ? open_memstream(&text, &bytes) : NULL;
    enum tokmap_status status = page.file ? page_write(&page, error) : TOKMAP_OK;
    const bool memory = page.file && !ferror(page.file);
    const bool closed = page.file && !fclose(page.file);
    if (!status && (!memory || !closed))
        status = error_set_memory(error, "the page", 0);
    if (!status)
        status = cli_output_folder(output, error);
    if (!status)
        status = cli_file_write(output, text, bytes, error);
    free(text);
    free(page.taken);
    return status;
}

int html_report(const struct cli_command *command, const char *const *paths, size_t count, const char *output)
{
    static const char program[] = "tokmap-bench report";
    static const char *const usual[] = {RESULTS_FOLDER};
    struct tokmap_error error = {0};
    struct result_rows rows = {0};
    struct result_plots plots = {0};
    if (!output)
        return cli_misused(command, "report writes a page: name it with -o report.html");
    cli_signals_catch();
    enum tokmap_status status = cli_plot_possible(&error);
    for (size_t i = 0; i < (count ? count : 1) && !status; i++)
        status = result_rows_read(&rows, count ? paths[i] : usual[0], &error);
    if (!status && !rows.count)
        status = error_set(&error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                           "the files have no results; `tokmap-bench CASE --save FOLDER` writes them");
    if (!status)
        status = result_plots_make(&plots, &rows, &error);
    if (!status)
        status = report_make(&rows, &plots, output, &error);
    result_plots_free(&plots);
    result_rows_free(&rows);
    return cli_finish(program, status ? cli_failed(program, &error) : CLI_DONE);
}
