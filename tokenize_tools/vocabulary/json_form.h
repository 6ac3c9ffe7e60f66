/* json_form.h - which vocabulary format a JSON text has. */
#ifndef TOKMAP_VOCABULARY_JSON_FORM_H
#define TOKMAP_VOCABULARY_JSON_FORM_H

#include <stdint.h>

enum json_form { FORM_HF, FORM_TEKKEN, FORM_ENCODER };

/* Recognizes a JSON format by the first member that only one of them has: encoder.json maps texts to numbers,
 * tekken.json has an object "config" and an array "vocab", tokenizer.json has fields of its own. FORM_HF where nothing
 * is recognized. */
enum json_form json_form_of(const char *text, uint64_t count);

#endif
