/* SPDX-License-Identifier: MIT */
/* local_dataset.c - see local_dataset.h. */
#include "local_dataset.h"

#include "common/error.h"
#include "remote/remote_url.h"

enum tokmap_status local_dataset_open(struct tokmap_dataset **dataset, const char *name, struct tokmap_error *error)
{
    if (remote_is(name))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                         "this command works on the files of a dataset, and object storage has no files that it could "
                         "change or name; bring the dataset to this machine (tokmap copy), run the command there, and "
                         "copy the result back");
    return tokmap_dataset_open(dataset, name, NULL, error);
}
