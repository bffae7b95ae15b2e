// SPDX-License-Identifier: Apache-2.0
// Operations of communicators of the host.
package io.shardwright.hsdp;

import io.shardwright.DType;
import java.time.Duration;

/**
 * One operation; all but the timeout are equal on all ranks.
 *
 * @param sequence its number on this communicator
 * @param unitId whose operation it is, for messages
 * @param count elements that a rank contributes to each part
 * @param dtype of the elements
 * @param op how they are reduced, where they are
 * @param scale of {@link TensorReduction#SCALED_SUM}
 * @param timeout an operation that has not ended so long after it was issued fails with DEADLINE_EXCEEDED; null = no limit
 * @param tag anything that callers want compared
 */
public record CommunicatorCall(long sequence, long unitId, long count, DType dtype, TensorReduction op, double scale,
        Duration timeout, int tag) {}
