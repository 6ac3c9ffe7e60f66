/* SPDX-License-Identifier: MIT */
/*
 * sp_build.h - makes a sp_model of what a vocabulary file says.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_BUILD_H
#define TOKMAP_SENTENCEPIECE_SP_BUILD_H

#include "sp_model.h"
#include "sp_source.h"

/* Builds a model; free it with sp_model_free(). *model is NULL on failure. Any number of threads may build at once.
 * Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED (the vocabulary uses something that is not reproduced exactly),
 * ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_model_build(struct sp_model **model, const struct sp_source *source, struct tokmap_error *error);

#endif
