/* SPDX-License-Identifier: Apache-2.0 */
/* Includes all headers that Cleave has for C and C++ programs. */
#ifndef CLEAVE_CLEAVE_H
#define CLEAVE_CLEAVE_H

#include <cleave/array.h>
#include <cleave/array_async.h>
#include <cleave/array_data.h>
#include <cleave/array_math.h>
#include <cleave/array_fold.h>
#include <cleave/array_fourier.h>
#include <cleave/array_fuse.h>
#include <cleave/array_take.h>
#include <cleave/array_typed.h>
#include <cleave/blas.h>
#include <cleave/blob.h>
#include <cleave/chat.h>
#include <cleave/classes.h>
#include <cleave/generate.h>
#include <cleave/gguf.h>
#include <cleave/init.h>
#include <cleave/items.h>
#include <cleave/job.h>
#include <cleave/layout.h>
#include <cleave/log.h>
#include <cleave/memory.h>
#include <cleave/model.h>
#include <cleave/motion.h>
#include <cleave/offload.h>
#include <cleave/patch.h>
#include <cleave/probe.h>
#include <cleave/runtime.h>
#include <cleave/rank.h>
#include <cleave/search.h>
#include <cleave/spectra.h>
#include <cleave/stage.h>
#include <cleave/status.h>
#include <cleave/templates.h>
#include <cleave/tensors.h>
#include <cleave/tokenizer.h>
#include <cleave/track.h>
#include <cleave/train.h>
#include <cleave/transformer.h>
#include <cleave/version.h>
#include <cleave/volume.h>

#endif
