/* cl/spectra/velocity.cl -- joins the kernels along velocity, for start values and scans, into one program: see fit.cl.
 * Defines  LANES, RUN, NPOLY, FP64, TILE, BLOCKS as the included files describe them. */
#include "spectra/ccf.clh"
#include "spectra/scan.clh"
