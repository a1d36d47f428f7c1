/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the LAPACK of this machine at the first call. */
#include "base/lapack.h"

#include "base/alloc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static clv_lapack found;

static bool load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    *(void **)&found.dgeev = dlsym(library, "dgeev_");
    *(void **)&found.set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&found.get_threads = dlsym(library, "openblas_get_num_threads");
    if (found.dgeev)
        found.library = name;
    else
        dlclose(library);
    return found.dgeev != NULL;
}

static void look(void)
{
    static const char *const names[] = { "liblapack.so.3", "libopenblas.so.0" };
    for (size_t i = 0; i < CLV_LEN(names) && !found.library; ++i)
        load(names[i]);
}

const clv_lapack *clv_lapack_get(void)
{
    pthread_once(&once, look);
    return found.library ? &found : NULL;
}
