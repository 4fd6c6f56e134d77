/* Records the Views of a Kokkos program that knows nothing of ciwrap: Kokkos loads this library when
 * KOKKOS_TOOLS_LIBS names it, which `ciwrap record --view ... --step ...` does.
 *
 * Kokkos tells label, memory space, address and bytes of what it allocates, and no type and no shape.
 * So CIWRAP_RECORD_VIEWS says those, and CIWRAP_RECORD_STEP the region or kernel at whose end a
 * checkpoint is recorded. How to: docs/how-to/record-a-program.md. */
#include <ciwrap/record.h>
#include <ctype.h>
#include <fnmatch.h>
#include <pthread.h>
#include <string.h>

/* Interfaces whose allocations begin with the header below: Kokkos 3.4 to 4.7. */
#define OLDEST_INTERFACE 20210225
#define NEWEST_INTERFACE 20240906
/* What Kokkos puts before the data of an allocation: a pointer, and the label. */
#define HEADER_BYTES 128
#define LABEL_BYTES (HEADER_BYTES - sizeof(void*))
#define MOST_REGIONS 64

typedef struct {
    char name[64];
} space_handle;

typedef struct {
    void (*fence)(uint32_t device);
    void (*padding[31])(void);
} programming_interface;

typedef struct {
    char requires_global_fencing; /* bool */
    char padding[255];
} tool_settings;

/* PATTERN=DTYPE, PATTERN=DTYPE[EXTENT,...], and /left for a View whose first index varies fastest. */
typedef struct {
    char* pattern;
    char dtype[16];
    int64_t item_bytes;
    int dimensions; /* 0: a list of as many as there are */
    int64_t extents[CIWRAP_MAX_DIMENSIONS];
    int is_left;
} view_rule;

typedef struct {
    char* label;
    const char* header;
    uint64_t bytes;
    const view_rule* rule;
    int is_host;
} held_view;

static struct {
    pthread_mutex_t mutex;
    ciwrap_run* run;
    view_rule* rules;
    size_t rule_count;
    held_view* views;
    size_t view_count, view_room;
    const char* step;
    int64_t iteration;
    programming_interface kokkos;
    char regions[MOST_REGIONS]; /* whether a region that is open is the step */
    int depth;
    int has_told;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void tell(const char* label, const char* what) {
    if (!state.has_told)
        fprintf(stderr, "ciwrap: the View '%s' is not recorded: %s\n", label, what);
    state.has_told = 1;
}

static char* copy_of(const char* text, size_t length) {
    char* const found = (char*)malloc(length + 1);
    if (found) {
        memcpy(found, text, length);
        found[length] = '\0';
    }
    return found;
}

/* What stands behind the "=" of a line. */
static void read_rule(view_rule* rule, const char* text) {
    size_t length = strcspn(text, "[/");
    const char* digits;
    if (length >= sizeof rule->dtype)
        length = sizeof rule->dtype - 1;
    memcpy(rule->dtype, text, length);
    for (digits = rule->dtype; *digits && !isdigit((unsigned char)*digits); ++digits)
        continue;
    rule->item_bytes = *digits ? strtoll(digits, NULL, 10) : 1;
    text += strcspn(text, "[/");
    if (*text == '[') {
        do {
            char* end;
            rule->extents[rule->dimensions++] = strtoll(text + 1, &end, 10);
            text = end;
        } while (*text == ',' && rule->dimensions < CIWRAP_MAX_DIMENSIONS);
    }
    rule->is_left = strstr(text, "/left") != NULL;
}

static void read_rules(const char* text) {
    while (text && *text) {
        const size_t length = strcspn(text, "\n");
        const char* const sign = (const char*)memchr(text, '=', length);
        view_rule* const more =
            (view_rule*)realloc(state.rules, (state.rule_count + 1) * sizeof *state.rules);
        if (more)
            state.rules = more;
        if (more && sign) {
            view_rule* const rule = &state.rules[state.rule_count];
            char* const rest = copy_of(sign + 1, length - (size_t)(sign + 1 - text));
            memset(rule, 0, sizeof *rule);
            rule->pattern = copy_of(text, (size_t)(sign - text));
            if (rest && rule->pattern) {
                read_rule(rule, rest);
                ++state.rule_count;
            }
            free(rest);
        }
        text += length + (text[length] == '\n');
    }
}

static const view_rule* rule_of(const char* label) {
    size_t i;
    for (i = 0; i < state.rule_count; ++i) {
        if (fnmatch(state.rules[i].pattern, label, 0) == 0)
            return &state.rules[i];
    }
    return NULL;
}

/* Which of the processes this is, as launchers say it; Kokkos does not know. */
static int number_of(const char* const* names, int otherwise) {
    for (; *names; ++names) {
        const char* const text = getenv(*names);
        if (text && *text)
            return (int)strtol(text, NULL, 10);
    }
    return otherwise;
}

static int is_alone(const held_view* view) {
    size_t i;
    for (i = 0; i < state.view_count; ++i) {
        if (&state.views[i] != view && strcmp(state.views[i].label, view->label) == 0)
            return 0;
    }
    return 1;
}

/* Why a View cannot be recorded; NULL if it can. */
static const char* fault_of(const held_view* view) {
    const view_rule* const rule = view->rule;
    int64_t bytes = rule->item_bytes;
    int i;
    if (!is_alone(view))
        return "another one has the same label";
    if (!view->is_host)
        return "it is not in the host's memory";
    if (strncmp(view->header + sizeof(void*), view->label, LABEL_BYTES - 1) != 0)
        return "this Kokkos lays its memory out otherwise";
    if (rule->item_bytes < 1 || view->bytes % (uint64_t)rule->item_bytes != 0)
        return "its bytes are no multiple of the type's";
    for (i = 0; i < rule->dimensions; ++i)
        bytes *= rule->extents[i];
    if (rule->dimensions > 0 && (uint64_t)bytes != view->bytes)
        return "it has more or fewer bytes than the shape that was given";
    return NULL;
}

/* A View as an array; one that cannot be recorded has no data, which leaves a hole. */
static void put(const held_view* view) {
    const view_rule* const rule = view->rule;
    const char* const fault = fault_of(view);
    ciwrap_array array;
    int64_t id, stride = 1;
    int i;
    memset(&array, 0, sizeof array);
    array.size = sizeof array;
    array.name = view->label;
    array.dtype = rule->dtype;
    array.atol = array.rtol = -1;
    array.dimensions = rule->dimensions > 0 ? rule->dimensions : 1;
    if (fault) {
        tell(view->label, fault);
        array.dimensions = 1;
        array.extents[0] = 1;
    } else if (rule->dimensions > 0) {
        memcpy(array.extents, rule->extents, sizeof array.extents);
        for (i = 0; rule->is_left && i < rule->dimensions; ++i) {
            array.strides[i] = stride;
            stride *= rule->extents[i];
        }
        array.data = view->header + HEADER_BYTES;
    } else {
        array.extents[0] = (int64_t)view->bytes / rule->item_bytes;
        array.data = view->header + HEADER_BYTES;
    }
    id = ciwrap_find(state.run, array.name);
    if (id >= 0)
        ciwrap_replace(state.run, id, &array);
    else
        ciwrap_add(state.run, &array);
}

static void checkpoint(void) {
    size_t i;
    if (!state.run)
        return;
    if (state.kokkos.fence)
        state.kokkos.fence(0);
    pthread_mutex_lock(&state.mutex);
    for (i = 0; i < state.view_count; ++i)
        put(&state.views[i]);
    ciwrap_checkpoint(state.run, state.iteration++, CIWRAP_IN_PLACE);
    pthread_mutex_unlock(&state.mutex);
}

void kokkosp_init_library(int sequence, uint64_t version, uint32_t devices, void* infos) {
    static const char* const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                             "SLURM_PROCID", NULL};
    static const char* const size_names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS",
                                             NULL};
    (void)sequence, (void)devices, (void)infos;
    if (version < OLDEST_INTERFACE || version > NEWEST_INTERFACE) {
        fprintf(stderr, "ciwrap: nothing is recorded: the Kokkos of this program has the tools"
                        " interface %llu, known are %d to %d\n",
                (unsigned long long)version, OLDEST_INTERFACE, NEWEST_INTERFACE);
        return;
    }
    state.step = getenv("CIWRAP_RECORD_STEP");
    read_rules(getenv("CIWRAP_RECORD_VIEWS"));
    if (state.step && *state.step && state.rule_count > 0)
        state.run = ciwrap_open("kokkos", number_of(rank_names, 0), number_of(size_names, 1));
}

void kokkosp_finalize_library(void) {
    ciwrap_close(state.run);
    state.run = NULL;
}

void kokkosp_request_tool_settings(uint32_t count, tool_settings* settings) {
    (void)count;
    settings->requires_global_fencing = 0; /* once at a checkpoint is enough */
}

void kokkosp_provide_tool_programming_interface(uint32_t count, programming_interface actions) {
    if (count > 0)
        state.kokkos = actions;
}

void kokkosp_allocate_data(space_handle space, const char* label, const void* pointer,
                           uint64_t bytes) {
    const view_rule* const rule = state.run && label ? rule_of(label) : NULL;
    held_view* more;
    if (!rule)
        return;
    pthread_mutex_lock(&state.mutex);
    if (state.view_count == state.view_room) {
        more = (held_view*)realloc(state.views, (2 * state.view_room + 8) * sizeof *more);
        if (more) {
            state.views = more;
            state.view_room = 2 * state.view_room + 8;
        }
    }
    if (state.view_count < state.view_room) {
        held_view view = {copy_of(label, strlen(label)), (const char*)pointer, bytes, rule, 0};
        space.name[sizeof space.name - 1] = '\0';
        view.is_host = strcmp(space.name, "Host") == 0;
        if (view.label)
            state.views[state.view_count++] = view;
    }
    pthread_mutex_unlock(&state.mutex);
}

void kokkosp_deallocate_data(space_handle space, const char* label, const void* pointer,
                             uint64_t bytes) {
    size_t i;
    int64_t id;
    (void)space, (void)label, (void)bytes;
    pthread_mutex_lock(&state.mutex);
    for (i = 0; i < state.view_count; ++i) {
        if (state.views[i].header != (const char*)pointer)
            continue;
        id = ciwrap_find(state.run, state.views[i].label);
        if (id >= 0 && is_alone(&state.views[i]))
            ciwrap_remove(state.run, id);
        free(state.views[i].label);
        state.views[i] = state.views[--state.view_count];
        break;
    }
    pthread_mutex_unlock(&state.mutex);
}

static int is_step(const char* label) {
    return state.run && label && strcmp(label, state.step) == 0;
}

void kokkosp_push_profile_region(const char* name) {
    if (state.depth < MOST_REGIONS)
        state.regions[state.depth] = (char)is_step(name);
    ++state.depth;
}

void kokkosp_pop_profile_region(void) {
    if (state.depth == 0)
        return;
    --state.depth;
    if (state.depth < MOST_REGIONS && state.regions[state.depth])
        checkpoint();
}

/* A kernel's number is all that its end is told. */
static void begin_kernel(const char* name, uint64_t* number) {
    *number = (uint64_t)is_step(name);
}
static void end_kernel(uint64_t number) {
    if (number)
        checkpoint();
}

void kokkosp_begin_parallel_for(const char* name, uint32_t device, uint64_t* number) {
    (void)device;
    begin_kernel(name, number);
}
void kokkosp_end_parallel_for(uint64_t number) {
    end_kernel(number);
}
void kokkosp_begin_parallel_reduce(const char* name, uint32_t device, uint64_t* number) {
    (void)device;
    begin_kernel(name, number);
}
void kokkosp_end_parallel_reduce(uint64_t number) {
    end_kernel(number);
}
void kokkosp_begin_parallel_scan(const char* name, uint32_t device, uint64_t* number) {
    (void)device;
    begin_kernel(name, number);
}
void kokkosp_end_parallel_scan(uint64_t number) {
    end_kernel(number);
}
