/* SPDX-License-Identifier: Apache-2.0 */
/* Names the optional libraries with which this copy of Cleave was built, as in the configure summary, and the
 * commit. */
#ifndef CLEAVE_PROBE_BUILD_H
#define CLEAVE_PROBE_BUILD_H

/* Return the libraries that are built in, such as "hwloc, FITS", and those that are not, such as "PNG (Debian:
 * libpng-dev)"; "" for none. */
const char *clv_build_with(void);
const char *clv_build_without(void);

/* Returns the hash of the commit that was built, or NULL if the build could not find it. */
const char *clv_build_commit(void);

#endif
