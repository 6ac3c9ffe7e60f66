/* SPDX-License-Identifier: MIT */
/*
 * remote_account.h - who reads from object storage, and where: keys, region, and address.
 *
 * For s3:// these are looked for where the AWS tools look, in this order: the variables AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 or
 * AWS_ENDPOINT_URL; then the profile that AWS_PROFILE names, or "default", in ~/.aws/credentials
 * (AWS_SHARED_CREDENTIALS_FILE) and ~/.aws/config (AWS_CONFIG_FILE). For gs://: the HMAC key in GCS_KEY and GCS_SECRET,
 * or in GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY; the address in STORAGE_EMULATOR_HOST. For hf://, where
 * huggingface_hub looks: the token in HF_TOKEN, or in the file HF_TOKEN_PATH, $HF_HOME/token,
 * $XDG_CACHE_HOME/huggingface/token, or ~/.cache/huggingface/token; the address in HF_ENDPOINT. Without a key or token,
 * requests are not signed, which is enough for public objects.
 *
 * No message contains a key, a secret, or a token.
 */
#ifndef TOKMAP_REMOTE_REMOTE_ACCOUNT_H
#define TOKMAP_REMOTE_REMOTE_ACCOUNT_H

#include "remote_url.h"

#define ACCOUNT_REGION_MOST 64

struct remote_account {
    enum remote_kind kind;      /* NONE: not looked for yet */
    char *key, *secret, *token; /* key and secret: both or neither; of the Hub, only a token */
    char *endpoint;             /* an address without a slash at its end, or NULL: the provider's own */
    char region[ACCOUNT_REGION_MOST];
};

/* Fills *account for S3, GS, or HUB. `name`: of the input, for the error. Statuses: OK, ERROR_ARGUMENT (half a key, an
 * unknown profile, a value that cannot be one), ERROR_IO (a file cannot be read), ERROR_MEMORY. */
enum tokmap_status remote_account_load(struct remote_account *account, enum remote_kind kind, const char *name,
                                       struct tokmap_error *error);
/* Wipes the secrets and frees them. */
void remote_account_clear(struct remote_account *account);

/* Changes the region. Returns false if the text cannot be the name of a region, or names the same one. */
bool remote_account_move(struct remote_account *account, const char *region);

/* Appends the URL of an object, or of its bucket if there is a query, which is already escaped, that is not of_object,
 * and a zero byte that does not count. A query of the Hub is what follows the slash after its address. Returns false if
 * there is no memory. */
bool remote_account_url(const struct remote_account *account, const struct remote_object *object, const char *query,
                        bool of_object, struct bytes_buffer *url);

/* Returns whether a URL is below the address of the account, which alone may see the token of the Hub. */
bool remote_account_is_at(const struct remote_account *account, const char *url);

/* Returns advice after a refusal (401 or 403): the environment variables that are not set. */
const char *remote_account_advice(const struct remote_account *account);

#endif
