/* SPDX-License-Identifier: MIT */
/* wp_engine.h - a WordPiece or WordLevel vocabulary as the engine of a pipeline. */
#ifndef TOKMAP_WORDS_WP_ENGINE_H
#define TOKMAP_WORDS_WP_ENGINE_H

#include "engine/text_engine.h"
#include "wp_characters.h"
#include "wp_model.h"

/* Makes an engine. It takes pieces, each of which is a word, and makes at most one id of a character. rules: of the
 * BertNormalizer that the text has, which a BertPreTokenizer follows, for encode_raw; NULL: the text has other ones,
 * and encode_raw must not be called. *engine is NULL on failure. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status wp_engine_new(struct text_engine **engine, const struct wp_source *source,
                                 const struct wp_rules *rules, struct tokmap_error *error);

#endif
