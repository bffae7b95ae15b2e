/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole C interface of shardwright: plans, saves, loads and reshards training checkpoints that
 * are split over many processes. Start with context.h, state.h, save.h and checkpoint.h. */
#ifndef SHARDWRIGHT_SHARDWRIGHT_H
#define SHARDWRIGHT_SHARDWRIGHT_H

#include "base.h"
#include "buffer.h"
#include "checkpoint.h"
#include "checkpoint_entries.h"
#include "collective.h"
#include "communicator.h"
#include "context.h"
#include "convert.h"
#include "device.h"
#include "estimate.h"
#include "global_plan.h"
#include "hsdp.h"
#include "hsdp_estimate.h"
#include "hsdp_phases.h"
#include "hsdp_unit.h"
#include "job.h"
#include "layout.h"
#include "load.h"
#include "load_exchange.h"
#include "log.h"
#include "megatron.h"
#include "pickles.h"
#include "plan.h"
#include "planning.h"
#include "plugin.h"
#include "report.h"
#include "reshard.h"
#include "save.h"
#include "state.h"
#include "storage.h"
#include "tensor.h"
#include "torch_items.h"
#include "work.h"

#include "api.h"

#endif /* SHARDWRIGHT_SHARDWRIGHT_H */
