/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the CPU topology with hwloc; no other file includes hwloc. Without hwloc, the host's fields do not change, and
 * probe/host/host.c counts the CPUs that the kernel lists. */
#include "probe/host/host.h"

#if CLEAVE_HAVE_HWLOC
#include "base/alloc.h"

#include <hwloc.h>

static unsigned count(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    const int number = hwloc_get_nbobjs_by_type(topology, type);
    return number > 0 ? (unsigned)number : 0;
}

/* Adds a cache. Chips with two kinds of cores have two cache sizes on one level. */
static void add_cache(clv_machine *machine, const struct hwloc_cache_attr_s *found)
{
    const char type = found->type == HWLOC_OBJ_CACHE_DATA          ? 'd'
                      : found->type == HWLOC_OBJ_CACHE_INSTRUCTION ? 'i'
                                                                   : 'u';
    for (size_t i = 0; i < machine->report.host.cache_count; ++i) {
        clv_probe_cache *known = &machine->caches[i];
        if (known->level == found->depth && known->type == type && known->bytes == found->size) {
            ++known->count;
            return;
        }
    }
    clv_probe_cache *cache = clv_machine_add_cache(machine);
    if (cache)
        *cache = (clv_probe_cache){ .level = found->depth,
                                    .type = type,
                                    .count = 1,
                                    .line_bytes = found->linesize,
                                    .bytes = found->size };
}

static void read_caches(clv_machine *machine, hwloc_topology_t topology)
{
    static const hwloc_obj_type_t types[] = {
        HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE,
        HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE,
    };
    for (size_t i = 0; i < CLV_LEN(types); ++i)
        for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, types[i], o));)
            add_cache(machine, &o->attr->cache);
}

void clv_topology_facts(clv_machine *machine)
{
    clv_probe_host *host = &machine->report.host;
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology)) return;
    /* covers the whole machine: the CPUs that this process may use are counted separately */
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_icache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(topology) == 0) {
        host->packages = count(topology, HWLOC_OBJ_PACKAGE);
        host->cores = count(topology, HWLOC_OBJ_CORE);
        host->threads = count(topology, HWLOC_OBJ_PU);
        host->numa_nodes = count(topology, HWLOC_OBJ_NUMANODE);
        host->hwloc_total_bytes = hwloc_get_root_obj(topology)->total_memory;
        read_caches(machine, topology);
        host->topology_source = "hwloc " HWLOC_VERSION;
    }
    hwloc_topology_destroy(topology);
}
#else
void clv_topology_facts(clv_machine *machine)
{
    (void)machine;
}
#endif
