/* SPDX-License-Identifier: Apache-2.0 */
/* What this copy of Cleave was built with: optional libraries, as the configure summary lists them,
 * and the commit. */
#ifndef CLEAVE_PROBE_BUILD_H
#define CLEAVE_PROBE_BUILD_H

/* "hwloc, FITS" and "PNG (Debian: libpng-dev)"; "" for none. */
const char *clv_build_with(void);
const char *clv_build_without(void);

/* Returns the hash of the commit that was built, or NULL if the build did not know it. */
const char *clv_build_commit(void);

#endif
