/* SPDX-License-Identifier: Apache-2.0 */
/* Result of every fallible call, and the message of the calling thread's last failure. */
#ifndef CLEAVE_STATUS_H
#define CLEAVE_STATUS_H

#include <cleave/export.h>

CLV_BEGIN_DECLS

/** Numbers never change; new ones are added inside the gaps. */
typedef enum clv_status {
    CLV_OK = 0,

    /* the caller's mistake */
    CLV_E_ARGUMENT = 1,    /**< a NULL, an unknown name, a value outside its range */
    CLV_E_SHAPE = 2,       /**< extents, strides or counts that do not fit together */
    CLV_E_FORMAT = 3,      /**< text or a file that is not what it should be */
    CLV_E_UNSUPPORTED = 4, /**< well formed, but this build, device or file format cannot do it */

    /* room */
    CLV_E_MEMORY = 10,        /**< host memory */
    CLV_E_DEVICE_MEMORY = 11, /**< device memory, at whatever call it was noticed */

    /* devices */
    CLV_E_NO_DEVICE = 20,    /**< no device that was asked for, or that works, is here */
    CLV_E_DEVICE = 21,       /**< an OpenCL call failed, or a command ended with an error */
    CLV_E_BUILD = 22,        /**< a kernel did not compile; the build log is the error detail */
    CLV_E_WRONG_RESULT = 23, /**< a device computed something else than the reference */

    /* the outside world */
    CLV_E_IO = 30, /**< open, read, write, rename */

    /* the run */
    CLV_E_CANCELLED = 40, /**< the caller asked for it */
    CLV_E_BUSY = 41, /**< the object is in use, for example by another thread: try again later */
    CLV_E_INTERNAL = 50, /**< an invariant of the library broke: please report it */
} clv_status;

/** Name of a status as written in this header ("CLV_E_SHAPE"); never NULL. */
CLV_API const char *clv_status_name(clv_status status);

/**
 * One line about the calling thread's last failure: what was given, what was expected, and for
 * OpenCL the call, its code by name, the device and the kernel. "" when nothing failed yet.
 * Valid until the next failing call on this thread.
 */
CLV_API const char *clv_error_message(void);

/** What does not fit a line, such as a build log; "" when there is nothing more to say. */
CLV_API const char *clv_error_detail(void);

CLV_END_DECLS

#endif
