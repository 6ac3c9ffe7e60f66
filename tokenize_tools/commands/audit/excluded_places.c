/* SPDX-License-Identifier: MIT */
/* excluded_places.c - see excluded_places.h. */
#include "excluded_places.h"

#include "common/bytes.h"
#include "run/exclusion.h"
#include "run/run.h"

static int place_before(void *user, const struct tokmap_place *place)
{
    struct excluded_places *places = user;
    (void)place;
    places->more = places->before + places->after == EXCLUDED_PLACES_MOST;
    places->before += !places->more;
    return places->more;
}

/* Keeps the first place, and later ones that are far from each other. */
static int place_after(void *user, const struct tokmap_place *place)
{
    struct excluded_places *places = user;
    places->more = places->before + places->after == EXCLUDED_PLACES_MOST;
    if (places->more)
        return 1;
    const uint64_t number = places->after++;
    if ((number & (number + 1)) == 0) /* 0, 1, 3, 7, ...: the last ones replace each other */
        places->chosen[min64(places->chosen_count, EXCLUDED_STEPS - 1)] =
            (struct excluded_place){place->step, place->row};
    if ((number & (number + 1)) == 0 && places->chosen_count < EXCLUDED_STEPS)
        places->chosen_count++;
    return 0;
}

enum tokmap_status excluded_places_find(struct excluded_places *places, const struct tokmap_run *run, uint64_t end,
                                        struct tokmap_error *error)
{
    const struct exclusions *exclusions = run_exclusions(run);
    enum tokmap_status status = TOKMAP_OK;
    *places = (struct excluded_places){.first_step = exclusions->event_count ? exclusions->events[0].step : 0};
    for (uint64_t i = 0; i < exclusions->list_count; i++)
        places->documents += exclusions->lists[i].documents;
    for (uint64_t source = 0; exclusions->of && source < exclusions->sources->count; source++)
        for (uint64_t i = 0; i < exclusions->of[source].count; i++) {
            const struct exclusion_range *range = &exclusions->of[source].of[i];
            const uint64_t count = range->end - range->first, from = min64(range->from, end);
            places->tokens += count;
            if (!status && !places->more)
                status = tokmap_run_find(run, source, range->first, count, 0, from, place_before, places, error);
            if (!status && !places->more)
                status = tokmap_run_find(run, source, range->first, count, from, end, place_after, places, error);
            status = status == TOKMAP_ERROR_INTERRUPTED ? TOKMAP_OK : status;
        }
    return status;
}
