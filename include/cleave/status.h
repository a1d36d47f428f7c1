/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the status that every call returns if it can fail, and gets the message of the calling thread's last failure.
 * */
#ifndef CLEAVE_STATUS_H
#define CLEAVE_STATUS_H

#include <cleave/export.h>

CLV_BEGIN_DECLS

/** What a call returns. The numbers never change; new statuses get numbers in the gaps. */
typedef enum clv_status {
    CLV_OK = 0,

    /* a mistake in the call */
    CLV_E_ARGUMENT = 1,    /**< a NULL, an unknown name, a value outside its range */
    CLV_E_SHAPE = 2,       /**< extents, strides or counts that do not fit together */
    CLV_E_FORMAT = 3,      /**< text or a file that is not what it should be */
    CLV_E_UNSUPPORTED = 4, /**< well formed, but this build, device or file format cannot do it */

    /* memory */
    CLV_E_MEMORY = 10,        /**< not enough host memory */
    CLV_E_DEVICE_MEMORY = 11, /**< not enough device memory, at whichever call it was noticed */

    /* devices */
    CLV_E_NO_DEVICE = 20,    /**< the device that you asked for is not here, or none works */
    CLV_E_DEVICE = 21,       /**< an OpenCL call failed, or a command ended with an error */
    CLV_E_BUILD = 22,        /**< a kernel did not compile; clv_error_detail() is the build log */
    CLV_E_WRONG_RESULT = 23, /**< a device's result differs from the reference */

    /* the outside world */
    CLV_E_IO = 30, /**< a file could not be opened, read, written or renamed */

    /* the run */
    CLV_E_CANCELLED = 40, /**< a progress function of yours cancelled the call */
    CLV_E_BUSY = 41, /**< the object is in use, for example by another thread: try again later */
    CLV_E_INTERNAL = 50, /**< an invariant of the library broke: please report it */
} clv_status;

/** Returns the name of a status as in this header ("CLV_E_SHAPE"); never NULL. */
CLV_API const char *clv_status_name(clv_status status);

/**
 * Returns one line about the calling thread's last failure: what was given and what was expected; for a failure of
 * OpenCL, also the OpenCL call, the name of its error code, the device and the kernel. "" if nothing has failed yet.
 * Valid until the next failing call on this thread.
 */
CLV_API const char *clv_error_message(void);

/** Returns the details of the calling thread's last failure that do not fit into one line, such as a build log; "" if
 *  there are none. */
CLV_API const char *clv_error_detail(void);

CLV_END_DECLS

#endif
