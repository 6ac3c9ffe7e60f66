/* SPDX-License-Identifier: MIT */
#include "document_bands.h"

#include <stdlib.h>

#include "common/error.h"

enum tokmap_status band_signer_make(struct band_signer *signer, const struct minhash_form *form,
                                    struct tokmap_error *error)
{
    signer->form = *form;
    signer->minhash = minhash_new(form->bands, form->rows);
    signer->table = shingle_table_new();
    return signer->minhash && signer->table ? TOKMAP_OK : error_set_memory(error, "the tables of MinHash", 0);
}

void band_signer_free(struct band_signer *signer)
{
    minhash_free(signer->minhash);
    shingle_table_free(signer->table);
    *signer = (struct band_signer){.minhash = NULL};
}

static void shingles_add(void *user, const uint64_t *shingles, uint32_t count)
{
    struct document_bands *bands = user;
    minhash_add(bands->minhash, bands->signature, shingles, count);
    bands->any = true;
}

static enum tokmap_status bands_begin(const struct band_signer *signer, struct document_bands *bands,
                                      struct tokmap_error *error)
{
    if (bands->signature)
        return TOKMAP_OK;
    const uint64_t bytes = minhash_places(signer->minhash) * sizeof *bands->signature;
    bands->signature = malloc((size_t)bytes);
    bands->minhash = signer->minhash;
    bands->shingles.table = signer->table;
    bands->shingles.words_each = signer->form.words;
    bands->shingles.found = shingles_add;
    bands->shingles.user = bands;
    return bands->signature ? TOKMAP_OK : error_set_memory(error, "the signature of a document", bytes);
}

enum tokmap_status document_bands_add(const struct band_signer *signer, struct document_bands *bands,
                                      const struct corpus_document *document, bool excluded, struct bytes_buffer *into,
                                      struct tokmap_error *error)
{
    const enum tokmap_status status = bands_begin(signer, bands, error);
    if (status)
        return status;
    bands->any = false;
    minhash_begin(signer->minhash, bands->signature);
    bool good = excluded || shingles_find(&bands->shingles, document->text, document->bytes, document->second,
                                          document->second_bytes);
    const uint8_t any = bands->any;
    good = good && bytes_append(into, &any, 1);
    for (uint32_t i = 0; any && good && i < signer->form.bands; i++) {
        const struct hash128 band = minhash_band(signer->minhash, bands->signature, i);
        good = bytes_append(into, &band, sizeof band);
    }
    return good ? TOKMAP_OK : error_set_memory(error, "the words of a document", document->bytes);
}

void document_bands_free(struct document_bands *bands)
{
    shingle_scan_free(&bands->shingles);
    free(bands->signature);
    *bands = (struct document_bands){.signature = NULL};
}

uint32_t cluster_first(uint32_t *first, uint32_t document)
{
    while (first[document] != document) {
        first[document] = first[first[document]];
        document = first[document];
    }
    return document;
}

bool clusters_join(uint32_t *first, uint32_t a, uint32_t b)
{
    a = cluster_first(first, a);
    b = cluster_first(first, b);
    if (a < b)
        first[b] = a;
    else
        first[a] = b;
    return a != b;
}
