/* SPDX-License-Identifier: Apache-2.0
 *
 * The one interface file over include/shardwright, for every target language. SWIG runs in C mode. What differs by
 * language (typemaps, hand-written native code, what is left out) stands in python.i, java.i and rust.i; annotations.i
 * is generated from the comment blocks of the headers by annotate.py. Headers follow in dependency order, base.h first:
 * SWIG does not follow #include, and without base.h the macros of the other headers are unknown. */
#if defined(SWIGPYTHON)
%module(threads="1") shw_native
#else
%module shw_native
#endif

#if !defined(SWIGXML)
%{
#include "shardwright/shardwright.h"
%}
#endif

%include <stdint.i>

#if defined(SWIGPYTHON)
%include "python.i"
#elif defined(SWIGJAVA)
%include "java.i"
#elif defined(SWIGXML)
%include "rust.i"
#endif

%include "annotations.i"

%include "shardwright/base.h"
%include "shardwright/buffer.h"
%include "shardwright/log.h"
%include "shardwright/tensor.h"
%include "shardwright/layout.h"
%include "shardwright/megatron.h"
%include "shardwright/state.h"
%include "shardwright/plan.h"
%include "shardwright/report.h"
%include "shardwright/job.h"
%include "shardwright/storage_table.h"
%include "shardwright/storage.h"
%include "shardwright/collective_table.h"
%include "shardwright/collective.h"
%include "shardwright/context.h"
%include "shardwright/save.h"
%include "shardwright/checkpoint.h"
%include "shardwright/checkpoint_entries.h"
%include "shardwright/load.h"
%include "shardwright/load_exchange.h"
%include "shardwright/torch_items.h"
%include "shardwright/convert.h"
%include "shardwright/reshard.h"
%include "shardwright/pickles.h"
%include "shardwright/planning.h"
%include "shardwright/estimate.h"
%include "shardwright/global_plan.h"
%include "shardwright/communicator_table.h"
%include "shardwright/communicator.h"
%include "shardwright/work.h"
%include "shardwright/device_table.h"
%include "shardwright/device.h"
%include "shardwright/hsdp.h"
%include "shardwright/hsdp_unit.h"
%include "shardwright/hsdp_phases.h"
%include "shardwright/hsdp_estimate.h"
%include "shardwright/plugin.h"

/* The function table is for hosts that open the library themselves. */
#if defined(SWIGXML)
%include "shardwright/api.h"
#endif
